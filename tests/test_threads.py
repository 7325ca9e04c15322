"""Threads for work that takes long: so much at once, so much that waits, and no more."""

from __future__ import annotations

import asyncio
import threading

import pytest

from gateway.errors import Unavailable
from gateway.threads import Threads


def test_so_many_run_at_once_on_threads_of_that_name() -> None:
    together = threading.Barrier(2)
    lock, most, running = threading.Lock(), 0, 0

    def work() -> str:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
        together.wait(30)
        with lock:
            running -= 1
        return threading.current_thread().name

    async def run() -> list[str]:
        threads = Threads("works", threads=2, waiting=4)
        return await asyncio.gather(*(threads.run(work) for _ in range(6)))

    names = asyncio.run(run())
    assert {name.rpartition("_")[0] for name in names} == {"works"}
    assert (len(names), most) == (6, 2)


def test_more_than_can_wait_are_refused_and_a_place_is_given_back_whatever_happens() -> None:
    gate = threading.Event()

    def fail() -> None:
        gate.wait(30)
        raise OSError

    async def run() -> None:
        threads = Threads("works", threads=1, waiting=1)
        under_way = [asyncio.ensure_future(threads.run(fail)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="too many works are under way"):
            await threads.run(fail)
        gate.set()
        assert [type(failed) for failed in await asyncio.gather(*under_way, return_exceptions=True)] == [OSError, OSError]
        assert await threads.run(lambda: "done") == "done"

    asyncio.run(run())
