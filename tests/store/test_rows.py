"""Rows: what goes in comes out, with times that know their zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from gateway.store import rows as rows_module
from gateway.store.db import Database
from gateway.store.rows import Rows, Tx
from gateway.store.writer import Unit
from tests.store.samples import NOON, a_thing, things

INSERT = "INSERT INTO things SELECT unnest($1::VARCHAR[]), unnest($2::BIGINT[]), unnest($3::TIMESTAMP[])"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (NOON, NOON),
        (datetime(2026, 3, 1, 2, 0, tzinfo=timezone(timedelta(hours=14))), datetime(2026, 2, 28, 12, 0, tzinfo=UTC)),
        (datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
        (None, None),
    ],
)
def test_a_time_comes_back_as_the_same_moment_in_utc(database: Database, given: datetime | None, kept: datetime | None) -> None:
    database.write(Unit(lambda tx: tx.run("INSERT INTO things VALUES ('t', 0, $1)", given))).result()
    found = database.read_sync(lambda rows: rows.value("SELECT made_at FROM things WHERE made_at IS NOT DISTINCT FROM $1", given))
    assert found == kept
    assert found is None or found.tzinfo is UTC


@pytest.mark.parametrize("value", [datetime(2026, 3, 1), [NOON, datetime(2026, 3, 1)]])  # noqa: DTZ001  # refused for it
def test_a_time_without_a_zone_is_refused(database: Database, value: object) -> None:
    with pytest.raises(ValueError, match="a time without a zone"):
        database.read_sync(lambda rows: rows.value("SELECT $1", value))


@pytest.mark.parametrize(
    "value", [True, 7, -(2**63), "é\0", "", Decimal("12.340"), 0.5, date(2026, 3, 1), b"\x00\xff", ["a", None], []]
)
def test_a_value_comes_back_as_it_went_in(database: Database, value: object) -> None:
    assert database.read_sync(lambda rows: rows.value("SELECT $1", value)) == value


def test_times_inside_a_list_are_refused_on_the_way_out(database: Database) -> None:
    with pytest.raises(TypeError, match="select them as rows"):
        database.read_sync(lambda rows: rows.all("SELECT list(made_at) FROM things"))


def test_many_rows_go_in_with_one_statement(database: Database) -> None:
    def run(tx: Tx) -> tuple[int, int]:
        return tx.insert_many(INSERT, ["b", "a"], [1, 0], [NOON, None]), tx.insert_many(INSERT, [], [], [])

    assert database.write(Unit(run)).result() == (2, 0)
    assert things(database) == ["a", "b"]


def test_columns_of_unequal_length_are_refused(database: Database) -> None:
    with pytest.raises(ValueError, match=r"columns of unequal length: \[1, 2\]"):
        database.write(Unit(lambda tx: tx.insert_many(INSERT, ["b", "a"], [1], [NOON, None]))).result()


def test_a_change_says_how_many_rows_it_changed(database: Database) -> None:
    database.write(a_thing("a")).result()

    def run(tx: Tx) -> list[int]:
        statements = ("UPDATE things SET position = 5", "DELETE FROM things WHERE name = 'b'", "CREATE TABLE more (x BIGINT)")
        return [tx.run(statement) for statement in statements]

    assert database.write(Unit(run)).result() == [1, 0, 0]


def test_no_row_is_none(database: Database) -> None:
    def ask(rows: Rows) -> list[Any]:
        return [rows.one("SELECT * FROM things"), rows.value("SELECT name FROM things"), rows.all("SELECT * FROM things")]

    assert database.read_sync(ask) == [None, None, []]


def test_batches_hold_at_most_their_size_and_together_every_row(database: Database) -> None:
    def ask(rows: Rows) -> list[int]:
        return [len(batch) for batch in rows.batches("SELECT range FROM range($1)", 25, size=10)]

    assert database.read_sync(ask) == [10, 10, 5]


def test_two_statements_in_one_are_refused(database: Database) -> None:
    with pytest.raises(ValueError, match="too many values"):
        database.read_sync(lambda rows: rows.all("SELECT 1; SELECT 2"))


def test_the_memory_of_parsed_statements_is_bounded(database: Database) -> None:
    def ask(rows: Rows) -> list[int]:
        return [rows.value(f"SELECT {number}") for number in range(rows_module.PARSED_LIMIT + 5)]

    assert database.read_sync(ask)[-1] == rows_module.PARSED_LIMIT + 4
    assert len(rows_module._PARSED) <= rows_module.PARSED_LIMIT
