"""Replays under way: on a thread of their own, few at once, one an organisation, and each for so long and no longer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue

from gateway.errors import Conflict, Unavailable

#: Organisations whose replay is under way or waits.
AT_ONCE = 4
#: Of a processor, for one replay: what it gets must not depend on how busy the machine is.
SECONDS = 30.0
RETRY_SECONDS = 30


class Ended(Exception):
    """A replay has taken what it may, or nobody waits for it any more."""


class Turn:
    """The replay of one organisation; `stopped` once it has taken `SECONDS` and is not done."""

    def __init__(self, begin: Callable[[Callable[[], None]], Future[None]]) -> None:
        self.stopped = False
        self._begin = begin
        self._under_way: Future[None] = Future()
        self._under_way.set_result(None)
        self._left = False
        self._taken = self._since = 0.0

    async def run(self, work: Callable[[], None]) -> bool:
        """Do some of the work, which calls `between` where it can end, and return whether there is time for more."""
        self._under_way = self._begin(lambda: self._run(work))
        await asyncio.wrap_future(self._under_way)
        return not self.stopped

    def between(self) -> None:
        """End the work where it is, if it has to.

        Raises:
            Ended: it has.
        """
        if self._left or self._taken + time.thread_time() - self._since > SECONDS:
            raise Ended

    def leave(self, then: Callable[[], object]) -> None:
        """Wait no longer; `then` is done once the work has ended too."""
        self._left = True
        self._under_way.add_done_callback(lambda _: then())

    def _run(self, work: Callable[[], None]) -> None:
        self._since = time.thread_time()
        try:
            self.between()
            work()
        except Ended:
            self.stopped = True
        finally:
            self._taken += time.thread_time() - self._since


class Replays:
    """Takes turns on one thread, which does not hold up the end of the process."""

    def __init__(self) -> None:
        self._orgs: set[str] = set()
        self._queue: SimpleQueue[tuple[Callable[[], None], Future[None]]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @contextmanager
    def turn(self, org_id: str) -> Iterator[Turn]:
        """A turn of an organisation, from the event loop.

        Raises:
            Conflict: it has one already.
            Unavailable: too many others have.
        """
        if org_id in self._orgs:
            raise Conflict("a replay of the organisation is under way already")
        if len(self._orgs) >= AT_ONCE:
            raise Unavailable("too many replays are under way right now; try again", retry_after=RETRY_SECONDS)
        self._orgs.add(org_id)
        turn = Turn(self._submit)
        try:
            yield turn
        finally:
            # INVARIANT: its place is free once its work is off the queue, so the queue holds one work an organisation.
            turn.leave(lambda: self._orgs.discard(org_id))

    def _submit(self, work: Callable[[], None]) -> Future[None]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="replays", daemon=True)
            self._thread.start()
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # from here on only the thread ends it
        self._queue.put((work, done))
        return done

    def _serve(self) -> None:
        while True:
            work, done = self._queue.get()
            try:
                work()
            except BaseException as error:  # it is its caller's
                done.set_exception(error)
            else:
                done.set_result(None)
