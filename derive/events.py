"""Events: the decisions of a person, live or grown old."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from derive.echo import echo

Decision = Literal["approved", "rejected"]

RETENTION = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Observation:
    """Records one decision: `at` is aware and UTC, `source` is `gateway`, `agent:<id>` or `user:<id>`."""

    event_id: str
    event_type: str
    decision: Decision
    at: datetime
    source: str

    def __post_init__(self) -> None:
        _require_utc(self.at)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Keeps what is left of a decision after RETENTION: its kind, its outcome and its time."""

    event_type: str
    decision: Decision
    at: datetime

    def __post_init__(self) -> None:
        _require_utc(self.at)


def decision_of(word: object) -> Decision | None:
    """Reads a decision in any of the words that clients send, lower case; None for any other value."""
    match word:
        case "approve" | "approved":
            return "approved"
        case "reject" | "rejected" | "deny" | "denied":
            return "rejected"
        case _:
            return None


def is_expired(at: datetime, now: datetime) -> bool:
    """Tells whether an event of that time has become a tombstone: its age is 90 days or more."""
    return now - at >= RETENTION


def rfc3339(at: datetime) -> str:
    """Writes a UTC time with `Z`, microseconds only when there are any."""
    _require_utc(at)
    return at.replace(tzinfo=None).isoformat() + "Z"


def _require_utc(at: datetime) -> None:
    if at.utcoffset() != timedelta(0):
        raise ValueError(f"at {echo(at.isoformat())} is not a time in UTC")
