"""The readers: two at a time, one state at a time, and no way to write."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gateway import limits
from gateway.store.db import Database
from gateway.store.faults import StoreBusy, StoreFailed
from gateway.store.rows import Rows
from tests.store.samples import a_thing

COUNT = "SELECT count(*) FROM things"
ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range % 7 = b.range % 11"

HEAVY = "SELECT count(*) FROM (SELECT DISTINCT range::VARCHAR || repeat('x', 50) FROM range(3000000))"


def count(rows: Rows) -> int:
    number: int = rows.value(COUNT)
    return number


def test_exactly_two_reads_run_at_once(database: Database) -> None:
    running, most = 0, 0
    both, guard = threading.Barrier(2), threading.Lock()

    def ask(_: Rows) -> None:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        both.wait()
        with guard:
            running -= 1

    async def scenario() -> None:
        await asyncio.gather(*(database.read(ask) for _ in range(10)))

    asyncio.run(scenario())
    assert most == 2


def test_a_read_sees_what_was_acknowledged_before_it(database: Database) -> None:
    for number in range(20):
        database.write(a_thing(str(number))).result()
        assert database.read_sync(count) == number + 1


def test_a_snapshot_sees_one_state_and_a_plain_read_the_newest(database: Database) -> None:
    def ask(rows: Rows) -> tuple[int, int]:
        before = count(rows)
        database.write(a_thing(f"thing {threading.get_ident()} {before}")).result()
        return before, count(rows)

    assert database.read_sync(ask, snapshot=True) == (0, 0)
    assert database.read_sync(ask) == (1, 2)


def test_a_snapshot_cannot_write(database: Database) -> None:
    with pytest.raises(duckdb.TransactionException, match="read-only"):
        database.read_sync(lambda rows: rows.all("DELETE FROM things"), snapshot=True)
    assert database.read_sync(count, snapshot=True) == 0


def test_an_error_reaches_its_caller_and_the_reader_goes_on(database: Database) -> None:
    for _ in range(4):
        with pytest.raises(ZeroDivisionError):
            database.read_sync(lambda _: 1 / 0)
    assert database.read_sync(count) == 0


def test_a_query_that_cannot_spill_fails_alone(data: Path, migrations: Path) -> None:
    database = Database.create(data, migrations=migrations, memory_limit="50MB")
    database.files.spill.touch()  # where the directory would be made
    reopened: list[int] = []
    database.on_reopen(lambda _: reopened.append(1))
    with pytest.raises(StoreFailed, match="IOException"):
        database.read_sync(lambda rows: rows.value(HEAVY))
    assert database.write(a_thing("after")).result() == 0
    assert (database.read_sync(count), reopened) == (1, [])
    database.close()


def test_a_read_whose_caller_has_gone_is_left_out_and_a_full_queue_is_refused(database: Database) -> None:
    ran: list[int] = []
    go = threading.Event()

    async def scenario() -> None:
        waiting = [asyncio.create_task(database.read(lambda _: go.wait())) for _ in range(2)]
        await asyncio.sleep(0)
        while database._readers._queue:
            await asyncio.sleep(0)
        gone = asyncio.create_task(database.read(lambda _: ran.append(1)))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        others = [database._readers.submit(count, snapshot=False) for _ in range(limits.READER_QUEUE - 1)]
        with pytest.raises(StoreBusy):
            await database.read(count)
        go.set()
        await asyncio.gather(*waiting)
        for other in others:
            other.result()

    asyncio.run(scenario())
    assert ran == []


def test_a_close_interrupts_reads_and_fails_those_that_wait(data: Path, migrations: Path) -> None:
    database = Database.create(data, migrations=migrations)
    started = threading.Barrier(3)

    def endless(rows: Rows) -> None:
        started.wait()
        rows.value(ENDLESS)

    running: list[Future[Any]] = [database._readers.submit(endless, snapshot=False) for _ in range(2)]
    waiting = [database._readers.submit(count, snapshot=False) for _ in range(3)]
    waiting[0].cancel()
    started.wait()
    database.close()
    for future in (*running, *waiting[1:]):
        with pytest.raises(StoreFailed, match="the store is closed"):
            future.result()
    with pytest.raises(StoreFailed, match="the store is closed"):
        database.read_sync(count)
