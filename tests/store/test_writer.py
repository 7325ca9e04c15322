"""The writer: order, isolation, acknowledgement, and what it does when the instance dies."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import duckdb
import pytest

from gateway import limits
from gateway.store.db import Database
from gateway.store.faults import StoreBusy, StoreFailed
from gateway.store.inbox import BATCH
from gateway.store.rows import Rows, Tx
from gateway.store.writer import Unit, record
from tests.store.samples import a_row, a_thing, busy_writer, logged, things, transaction


def test_units_happen_in_the_order_of_the_queue(database: Database) -> None:
    names = [f"thing {number:03d}" for number in range(BATCH + 10)]
    with busy_writer(database):
        futures = [database.write(a_thing(name)) for name in names]
    assert [future.result() for future in futures] == list(range(len(names)))
    assert things(database) == names


def test_units_that_wait_together_share_a_transaction(database: Database) -> None:
    with busy_writer(database):
        first, second = database.write(Unit(transaction)), database.write(Unit(transaction))
    assert first.result() == second.result()


def test_a_solo_unit_has_a_transaction_of_its_own_after_what_was_queued_before_it(database: Database) -> None:
    with busy_writer(database):
        before = database.write(Unit(transaction))
        alone = database.write(Unit(transaction, solo=True))
        after = database.write(Unit(transaction))
    assert len({before.result(), alone.result(), after.result()}) == 3


def test_a_bad_unit_fails_alone(database: Database) -> None:
    with busy_writer(database):
        good = database.write(a_thing("good", row=a_row("1")))
        bad = database.write(a_thing("good", row=a_row("2")))
        better = database.write(a_thing("better", row=a_row("3")))
    assert (good.result(), better.result()) == (0, 1)
    with pytest.raises(duckdb.ConstraintException):
        bad.result()
    assert (things(database), logged(database)) == (["good", "better"], ["1", "3"])


def test_a_bad_unit_that_has_no_company_runs_once(database: Database) -> None:
    runs: list[int] = []

    def run(_: Tx) -> None:
        runs.append(1)
        raise LookupError("nothing there")

    with pytest.raises(LookupError):
        database.write(Unit(run)).result()
    assert runs == [1]


def test_a_unit_that_hides_an_error_of_the_database_fails(database: Database) -> None:
    def careless(tx: Tx) -> None:
        tx.run("INSERT INTO things VALUES ('lost', 1, NULL)")
        try:
            tx.run("INSERT INTO things VALUES ('lost', 2, NULL)")
        except duckdb.ConstraintException:
            pass

    with busy_writer(database):
        good, bad = database.write(a_thing("good")), database.write(Unit(careless))
    assert good.result() == 0
    with pytest.raises(duckdb.ConstraintException):
        bad.result()
    assert things(database) == ["good"]


def test_a_row_that_cannot_be_written_down_fails_its_unit_alone(database: Database) -> None:
    with busy_writer(database):
        good = database.write(a_thing("good", row=a_row("1")))
        bad = database.write(a_thing("bad", row=a_row("2", details={"amount": object()})))
    assert good.result() == 0
    with pytest.raises(TypeError):
        bad.result()
    assert (things(database), logged(database)) == (["good"], ["1"])


def test_the_rows_of_a_unit_come_before_those_it_appends(database: Database) -> None:
    def run(tx: Tx) -> None:
        tx.append(a_row("change"))

    with busy_writer(database):
        database.write(record(a_row("first")))
        last = database.write(Unit(run, log=(a_row("decision"),)))
    last.result()
    assert logged(database) == ["first", "decision", "change"]


def test_what_is_published_is_committed_and_not_yet_acknowledged(database: Database) -> None:
    seen: list[tuple[list[str], bool]] = []
    future: Future[None]

    def run(tx: Tx) -> None:
        tx.run("INSERT INTO things VALUES ('new', 0, NULL)")
        tx.after_commit(lambda: seen.append((things(database), future.done())))

    with busy_writer(database):
        future = database.write(Unit(run))
    future.result()
    assert seen == [(["new"], False)]


def test_nothing_is_published_of_a_unit_that_failed_and_once_of_one_that_was_retried(database: Database) -> None:
    published: list[str] = []

    def good(tx: Tx) -> None:
        tx.after_commit(lambda: published.append("good"))

    def bad(tx: Tx) -> None:
        tx.after_commit(lambda: published.append("bad"))
        raise ValueError("no")

    with busy_writer(database):
        futures: list[Future[Any]] = [database.write(Unit(good)), database.write(Unit(bad))]
    futures[0].result()
    assert isinstance(futures[1].exception(), ValueError)
    assert published == ["good"]


def test_notes_are_committed_without_anybody_waiting(database: Database) -> None:
    database.note([a_row("1"), a_row("2")])
    for _ in range(10_000):
        if found := logged(database):
            break
    assert found == ["1", "2"]


def test_notes_ride_along_with_the_next_commit_before_its_rows(database: Database) -> None:
    with busy_writer(database):
        database.note([a_row("note")])
        database.note([a_row("another")])
        unit = database.write(record(a_row("unit")))
    unit.result()
    assert logged(database) == ["note", "another", "unit"]


def test_notes_survive_a_bad_unit_they_ride_with(database: Database) -> None:
    with busy_writer(database):
        database.note([a_row("note")])
        bad = database.write(Unit(lambda tx: tx.run("SELECT nothing")))
    assert isinstance(bad.exception(), duckdb.BinderException)
    assert logged(database) == ["note"]


def test_notes_have_no_part_in_the_transaction_of_a_solo_unit(database: Database) -> None:
    runs: list[int] = []

    def run(tx: Tx) -> None:
        runs.append(tx.value("SELECT count(*) FROM log"))
        raise LookupError("nothing there")

    with busy_writer(database):
        database.note([a_row("note")])
        alone = database.write(Unit(run, solo=True))
    assert isinstance(alone.exception(), LookupError)
    assert (runs, logged(database)) == ([1], ["note"])


def test_notes_are_on_disk_before_an_exclusive_function_runs(database: Database) -> None:
    with busy_writer(database):
        database.note([a_row("note")])
        count = database.exclusive(lambda connection: Rows(connection).value("SELECT count(*) FROM log"))
    assert count.result() == 1


def test_notes_are_committed_at_the_close(data: Any, migrations: Any) -> None:
    database = Database.create(data, migrations=migrations)
    database.note([a_row("note")])
    database.close()
    reopened = Database.open(data, migrations=migrations)
    assert logged(reopened) == ["note"]
    reopened.close()


@pytest.mark.parametrize("bad", [{"details": {"x": object()}}, {"id": "\ud800"}, {"slice_bodies": {"h": "\ud800"}}])
def test_a_note_that_cannot_be_written_down_is_refused_to_its_caller(database: Database, bad: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        database.note([a_row(**bad)])


def test_a_full_queue_is_refused_and_goes_on_when_it_has_emptied(database: Database) -> None:
    with busy_writer(database):
        futures = [database.write(Unit(lambda _: None)) for _ in range(limits.WRITER_QUEUE)]
        with pytest.raises(StoreBusy):
            database.write(Unit(lambda _: None))
        with pytest.raises(StoreBusy):
            database.note([a_row()] * (limits.WRITER_QUEUE + 1))
    for future in futures:
        future.result()
    assert database.write(a_thing("later")).result() == 0


def test_an_exclusive_function_gives_its_error_to_its_caller(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        database.exclusive(lambda _: 1 / 0).result()
    assert database.write(a_thing("later")).result() == 0


def test_a_change_cannot_be_cancelled_once_it_is_queued(database: Database) -> None:
    with busy_writer(database):
        future = database.write(a_thing("kept"))
        assert not future.cancel()
    assert (future.result(), things(database)) == (0, ["kept"])


def test_a_change_happens_though_its_caller_is_cancelled(database: Database) -> None:
    async def scenario() -> None:
        with busy_writer(database):
            task = asyncio.create_task(database.awrite(a_thing("kept")))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await database.awrite(a_thing("later")) == 1

    asyncio.run(scenario())
    assert things(database) == ["kept", "later"]


def test_a_closed_store_takes_nothing(data: Any, migrations: Any) -> None:
    database = Database.create(data, migrations=migrations)
    database.close()
    with pytest.raises(StoreFailed, match="the store is closed"):
        database.write(a_thing("late"))
    with pytest.raises(StoreFailed, match="the store is closed"):
        database.note([a_row()])


def test_a_unit_that_says_no_before_it_changes_anything_costs_the_others_nothing(database: Database) -> None:
    published: list[str] = []

    def refuse(tx: Tx) -> None:
        tx.append(a_row("refused"))
        tx.after_commit(lambda: published.append("refused"))
        raise LookupError("no")

    with busy_writer(database):
        before = database.write(Unit(transaction))
        refused = database.write(Unit(refuse, log=(a_row("asked"),)))
        after = database.write(Unit(transaction))
    with pytest.raises(LookupError, match="no"):
        refused.result()
    assert before.result() == after.result()
    assert (published, {"refused", "asked"} & set(logged(database))) == ([], set())
