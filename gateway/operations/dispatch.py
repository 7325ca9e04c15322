"""Running an operation: no answer without a decision that still stands, and none before its record is in the log."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from gateway.errors import Late, Stale, Unavailable
from gateway.model.decision import DenyKind
from gateway.model.evidence import LogRow
from gateway.model.ids import new_id
from gateway.operations.call import Call
from gateway.operations.deadline import Deadline
from gateway.operations.operation import Operation, Reply
from gateway.spans import span
from gateway.store.faults import StoreBusy, StoreFailed
from gateway.store.rows import Tx
from gateway.store.writer import Unit, record

NOT_RECORDED = "the store cannot answer or record now, so there is no answer; try again"
#: How often a request is run whose decisions no longer stand when it is about to change or answer something.
ATTEMPTS = 5
#: How long a refusal for want of time waits for its own record, which is written in its turn whether or not it waits.
LATE_SECONDS = 1.0


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
        Late: the deadline came first; what had been decided is in the log, and that it was not answered.
        Undecided: the operation answered without a decision.
        GatewayError: what the operation refuses with.
    """
    seconds = call.services.settings.deadline
    try:
        if not seconds or operation.unhurried:
            return await _attempts(operation, call)
        call.deadline = deadline = Deadline(seconds)
        try:
            return await _attempts(operation, call)
        except asyncio.CancelledError:
            if not deadline.caught():
                raise
        finally:
            deadline.end()
        raise Late(seconds, await _record_late(call))
    except (StoreFailed, StoreBusy) as failure:
        raise Unavailable(NOT_RECORDED, cause="store") from failure


async def _attempts(operation: Operation, call: Call) -> Reply:
    for attempt in range(ATTEMPTS):
        if attempt:
            _begin_again(call)
        reply = await _attempt(operation, call)
        if reply is not None:
            return reply
    await _give_up(call)
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
        if not call.late:  # what is not in the log by then goes there with the record of that
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
    with span("log"):
        if call.services.settings.audit == "durable" or not _noted(call, rows):
            await call.commit(record(*rows))


async def _record_answer(call: Call) -> None:
    """Put what is answered into the log together with its decisions, while they stand.

    Raises:
        Stale: they do not; nothing is written.
    """
    session = call.session
    rows = (*session.rows, *session.answer_rows)

    def check(_: object) -> None:
        if call.late or not call.stands():
            raise Stale

    with span("log"):
        if call.services.settings.audit == "durable":
            await call.commit(Unit(check, log=rows))
        else:
            check(None)
            if not _noted(call, rows):
                await call.commit(record(*rows))


def _noted(call: Call, rows: tuple[LogRow, ...]) -> bool:
    """Hand rows to the writer without waiting; not while the log is behind, for then they would be late."""
    try:
        call.services.database.note(rows)
    except StoreBusy:
        return False
    call.session.written(rows)
    return True


async def _give_up(call: Call) -> None:
    """Record that what had been allowed was not answered."""
    call.session.rows += _unanswered(call, DenyKind.STALE)
    await settle(call)


async def _record_late(call: Call) -> str | None:
    """Put what was decided into the log, and that it was not answered in time; the id of the last decision, if there was any.

    The store may still be at a change of the request that it was handed before. This comes after it, and leaves out what is
    in the log by then; where the change has happened, what had been allowed was done.
    """
    session = call.session
    handed, change = session.pending or ((), None)
    decided = [row for row in (*handed, *session.rows) if row.kind == "decision"]
    rows, late = tuple(session.rows), _unanswered(call, DenyKind.DEADLINE)
    if not rows and not late:
        return decided[-1].id if decided else None
    known = {row.id for row in handed}

    def run(tx: Tx) -> None:
        happened = change is not None and change.done() and change.exception() is None
        for row in (row for row in rows if not (happened and row.id in known)):
            tx.append(row)
        for row in () if session.changed or happened else late:
            tx.append(row)

    # In a transaction of its own: the one before it is settled by then.
    written = call.services.database.write(Unit(run, solo=True))
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(written)), LATE_SECONDS)
    session.recorded += [row.id for row in (*rows, *late) if row.kind == "decision"]
    return decided[-1].id if decided else None


def _unanswered(call: Call, kind: DenyKind) -> list[LogRow]:
    """A row for each decision that had allowed something, to say that it came to nothing; and the counts of that."""
    allowed = {basis.decision.id: basis.decision for basis in call.session.bases}
    rows = []
    for decision in allowed.values():
        rows.append(replace(decision, id=new_id(), outcome="deny", deny_kind=kind.value, policies=()))
        call.access.decided[decision.action, "deny", kind.value] += 1
    return rows
