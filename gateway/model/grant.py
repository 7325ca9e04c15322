"""A session collects the evidence of one request; a grant is the proof that a decision allowed what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from gateway.model.caller import Caller
from gateway.model.entity import Entity, EntityUid
from gateway.model.evidence import LogRow, audit_row

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Basis:
    """What a yes rests on: the decision, whom and what it was asked about, and the entities it was decided over.

    `target` is None for a principal's own authority; `kept` says whether the state held it, or it was asked about as it
    would be. `since` is when they were compiled, `until` when the first lease or pause in them ends.
    """

    decision: LogRow
    principal: Caller
    target: object
    kept: bool
    entities: tuple[Entity, ...]
    since: datetime
    until: datetime | None


@dataclass(slots=True)
class Session:
    """One request: who calls, when, and the log rows that must be on disk before it is answered.

    `answer_rows` say what an answer showed: they are written with it, once, while its decisions stand, or not at all.
    `bases` are what its decisions rest on; `decided` says whether there was any decision, `changed` whether a change that
    it made is committed. `confirmed` holds the factor that was shown for a purpose: a proof is good once, and a request may
    be run again. `bearer` is the credential that was shown, None for the operator and before authentication; `version` is
    that of the state when it was looked at. `pending` are the rows that the store was handed last, with what tells how that
    ended; `recorded` are the ids of the decisions in the log.
    """

    caller: Caller
    request_id: str
    now: datetime
    source_ip: str | None = None
    bearer: str | None = field(default=None, repr=False)
    version: int = -1
    rows: list[LogRow] = field(default_factory=list)
    answer_rows: list[LogRow] = field(default_factory=list)
    bases: list[Basis] = field(default_factory=list)
    decided: bool = False
    changed: bool = False
    confirmed: dict[tuple[str, str], Any] = field(default_factory=dict)
    pending: tuple[tuple[LogRow, ...], Future[Any]] | None = None
    recorded: list[str] = field(default_factory=list)

    def written(self, rows: tuple[LogRow, ...]) -> None:
        """Drop rows that are in the log now."""
        done = {row.id for row in rows}
        self.recorded += [row.id for row in rows if row.kind == "decision"]
        self.rows = [row for row in self.rows if row.id not in done]

    def begin_again(self, now: datetime) -> None:
        """Forget what was decided and what would have been answered, not what was recorded: it is run again as of `now`."""
        self.now = now
        self.bases.clear()
        self.answer_rows.clear()


@dataclass(frozen=True, slots=True)
class Grant(Generic[T]):
    """What `Access` gives for an allowed action; every store function on protected data takes one first.

    INVARIANT: only `gateway.access` makes one.
    """

    session: Session
    action: str
    resource: EntityUid
    target: T
    decision: LogRow

    @property
    def now(self) -> datetime:
        """When the request came, or was run again."""
        return self.session.now

    @property
    def caller(self) -> Caller:
        """Who asked."""
        return self.session.caller

    def note(self, **facts: object) -> None:
        """Add what was served to the decision's row, before it is written: counts and ids only."""
        self.decision.details.update(facts)  # type: ignore[attr-defined]  # a dict until the row is chained

    def audit(self, action: str, details: Mapping[str, object], *, resource: EntityUid | None = None) -> LogRow:
        """An audit event of this request, about the granted resource unless another is named."""
        return audit_row(
            at=self.session.now,
            org_id=self.decision.org_id,
            principal=self.caller.uid,
            action=action,
            resource=resource or self.resource,
            details={**details, "decision_id": self.decision.id, "request_id": self.session.request_id},
            request_id=self.session.request_id,
            bundle=self.decision.bundle,
            data_version=self.decision.data_version,
        )
