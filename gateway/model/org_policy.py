"""Policies that an organisation writes for itself: rows, immutable, with every version of their text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Mode = Literal["shadow", "enforce"]
MODES: tuple[Mode, ...] = ("shadow", "enforce")


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """One step of a policy. `number` counts from 1; `previous` is the step that a rollback leads to.

    In mode `enforce` its text decides; in mode `shadow` it is asked beside, and decides nothing. `enforced` is the number of
    the version whose text decides while this one is current: its own in mode `enforce`, None when none has been promoted.
    """

    policy_id: str
    number: int
    previous: int | None
    cedar_text: str
    mode: Mode
    enforced: int | None
    written_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class OrgPolicy:
    """A policy as it stands: `current` is the step it is at, `enforced` the one whose text decides, when there is one.

    `last` is the highest number that a step of it bears, also of one that was taken back.
    """

    id: str
    org_id: str
    name: str
    description: str | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    last: int
    current: PolicyVersion
    enforced: PolicyVersion | None

    @property
    def in_shadow(self) -> bool:
        """Whether its last text waits to be promoted."""
        return self.current.mode == "shadow"
