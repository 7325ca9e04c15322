"""Running an operation: no answer without a decision that still stands, and none before its record is in the log."""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import Stale, Unavailable
from gateway.model.decision import DenyKind
from gateway.model.evidence import LogRow
from gateway.model.ids import new_id
from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.store.db import Database
from gateway.store.faults import StoreBusy, StoreFailed
from gateway.store.writer import Unit, record

NOT_RECORDED = "the store cannot answer or record now, so there is no answer; try again"
#: How often a request is run whose decisions no longer stand when it is about to change or answer something.
ATTEMPTS = 5


class Undecided(Exception):
    """An operation that is not public answered without asking for a decision: a fault of ours, and never an answer."""


async def dispatch(operation: Operation, call: Call) -> Reply:
    """Run an operation and settle what it decided, whichever way it ends.

    What an answer shows was read after its decision. When the observer list, a role or anything else that the decision
    rests on has changed by then, or the credential has ended, the operation runs again, so that no one is shown what came
    after their removal.

    INVARIANT: whatever leaves here, an answer or an error, every row of the session is in the log (or, with
    `audit = relaxed`, handed to the writer).

    Raises:
        Unauthenticated: the credential ended meanwhile.
        Unavailable: the store failed or is full; nothing that was decided is answered.
        Stale: what was decided on changed each time.
        Undecided: the operation answered without a decision.
        GatewayError: what the operation refuses with.
    """
    try:
        for attempt in range(ATTEMPTS):
            if attempt:
                _begin_again(call)
            reply = await _attempt(operation, call)
            if reply is not None:
                return reply
        await _give_up(call)
    except (StoreFailed, StoreBusy) as failure:
        raise Unavailable(NOT_RECORDED) from failure
    raise Stale


async def _attempt(operation: Operation, call: Call) -> Reply | None:
    """Run it once; None when its decisions did not stand until the end."""
    session = call.session
    try:
        reply = await operation.run(call)
        recorded = bool(session.answer_rows)
        if recorded:
            await _record_answer(call)
    except Stale:
        return None
    finally:
        await settle(call)
    if operation.public is None and not session.decided:
        raise Undecided(operation.name)
    committed = recorded or (session.changed and operation.method != "GET")
    return reply if committed or call.stands() else None


def _begin_again(call: Call) -> None:
    """Run the request as if it came now, which may be too late for its credential."""
    session, now = call.session, call.services.clock()
    session.version = call.state.version
    if session.bearer is not None:
        session.caller = call.services.authenticator.authenticate(session.bearer, now)
    session.begin_again(now)


async def settle(call: Call) -> None:
    """Put the rows that no change has taken along into the log."""
    rows = tuple(call.session.rows)
    if not rows:
        return
    database = call.services.database
    if call.services.settings.audit == "durable" or not _noted(database, rows):
        await database.awrite(record(*rows))
    call.session.written(rows)


async def _record_answer(call: Call) -> None:
    """Put what is answered into the log together with its decisions, while they stand.

    Raises:
        Stale: they do not; nothing is written.
    """
    session, services = call.session, call.services
    rows = (*session.rows, *session.answer_rows)

    def check(_: object) -> None:
        if not call.stands():
            raise Stale

    if services.settings.audit == "durable":
        await services.database.awrite(Unit(check, log=rows))
    else:
        check(None)
        if not _noted(services.database, rows):
            await services.database.awrite(record(*rows))
    session.written(rows)


def _noted(database: Database, rows: tuple[LogRow, ...]) -> bool:
    """Hand rows to the writer without waiting; not while the log is behind, for then they would be late."""
    try:
        database.note(rows)
    except StoreBusy:
        return False
    return True


async def _give_up(call: Call) -> None:
    """Record that what had been allowed was not answered."""
    allowed = {basis.decision.id: basis.decision for basis in call.session.bases}
    for decision in allowed.values():
        stale = replace(decision, id=new_id(), outcome="deny", deny_kind=DenyKind.STALE.value, policies=())
        call.session.rows.append(stale)
    await settle(call)
