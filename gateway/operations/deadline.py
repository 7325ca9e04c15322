"""Deadline: the end of the time that a request has."""

from __future__ import annotations

import asyncio
import threading
from time import monotonic
from typing import Any

#: How long after it a deadline may come: one timer looks after all requests of a loop, because a timer for each was a
#: twentieth of what a small request costs.
LOOK_SECONDS = 0.25


class Deadline:
    """Counts from when it is made, for the task that makes it: what waits past it is cancelled, and `passed` is set before."""

    __slots__ = ("_cancelling", "_task", "_watch", "at", "passed")

    def __init__(self, seconds: float) -> None:
        self.at = monotonic() + seconds
        self.passed = False
        self._task: asyncio.Task[Any] | None = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task is not None else 0
        self._watch = _watch()
        self._watch.add(self)

    def end(self) -> None:
        """It does not matter any more; the task is let go, or each request would be left to the garbage collector."""
        self._watch.waiting.pop(self, None)
        self._task = None

    def caught(self) -> bool:
        """Whether a cancellation that arrived is the deadline's, and nobody else wants the task to end."""
        return self.passed and self._task is not None and self._task.uncancel() <= self._cancelling

    def come(self) -> None:
        """End the task."""
        if self._task is not None:
            self.passed = True
            self._task.cancel()


class _Watch:
    """The deadlines of the requests under way on one loop, and the timer that is armed while there are any."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.waiting: dict[Deadline, None] = {}
        self._armed = False

    def add(self, deadline: Deadline) -> None:
        self.waiting[deadline] = None
        if not self._armed:
            self._armed = True
            self.loop.call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        now = monotonic()
        for deadline in [each for each in self.waiting if each.at <= now]:
            del self.waiting[deadline]
            deadline.come()
        self._armed = bool(self.waiting)
        if self._armed:
            self.loop.call_later(LOOK_SECONDS, self._look)


_here = threading.local()


def _watch() -> _Watch:
    """The one of the running loop; a thread runs one at a time."""
    loop = asyncio.get_running_loop()
    watch: _Watch | None = getattr(_here, "watch", None)
    if watch is None or watch.loop is not loop:
        watch = _here.watch = _Watch(loop)
    return watch
