"""Writer: the one thread that changes the database, many units to a commit.

A unit is acknowledged after COMMIT, after the mark is on disk, and after what it changed is published in memory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import duckdb

from gateway.model.evidence import LogRow
from gateway.model.histogram import Histogram
from gateway.store.commit import Commit, Refused
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
    fails: it reads what it needs through the transaction and changes nothing else. A `solo` unit has its own transaction,
    in which nothing else is written, notes included.
    """

    run: Callable[[Tx], T]
    log: tuple[LogRow, ...] = ()
    solo: bool = False


def record(*rows: LogRow) -> Unit[None]:
    """Return the unit that only adds rows to the log."""
    return Unit(_nothing, log=rows)


def _nothing(_: Tx) -> None: ...


@dataclass(frozen=True, slots=True)
class Instance:
    """The open database as the writer has it: its cursor, the end of the log, the mark."""

    cursor: duckdb.DuckDBPyConnection
    log: Log
    mark: Mark


class Writer:
    """The thread. When the instance has died it calls `revive(error)`, which attaches another one or raises.

    `commits` is how long each transaction took, from its begin until it was published; `rows_logged` counts the rows of the
    log in them. Only the thread writes them.
    """

    def __init__(self, revive: Callable[[BaseException], None], state: State | None = None) -> None:
        self._revive = revive
        self._state = state
        self._inbox = Inbox()
        self._instance: Instance | None = None
        self._under_way: Commit | None = None
        self._kept: Commit | None = None
        self._unwritten: Sequence[Entry] = ()
        self.commits = Histogram()
        self.rows_logged = 0
        self._thread = threading.Thread(target=self._serve, name="store-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How much work and how many notes wait for their turn."""
        return self._inbox.length

    def attach(self, instance: Instance | None) -> None:
        """Write with `instance` from now on, or with none; once started, only on the thread itself."""
        self._instance = instance
        self._inbox.resume()  # what was reported was the death of the one before

    def submit(self, unit: Unit[T]) -> Future[T]:
        """Queue a unit. Its future raises what `run` raised, or StoreFailed when the instance died in its turn."""
        return self._put(unit, alone=unit.solo)

    def exclusive(self, run: Callable[[], T]) -> Future[T]:
        """Queue a function that has the thread to itself, outside a transaction, when all before it is committed."""
        return self._put(run, alone=True)

    def note(self, rows: Sequence[LogRow]) -> None:
        """Add rows to the log with the next commit; nobody is told when. Raise StoreBusy when that is not within 50 ms."""
        self._inbox.note([encode(row) for row in rows])

    def report(self, error: BaseException) -> None:
        """Say that somebody else saw the instance die."""
        self._inbox.interrupt(error)

    def write_now(self, *rows: LogRow) -> None:
        """Commit rows of the log at once; only on the thread itself. Raise whatever stands in the way."""
        self._transact([], [encode(row) for row in rows])

    def salvage(self) -> int:
        """After another instance is attached: find out how the last commit ended, write the notes of its turn that are not
        in the log, and return how many of them cannot be; only on the thread itself."""
        last = self._under_way
        if last is not None and last.kept(self._open_instance().log.head):
            self._kept, self._unwritten = last, ()
        notes, self._unwritten = self._unwritten, ()
        try:
            self._transact([], notes)
        except _RolledBack:
            return len(notes)
        return 0

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
        self._unwritten = turn.notes
        match turn.work:
            case [Work(alone=True) as work]:
                if turn.notes:
                    self._commit([], turn.notes)
                if isinstance(work.order, Unit):
                    self._commit([work], [])
                else:
                    self._run(work)
            case units:
                self._commit(units, turn.notes)

    def _run(self, work: Work) -> None:
        try:
            work.future.set_result(work.order())
        except BaseException as error:  # it is its caller's
            work.future.set_exception(error)
            if self._instance is None:
                raise

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
        instance = self._open_instance()
        cursor, log = instance.cursor, instance.log
        tx, began = Tx(cursor, self._state), time.perf_counter()
        # What only adds to the log commits itself: each statement costs this thread a wait for the interpreter, which the
        # requests are using, and BEGIN and COMMIT were a third of a record. A slice that is stored without its row is idle.
        whole = any(unit.order.run is not _nothing for unit in units)
        try:
            if whole:
                cursor.begin()
            results = [_attempt(unit.order, tx) for unit in units]
            tx.flush()
            chained = log.chain([*notes, *tx.entries])
            self._under_way = commit = Commit(units, results, log.head, chained.head)
            written = log.write(tx, chained)
        except FATAL:
            raise
        except BaseException as error:  # it is the unit's
            if whole:
                cursor.rollback()
            self._under_way = None
            raise _RolledBack(error) from None
        if whole:
            cursor.commit()
        commit.returned = True
        if written.head != log.head:
            instance.mark.write(written.head)
        log.settle(written)
        for publish in tx.callbacks:
            publish()
        self._under_way = None
        if notes:
            self._unwritten = ()
        self.rows_logged += len(chained.rows)
        self.commits.add(time.perf_counter() - began)
        commit.acknowledge()

    def _open_instance(self) -> Instance:
        if self._instance is None:
            raise StoreFailed("no database is open")
        return self._instance

    def _recover(self, error: BaseException, turn: Turn) -> bool:
        """Have the instance revived, settle the turn under way, and say whether the thread goes on.

        What the log of the new instance shows to have happened is acknowledged; work that waits is done afterwards.
        """
        stranded, alive = [*turn.work], True
        failure = f"the database has failed (`{type(error).__name__}`): what was under way may have happened"
        try:
            self._revive(error)
            if self._kept is not None:
                self._kept.acknowledge()
        except BaseException as again:  # there is one attempt; after that the process has to end
            alive = False
            failure = f"{failure}; it could not be opened again: {again}"
            self._inbox.close(failure)
            stranded += self._inbox.drain()
        self._under_way = self._kept = None
        for work in stranded:
            if not work.future.done():
                work.future.set_exception(StoreFailed(failure))
        return alive


class _RolledBack(Exception):
    """A transaction was rolled back because of `error`; the instance is as it was before."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def _attempt(unit: Unit[T], tx: Tx) -> T | Refused:
    """Run one unit among others. One that looks and says no must not cost them their common commit."""
    changes, entries, callbacks = tx.changes, len(tx.entries), len(tx.callbacks)
    try:
        return _run(unit, tx)
    except FATAL:
        raise
    except Exception as error:  # it is the unit's
        if tx.failure is not None or tx.changes != changes:
            raise
        del tx.entries[entries:], tx.callbacks[callbacks:]
        return Refused(error)


def _run(unit: Unit[T], tx: Tx) -> T:
    """Run one unit; its own rows of the log come before those it appends, as the decision comes before the change."""
    start = len(tx.entries)
    result = unit.run(tx)
    tx.entries[start:start] = [encode(row) for row in unit.log]
    if tx.failure is not None:
        raise tx.failure
    return result
