"""Retention: an event lives 90 days; where it spoke for a fact, a tombstone stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from derive.events import RETENTION
from gateway.store.rows import Rows, Tx

# A bucket whose derivation is owed keeps its events until it is derived: they have not been heard yet.
_DUE = """e."at" <= $1::TIMESTAMP AND NOT EXISTS (
  SELECT 1 FROM pending_buckets b WHERE b.peer_id = e.peer_id AND b.fact_key = e.fact_key)"""
# A text for each instead of one with an OR, which would be asked of every row of the table.
_WHICH = {"all": _DUE, "some": f"{_DUE} AND e.peer_id IN (SELECT unnest($2::VARCHAR[]))", "one": "e.peer_id = $1 AND e.id = $2"}
AFFECTED = {which: f"SELECT DISTINCT e.peer_id FROM events e WHERE {due}" for which, due in _WHICH.items()}  # noqa: S608  # constants only
BURY = {
    which: f"""INSERT INTO provenance (peer_id, fact_key, id, kind, event_type, decision, "at", user_id)
  SELECT e.peer_id, e.fact_key, e.id, 'tombstone', e.event_type, e.decision, e."at", NULL
  FROM events e JOIN facts f ON f.peer_id = e.peer_id AND f.fact_key = e.fact_key
  WHERE e.learned AND {due} ON CONFLICT DO NOTHING"""  # noqa: S608  # constants only
    for which, due in _WHICH.items()
}
REMOVE = {which: f"DELETE FROM events e WHERE {due}" for which, due in _WHICH.items()}  # noqa: S608  # constants only
EARLIEST = """SELECT min(e."at") FROM events e WHERE e.peer_id = $1
  AND NOT EXISTS (SELECT 1 FROM pending_buckets b WHERE b.peer_id = e.peer_id AND b.fact_key = e.fact_key)"""


@dataclass(frozen=True, slots=True)
class Buried:
    """How many events went, and how many tombstones they left."""

    events: int
    tombstones: int

    def __add__(self, other: Buried) -> Buried:
        return Buried(self.events + other.events, self.tombstones + other.tombstones)


def bury_expired(tx: Tx, now: datetime, *, peers: Sequence[str] | None = None) -> Buried:
    """Remove every event that is 90 days old or older, of some peers or of all; twice is once.

    An event of a bucket that has a fact, live or retired, leaves a tombstone under it; any other leaves nothing.
    """
    which, params = ("all", (now - RETENTION,)) if peers is None else ("some", (now - RETENTION, list(peers)))
    affected = [peer_id for (peer_id,) in tx.all(AFFECTED[which], *params)]
    if not affected:
        return Buried(0, 0)
    tombstones = tx.run(BURY[which], *params)
    events = tx.run(REMOVE[which], *params)

    def publish() -> None:
        for peer_id in affected:
            tx.state.facts_changed(peer_id)

    tx.after_commit(publish)
    return Buried(events, tombstones)


def bury_event(tx: Tx, peer_id: str, event_id: str) -> None:
    """Remove one event, whatever its age, by the same rule."""
    tx.run(BURY["one"], peer_id, event_id)
    tx.run(REMOVE["one"], peer_id, event_id)


def next_expiry(rows: Rows, peer_id: str) -> datetime | None:
    """When the first of a peer's events becomes a tombstone; None when it has none."""
    earliest = rows.value(EARLIEST, peer_id)
    return None if earliest is None else earliest + RETENTION
