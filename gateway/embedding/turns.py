"""Turns: which of the texts that wait for the model are next, so that none waits for all of another's."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from threading import Condition

#: Texts to one turn of the model. Short ones share it: one alone costs three times as much.
AT_ONCE = 32
#: Characters to one turn, but for its last text: whoever comes next waits while they are read.
CHARACTERS = 4_000

Numbers = Future[list[float]]
Request = deque[tuple[str, Numbers]]


class Turns:
    """Two queues of requests, questions and texts, from each of which a request takes one text and goes to its end."""

    def __init__(self) -> None:
        self._questions: deque[Request] = deque()
        self._texts: deque[Request] = deque()
        self._some = Condition()

    def wait_for(self, texts: Sequence[str], *, question: bool) -> list[Numbers]:
        """Put a request at the end of its queue; safe on any thread."""
        request: Request = deque((text, Numbers()) for text in texts)
        futures = [future for _, future in request]
        if request:
            with self._some:
                (self._questions if question else self._texts).append(request)
                self._some.notify()
        return futures

    def next(self) -> list[tuple[str, Numbers]]:
        """Wait until there are some, and take a turn: questions first. One that was cancelled is left out.

        A turn of questions has one text in it too: questions without end hold no text up for ever.
        """
        with self._some:
            self._some.wait_for(lambda: self._questions or self._texts)
            turn = _taken(self._questions, AT_ONCE)
            return turn + _taken(self._texts, 1 if turn else AT_ONCE)


def _taken(queue: deque[Request], most: int) -> list[tuple[str, Numbers]]:
    taken: list[tuple[str, Numbers]] = []
    size = 0
    while queue and len(taken) < most and size < CHARACTERS:
        request = queue.popleft()
        text, future = request.popleft()
        if request:
            queue.append(request)
        if future.set_running_or_notify_cancel():
            taken.append((text, future))
            size += len(text)
    return taken
