"""Accepting: new connections taken from a listening socket, past the first few one a turn of the loop, so that requests under
way keep their turns.

What is not taken waits in the system's queue. Serving more in one turn answers fewer requests and none sooner; a queue that
does not end is shortened by telling connections to come back, which costs a fiftieth of a request. A loop's own server closes
what comes (uvloop), or tries on and on (asyncio), once the process may open no more files.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import select
import socket
from collections.abc import Callable, Sized

from gateway import limits
from gateway.web.protocol import CROWDED, HEAD_BYTES

#: How long nothing is taken where there is no room, or the system gave no connection, before it is looked at again.
PAUSE_SECONDS = 0.1

_log = logging.getLogger("gateway.web")


class Accepting:
    """Takes connections from the start until it is closed.

    `make` makes the protocol of a connection, which counts itself in `connections` while it is open; `told` is called for
    each that was told to come back instead.
    """

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[], asyncio.Protocol],
        connections: Sized,
        told: Callable[[], None],
    ) -> None:
        self._listening = listening
        self._make = make
        self._told = told
        self._connections = connections
        self._most = most_connections()
        self._loop = asyncio.get_running_loop()
        self._begun: set[asyncio.Task[object]] = set()
        self._paused: asyncio.TimerHandle | None = None
        self._failing = False
        self._standing_since: float | None = None
        listening.setblocking(False)
        self._start()

    def close(self) -> None:
        """Take no more; the socket stays open."""
        self._loop.remove_reader(self._listening)
        if self._paused is not None:
            self._paused.cancel()

    def _start(self) -> None:
        self._paused = None
        self._loop.add_reader(self._listening, self._take)

    def _pause(self) -> None:
        self._loop.remove_reader(self._listening)
        self._paused = self._loop.call_later(PAUSE_SECONDS, self._start)

    def _take(self) -> None:
        there = len(self._connections) + len(self._begun)
        if there >= self._most:
            self._standing_since = None
            self._pause()
            return
        for _ in range(max(1, min(limits.TAKEN_AT_ONCE, self._most) - there)):
            if (taken := self._next()) is None:
                self._standing_since = None
                return
            self._serve(taken)
        if self._stands():
            for _ in range(limits.TOLD_AT_ONCE):
                if (taken := self._next()) is None:
                    self._standing_since = None
                    return
                if _tell(taken):
                    self._told()
                else:
                    self._serve(taken)

    def _next(self) -> socket.socket | None:
        try:
            taken, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # it has given up, and another may wait
            return None
        except OSError as wrong:
            self._fail(wrong)
            return None
        self._failing = False
        taken.setblocking(False)
        return taken

    def _stands(self) -> bool:
        """Whether there has been a queue at every turn for so long that whoever is in it waits too long."""
        if self._paused is not None or not select.select([self._listening], [], [], 0)[0]:
            self._standing_since = None
            return False
        now = self._loop.time()
        if self._standing_since is None:
            self._standing_since = now
        return now - self._standing_since > limits.TURN_SECONDS

    def _serve(self, taken: socket.socket) -> None:
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._make, taken))
        self._begun.add(task)
        task.add_done_callback(self._begin)

    def _begin(self, task: asyncio.Task[object]) -> None:
        self._begun.discard(task)
        if not task.cancelled() and (wrong := task.exception()) is not None:
            _log.warning("a connection could not be begun: %s", type(wrong).__name__)

    def _fail(self, wrong: OSError) -> None:
        """Try again later, whatever it is; it is said once until a connection is taken."""
        if not self._failing:
            _log.warning("no connection can be taken: %s", wrong.strerror)
        self._failing = True
        self._pause()


def _tell(taken: socket.socket) -> bool:
    """Tell a connection to come back, and close it. One that has sent nothing yet, or more than a look takes, is left as it is:
    closed with something unread it would be broken off, and its client might never see why.
    """
    try:
        if not 0 < len(taken.recv(HEAD_BYTES, socket.MSG_PEEK)) < HEAD_BYTES:
            return False
        taken.recv(HEAD_BYTES)
        taken.send(CROWDED)
    except BlockingIOError:
        return False
    except OSError:  # it has left
        pass
    taken.close()
    return True


def most_connections() -> int:
    """How many may be open: as many as the limits say, told to come back or not, and never the files that the store needs."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = limits.CONNECTIONS + limits.TURNED_AWAY
    return most if files == resource.RLIM_INFINITY else max(min(most, files - limits.FILES_KEPT), 1)


def allow_files(most: int) -> None:
    """Let this process, and what it starts, have so many files open, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
