"""Inbox of the writer: a bounded queue of work, and the rows of the log that may wait for the next commit."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gateway import limits
from gateway.store.faults import StoreBusy, StoreFailed
from gateway.store.log import Entry

BATCH = 256
#: How long a row may wait before the writer takes it; while one has waited longer, no more are promised anything.
WINDOW_SECONDS = 0.05
#: How long an idle writer gathers rows; the rest of the window is for a turn that is under way.
GATHER_SECONDS = 0.04


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Something to do and where its result goes. `alone` work shares its turn with nothing else."""

    order: Any
    alone: bool
    future: Future[Any] = field(default_factory=Future)


class Turn(NamedTuple):
    """What the writer does next: work in the order it came, and the notes that ride along, or go before work that is alone."""

    work: Sequence[Work]
    notes: Sequence[Entry]


IDLE = Turn((), ())


class Inbox:
    """The queue; every method may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._work: deque[Work] = deque()
        self._notes: list[Entry] = []
        self._noted = 0.0
        self._fault: BaseException | None = None
        self._refusal: str | None = None

    @property
    def length(self) -> int:
        """How much is in it."""
        return len(self._work) + len(self._notes)

    def put(self, work: Work) -> None:
        """Queue work, which is then done whether or not anybody still waits for it. Raise StoreBusy or StoreFailed."""
        with self._changed:
            self._admit(len(self._work) + 1)
            work.future.set_running_or_notify_cancel()
            self._work.append(work)
            self._changed.notify()

    def note(self, entries: Sequence[Entry]) -> None:
        """Keep rows for the next turn, at most `WINDOW_SECONDS` away. Raise StoreFailed, or StoreBusy when it is further."""
        with self._changed:
            self._admit(len(self._notes) + len(entries))
            now = self._clock()
            if not self._notes:
                self._noted = now
                self._changed.notify()
            elif now - self._noted > WINDOW_SECONDS:
                raise StoreBusy("the log is behind: try again")
            self._notes.extend(entries)

    def take(self) -> Turn | None:
        """Wait for the next turn; None when the inbox is closed and empty. Raise what was given to `interrupt`."""
        with self._changed:
            while not self._ready():
                if self._refusal is not None and not self._notes:
                    return None
                self._changed.wait(self._noted + GATHER_SECONDS - self._clock() if self._notes else None)
            if self._fault is not None:
                raise self._fault
            work = [self._work.popleft()] if self._work else []
            while work and not work[0].alone and self._work and not self._work[0].alone and len(work) < BATCH:
                work.append(self._work.popleft())
            notes, self._notes = self._notes, []
            return Turn(work, notes)

    def interrupt(self, error: BaseException) -> None:
        """Make `take` raise `error`, before any more work."""
        with self._changed:
            self._fault = error
            self._changed.notify()

    def resume(self) -> None:
        """Forget an interrupt."""
        with self._changed:
            self._fault = None

    def drain(self) -> Sequence[Work]:
        """Take out all work."""
        with self._changed:
            work, self._work = self._work, deque()
            return work

    def close(self, reason: str) -> None:
        """Refuse everything from now on, saying why; what is in the inbox stays to be done."""
        with self._changed:
            self._refusal = reason
            self._changed.notify()

    def _ready(self) -> bool:
        if self._fault is not None or self._work:
            return True
        return bool(self._notes) and (self._refusal is not None or self._clock() >= self._noted + GATHER_SECONDS)

    def _admit(self, length: int) -> None:
        if self._refusal is not None:
            raise StoreFailed(self._refusal)
        if length > limits.WRITER_QUEUE:
            raise StoreBusy("the writer has too much to do: try again")
