"""Readers: two threads, each with its own cursor, so that the event loop never waits for the database."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

import duckdb

from gateway import limits
from gateway.store.faults import StoreBusy, StoreFailed
from gateway.store.rows import Rows

T = TypeVar("T")

THREADS = 2
INTERRUPT_SECONDS = 0.05
PROBE = "SELECT max(seq) FROM log"


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    ask: Callable[[Rows], Any]
    snapshot: bool
    future: Future[Any] = field(default_factory=Future)


class Readers:
    """The threads and their queue. Between `detach` and `attach` reads wait."""

    def __init__(self, report: Callable[[BaseException], None]) -> None:
        """`report` is told of an error after which the instance is not to be trusted."""
        self._report = report
        self._changed = threading.Condition()
        self._queue: deque[_Read] = deque()
        self._idle: list[duckdb.DuckDBPyConnection] = []
        self._cursors: Sequence[duckdb.DuckDBPyConnection] = ()
        self._refusal: str | None = None
        self._threads = [threading.Thread(target=self._serve, name=f"store-reader-{n}", daemon=True) for n in range(THREADS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """How many reads wait for a thread."""
        return len(self._queue)

    def submit(self, ask: Callable[[Rows], T], *, snapshot: bool) -> Future[T]:
        """Queue a read. With `snapshot` all its statements see the same state of the database."""
        read = _Read(ask, snapshot)
        with self._changed:
            if self._refusal is not None:
                raise StoreFailed(self._refusal)
            if len(self._queue) >= limits.READER_QUEUE:
                raise StoreBusy("the readers have too much to do: try again")
            self._queue.append(read)
            self._changed.notify()
        return read.future

    def attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Read through cursors of `connection` from now on."""
        with self._changed:
            self._cursors = [connection.cursor() for _ in self._threads]
            self._idle = list(self._cursors)
            self._changed.notify_all()

    def detach(self) -> None:
        """Let the reads under way end, and close the cursors."""
        with self._changed:
            cursors, self._cursors = self._cursors, ()
            self._changed.wait_for(lambda: len(self._idle) == len(cursors))
            self._idle = []
        for cursor in cursors:
            cursor.close()

    def close(self, reason: str) -> None:
        """Interrupt the reads under way, fail those that wait, and end the threads."""
        with self._changed:
            self._refusal = reason
            queue, self._queue = self._queue, deque()
            self._changed.notify_all()
        for read in queue:
            if read.future.set_running_or_notify_cancel():
                read.future.set_exception(StoreFailed(reason))
        for thread in self._threads:
            while thread.is_alive():  # an interrupt that comes between two statements is lost
                for cursor in self._cursors:
                    cursor.interrupt()
                thread.join(INTERRUPT_SECONDS)
        self.detach()

    def _serve(self) -> None:
        while (taken := self._take()) is not None:
            read, cursor = taken
            if read.future.set_running_or_notify_cancel():
                self._answer(read, cursor)
            with self._changed:
                self._idle.append(cursor)
                self._changed.notify_all()

    def _take(self) -> tuple[_Read, duckdb.DuckDBPyConnection] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._refusal is not None or (self._queue and self._idle and self._cursors))
            if self._refusal is not None:
                return None
            return self._queue.popleft(), self._idle.pop()

    def _answer(self, read: _Read, cursor: duckdb.DuckDBPyConnection) -> None:
        try:
            if read.snapshot:
                cursor.execute("BEGIN TRANSACTION READ ONLY")
            try:
                answer = read.ask(Rows(cursor))
            finally:
                if read.snapshot:
                    cursor.rollback()
        except (duckdb.FatalException, duckdb.InternalException, duckdb.IOException) as error:
            read.future.set_exception(StoreFailed(f"the read has failed (`{type(error).__name__}`)"))
            if not isinstance(error, duckdb.IOException) or not _serves(cursor):
                self._report(error)
        except duckdb.InterruptException:
            read.future.set_exception(StoreFailed(self._refusal or "the read was interrupted"))
        except BaseException as error:  # it is its caller's
            read.future.set_exception(error)
        else:
            read.future.set_result(answer)


def _serves(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Say whether the instance answers another cursor: a query that cannot spill has failed alone."""
    try:
        with cursor.cursor() as other:
            other.execute(PROBE).fetchall()
    except duckdb.Error:
        return False
    return True
