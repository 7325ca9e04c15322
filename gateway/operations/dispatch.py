"""Running an operation: no answer without a decision, and none before its record is in the log."""

from __future__ import annotations

from datetime import datetime

from gateway.errors import Unavailable
from gateway.model.caller import Caller
from gateway.model.evidence import LogRow
from gateway.model.grant import Session
from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.store.faults import StoreBusy, StoreFailed
from gateway.store.writer import record

NOT_RECORDED = "the store cannot answer or record now, so there is no answer; try again"


class Undecided(Exception):
    """An operation that is not public answered without asking for a decision: a fault of ours, and never an answer."""


class WitnessedSession(Session):
    """A session that remembers a decision after its row has gone to the log."""

    __slots__ = ("_decided",)

    def __init__(self, caller: Caller, request_id: str, now: datetime, source_ip: str | None = None) -> None:
        super().__init__(caller, request_id, now, source_ip)
        self._decided = False

    @property
    def decided(self) -> bool:
        return self._decided or any(row.kind == "decision" for row in self.rows)

    def written(self, rows: tuple[LogRow, ...]) -> None:
        self._decided = self.decided
        super().written(rows)


async def dispatch(operation: Operation, call: Call) -> Reply:
    """Run an operation and settle what it decided, whichever way it ends.

    INVARIANT: whatever leaves here, an answer or an error, every row of the session is in the log (or, with
    `audit = relaxed`, handed to the writer).

    Raises:
        Unavailable: the store failed or is full; nothing that was decided is answered.
        Undecided: the operation answered without a decision.
        GatewayError: what the operation refuses with.
    """
    try:
        try:
            reply = await operation.run(call)
        finally:
            decided = _decided(call.session)
            await settle(call)
    except (StoreFailed, StoreBusy) as failure:
        raise Unavailable(NOT_RECORDED) from failure
    if operation.public is None and not decided:
        raise Undecided(operation.name)
    return reply


async def settle(call: Call) -> None:
    """Put the rows that no change has taken along into the log."""
    rows = tuple(call.session.rows)
    if not rows:
        return
    database = call.services.database
    if call.services.settings.audit == "durable":
        await database.awrite(record(*rows))
    else:
        database.note(rows)
    call.session.written(rows)


def _decided(session: Session) -> bool:
    return session.decided if isinstance(session, WitnessedSession) else bool(session.rows)
