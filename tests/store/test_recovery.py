"""Recovery: the instance dies, is opened again or not, and everybody hears what became of theirs."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gateway.model.evidence import LogRow
from gateway.store.db import Database
from gateway.store.faults import StoreFailed
from gateway.store.log import Head, verify
from gateway.store.rows import Rows, Tx
from gateway.store.writer import Unit, record
from tests.store.samples import a_row, a_thing, busy_writer, things

REOPENED = 'store_reopened {"error":"FatalException","relaxed_rows_lost":0}'


def dies(_: Tx) -> None:
    raise duckdb.FatalException("the disk is on fire")


def test_when_the_instance_dies_what_waits_fails_and_the_store_goes_on_with_another(database: Database) -> None:
    database.write(a_thing("kept", row=a_row("1"))).result()
    reloaded: list[Any] = []
    database.on_reopen(lambda rows: reloaded.append((database.healthy, rows.value("SELECT count(*) FROM things"))))
    with busy_writer(database):
        database.note([a_row("note")])
        under_way: list[Future[Any]] = [database.write(Unit(dies)), database.write(a_thing("x", row=a_row("2")))]
        waiting = database.write(a_thing("y", row=a_row("3"), solo=True))
    for future in under_way:
        assert isinstance(future.exception(), StoreFailed)
    assert (database.healthy, reloaded, waiting.result()) == (True, [(False, 1)], 1)
    assert database.write(a_thing("after", row=a_row("4"))).result() == 2
    assert story(database) == ["1", "note", REOPENED, "3", "4"]
    assert database.read_sync(verify).verified == 5


def story(database: Database) -> list[str]:
    """The log: ids of decisions, and audit events with their details."""
    log = database.read_sync(lambda rows: rows.all("SELECT kind, id, action, details FROM log ORDER BY seq"))
    return [f"{action} {details}" if kind == "audit" else row_id for kind, row_id, action, details in log]


def test_notes_that_wait_when_the_instance_dies_are_written_afterwards(database: Database) -> None:
    def note_and_die(tx: Tx) -> None:
        database.note([a_row("waiting")])
        dies(tx)

    with busy_writer(database):
        database.note([a_row("riding")])
        died = database.write(Unit(note_and_die))
    assert isinstance(died.exception(), StoreFailed)
    database.write(record(a_row("after"))).result()
    assert story(database) == ["riding", REOPENED, "waiting", "after"]


def test_notes_that_are_committed_when_the_instance_dies_are_not_written_twice(database: Database) -> None:
    with busy_writer(database):
        database.note([a_row("note")])
        died = database.write(Unit(dies, solo=True))
    assert isinstance(died.exception(), StoreFailed)
    assert story(database) == ["note", REOPENED]


def test_a_note_that_the_database_refuses_is_counted_as_lost(database: Database) -> None:
    database.write(record(a_row("first"))).result()
    with busy_writer(database):
        database.note([a_row("note", data_version=1 << 80)])
        with_it = database.write(record(a_row("with it")))
    assert isinstance(with_it.exception(), StoreFailed)
    database.write(record(a_row("after"))).result()
    assert [line.partition(" ")[0] for line in story(database)] == ["first", "store_reopened", "after"]
    assert '"relaxed_rows_lost":1' in story(database)[1]


def test_what_the_log_shows_to_have_happened_is_acknowledged_though_the_mark_failed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_once(_: Head) -> None:
        monkeypatch.undo()
        raise OSError(errno.ENOSPC, "no space left on device")

    published: list[int] = []
    database.on_reopen(lambda rows: published.append(rows.value("SELECT count(*) FROM things")))
    with busy_writer(database):
        monkeypatch.setattr(database._mark, "write", fails_once)
        database.note([a_row("note")])
        futures = [database.write(a_thing(name, row=a_row(name))) for name in ("one", "two")]
    assert [future.result() for future in futures] == [0, 1]
    assert (published, things(database)) == ([2], ["one", "two"])
    assert story(database) == ["note", "one", "two", 'store_reopened {"error":"OSError","relaxed_rows_lost":0}']


def test_a_reader_that_sees_the_instance_die_has_it_opened_again(database: Database) -> None:
    reopened = threading.Event()
    database.on_reopen(lambda _: reopened.set())

    def ask(_: Rows) -> None:
        raise duckdb.FatalException("the disk is on fire")

    with pytest.raises(StoreFailed):
        database.read_sync(ask)
    reopened.wait()
    assert database.write(a_thing("after")).result() == 0


@pytest.mark.parametrize("log", [(), (a_row(),)])
def test_what_could_not_be_published_is_acknowledged_once_memory_is_loaded_again(
    database: Database, log: tuple[LogRow, ...]
) -> None:
    loaded: list[list[str]] = []
    database.on_reopen(lambda rows: loaded.append([name for (name,) in rows.all("SELECT name FROM things")]))

    def run(tx: Tx) -> None:
        tx.run("INSERT INTO things VALUES ('committed', 0, NULL)")
        tx.after_commit(lambda: 1 / 0)  # type: ignore[arg-type]

    assert database.write(Unit(run, log=log)).exception() is None
    assert database.write(a_thing("after")).result() == 1
    assert loaded == [["committed"]]


def test_without_the_mark_on_disk_nothing_is_acknowledged_and_the_store_stays_down(database: Database) -> None:
    [mark] = [fd for fd in Path("/proc/self/fd").iterdir() if fd.exists() and fd.readlink() == database.files.mark]
    with open("/dev/full", "r+b", buffering=0) as full:
        os.dup2(full.fileno(), int(mark.name))
    failed = database.write(record(a_row()))
    assert "may have happened; it could not be opened again" in str(failed.exception())
    assert (database.healthy, database.lost) == (False, True)
    with pytest.raises(StoreFailed):
        database.write(a_thing("late"))
    with pytest.raises(StoreFailed):
        database.note([a_row()])
    with pytest.raises(StoreFailed):
        database.read_sync(lambda rows: rows.value("SELECT 1"))


def test_reads_that_wait_when_the_store_stays_down_fail(database: Database) -> None:
    database.write(record(a_row())).result()
    go = threading.Event()
    under_way = [database._readers.submit(lambda _: go.wait(), snapshot=False) for _ in range(2)]
    while database._readers._queue:
        pass
    waiting = database._readers.submit(lambda _: None, snapshot=False)

    def vanish(_: Tx) -> None:
        database.files.database.unlink()
        database.files.wal.unlink()
        raise duckdb.FatalException("gone")

    lost = database.write(Unit(vanish))
    while database._readers._cursors:
        pass
    go.set()
    assert [future.result() for future in under_way] == [True, True]
    for failed in (waiting, lost):
        assert "could not be opened again" in str(failed.exception())
    database.close()


@pytest.mark.parametrize("rows", [(), (a_row(),)])
def test_a_database_that_vanished_is_not_replaced_by_an_empty_one(database: Database, rows: tuple[LogRow, ...]) -> None:
    database.write(record(*rows)).result()

    def vanish(_: Tx) -> None:
        database.files.database.unlink()
        database.files.wal.unlink(missing_ok=True)
        raise duckdb.FatalException("gone")

    assert "its file is gone" in str(database.write(Unit(vanish)).exception())
    assert not database.healthy
    assert not database.files.database.exists()


def test_a_function_that_leaves_the_database_closed_costs_the_next_unit_and_no_other(database: Database) -> None:
    database.write(a_thing("kept")).result()
    database.exclusive(lambda _: database.detach()).result()
    assert isinstance(database.write(a_thing("lost")).exception(), StoreFailed)
    assert database.write(a_thing("after")).result() == 1
