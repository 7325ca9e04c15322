"""Threads of one kind of work that takes long, so that it holds up neither the event loop nor what others wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gateway.errors import ShedFor, Unavailable

T = TypeVar("T")


class Threads:
    """Runs so many works at once, lets so many wait, and refuses the rest; `name` is what they are called, to whoever is
    refused too. A refusal is counted under `cause`."""

    def __init__(self, name: str, *, threads: int, waiting: int, cause: ShedFor = "other") -> None:
        self._name = name
        self._cause: ShedFor = cause
        self._most = threads + waiting
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._under_way = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Do a work and return what it does.

        Raises:
            Unavailable: too many are waiting already.
        """
        if self._under_way >= self._most:
            raise Unavailable(f"too many {self._name} are under way right now; try again", cause=self._cause)
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._under_way -= 1

    def begin(self, work: Callable[[], object]) -> None:
        """Have a work done that nobody waits for."""
        self._pool.submit(work)
