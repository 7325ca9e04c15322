"""Writer: the one thread that changes the database, many units to a commit.

A unit is acknowledged after COMMIT, after the mark is on disk, and after what it changed is published in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import duckdb

from gateway.model.evidence import LogRow
from gateway.store.faults import StoreFailed
from gateway.store.inbox import IDLE, Inbox, Turn, Work
from gateway.store.log import Entry, Log, encode
from gateway.store.mark import Mark
from gateway.store.rows import Tx
from gateway.store.state import State

T = TypeVar("T")

# After one of these the instance is not to be trusted any more; the same holds for any failure of COMMIT itself.
FATAL = (duckdb.FatalException, duckdb.InternalException, duckdb.IOException)


@dataclass(frozen=True, slots=True)
class Unit(Generic[T]):
    """A change that happens whole or not at all, together with its rows of the log.

    `run` shares its transaction with the units around it, in the order of the queue, and is run again when one of them
    fails: it reads what it needs through the transaction and changes nothing else. A `solo` unit has its own transaction.
    """

    run: Callable[[Tx], T]
    log: tuple[LogRow, ...] = ()
    solo: bool = False


def record(*rows: LogRow) -> Unit[None]:
    """Return the unit that only adds rows to the log."""
    return Unit(lambda _: None, log=rows)


@dataclass(frozen=True, slots=True)
class Session:
    """What the writer writes with: its cursor, the end of the log, the mark."""

    cursor: duckdb.DuckDBPyConnection
    log: Log
    mark: Mark


class Writer:
    """The thread. When the instance has died it calls `revive(error, notes_lost)`, which attaches another one or raises."""

    def __init__(self, revive: Callable[[BaseException, int], None], state: State | None = None) -> None:
        self._revive = revive
        self._state = state
        self._inbox = Inbox()
        self._session: Session | None = None
        self._thread = threading.Thread(target=self._serve, name="store-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def attach(self, session: Session | None) -> None:
        """Write with `session` from now on, or with none; once started, only on the thread itself."""
        self._session = session

    def submit(self, unit: Unit[T]) -> Future[T]:
        """Queue a unit. Its future raises what `run` raised, or StoreFailed when the instance died."""
        return self._put(unit, alone=unit.solo)

    def exclusive(self, run: Callable[[], T]) -> Future[T]:
        """Queue a function that has the thread to itself, outside a transaction, when all before it is committed."""
        return self._put(run, alone=True)

    def note(self, rows: Sequence[LogRow]) -> None:
        """Add rows to the log with the next commit, within 50 ms; nobody is told when."""
        self._inbox.note([encode(row) for row in rows])

    def report(self, error: BaseException) -> None:
        """Say that somebody else saw the instance die."""
        self._inbox.interrupt(error)

    def write_now(self, *rows: LogRow) -> None:
        """Commit rows of the log at once; only on the thread itself. Raise whatever stands in the way."""
        self._transact([], [encode(row) for row in rows])

    def close(self) -> None:
        """Do what is queued, commit the notes and end the thread."""
        self._inbox.close("the store is closed")
        self._thread.join()

    def _put(self, order: object, *, alone: bool) -> Future[Any]:
        work = Work(order, alone)
        self._inbox.put(work)
        return work.future

    def _serve(self) -> None:
        while True:
            turn: Turn | None = IDLE
            try:
                turn = self._inbox.take()
                if turn is None:
                    return
                self._do(turn)
            except BaseException as error:  # the thread must not end and leave its callers waiting
                if not self._recover(error, turn or IDLE):
                    return

    def _do(self, turn: Turn) -> None:
        match turn.work:
            case [Work(order=order, future=future)] if not isinstance(order, Unit):
                if turn.notes:
                    self._commit([], turn.notes)
                try:
                    future.set_result(order())
                except BaseException as error:  # it is its caller's
                    future.set_exception(error)
                    if self._session is None:
                        raise
            case units:
                self._commit(units, turn.notes)

    def _commit(self, units: Sequence[Work], notes: Sequence[Entry]) -> None:
        """Commit the units together or, when one of them fails, one by one, so that it fails alone."""
        try:
            self._transact(units, notes)
        except _RolledBack as failed:
            if len(units) == 1 and not notes:
                units[0].future.set_exception(failed.error)
                return
            if notes:
                self._transact([], notes)
            for unit in units:
                self._commit([unit], [])

    def _transact(self, units: Sequence[Work], notes: Sequence[Entry]) -> None:
        if self._session is None:
            raise StoreFailed("no database is open")
        cursor, log, mark = self._session.cursor, self._session.log, self._session.mark
        tx = Tx(cursor, self._state)
        try:
            cursor.begin()
            results = [_run(unit.order, tx) for unit in units]
            written = log.write(tx, [*notes, *tx.entries])
        except FATAL:
            raise
        except BaseException as error:  # it is the unit's
            cursor.rollback()
            raise _RolledBack(error) from None
        cursor.commit()
        if written.head != log.head:
            mark.write(written.head)
        log.settle(written)
        for publish in tx.callbacks:
            publish()
        for unit, result in zip(units, results, strict=True):
            unit.future.set_result(result)

    def _recover(self, error: BaseException, turn: Turn) -> bool:
        """Have the instance revived, fail what was under way, and say whether the thread goes on."""
        waiting = self._inbox.drain()
        stranded = [*turn.work, *waiting.work]
        failure, alive = f"the database has failed (`{type(error).__name__}`): nothing of this was acknowledged", True
        try:
            self._revive(error, len(turn.notes) + len(waiting.notes))
        except BaseException as again:  # there is one attempt; after that the process has to end
            failure, alive = f"{failure}; it could not be opened again: {again}", False
            self._inbox.close(failure)
            stranded += self._inbox.drain().work
        for work in stranded:
            if not work.future.done():
                work.future.set_exception(StoreFailed(failure))
        return alive


class _RolledBack(Exception):
    """A transaction was rolled back because of `error`; the instance is as it was before."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def _run(unit: Unit[T], tx: Tx) -> T:
    """Run one unit; its own rows of the log come before those it appends, as the decision comes before the change."""
    start = len(tx.entries)
    result = unit.run(tx)
    tx.entries[start:start] = [encode(row) for row in unit.log]
    if tx.failure is not None:
        raise tx.failure
    return result
