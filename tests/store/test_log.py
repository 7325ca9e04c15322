"""The chain: what is written down, and that every kind of tampering is found at the first row that it touches."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gateway.model.evidence import LogRow
from gateway.store.db import Database
from gateway.store.log import ORIGIN, SELECTED, Log, Verification, encode, line, verify
from gateway.store.rows import Rows
from gateway.store.writer import Unit, record
from tests.store.samples import NOON, a_row, busy_writer

ROWS = 12


@pytest.fixture
def log_file(data: Path, migrations: Path) -> Path:
    """A closed database with a log of `ROWS` rows, of which every other one has a slice."""
    database = Database.create(data, migrations=migrations)
    for number in range(1, ROWS + 1):
        slices = {"slices": ("abc",), "slice_bodies": {"abc": "[]"}} if number % 2 else {}
        database.write(record(a_row(f"row {number}", details={"é": number, "a": [True, None]}, **slices))).result()
    database.close()
    return data / "peergate.duckdb"


@pytest.fixture
def outsider(log_file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Somebody with the file and no gateway."""
    with duckdb.connect(str(log_file)) as connection:
        yield connection


def found(outsider: duckdb.DuckDBPyConnection, **options: Any) -> Verification:
    return verify(Rows(outsider), **options)


def test_a_row_is_canonical_json_and_its_hash_follows_the_one_before(outsider: duckdb.DuckDBPyConnection) -> None:
    *stored, digest = Rows(outsider).all(f"SELECT {SELECTED}, hash FROM log WHERE seq = 1")[0]
    text = line(tuple(stored))
    assert text == (
        '{"action":"context","at":"2026-03-01T12:00:00.123456Z","bundle":"bundle","data_version":7,"deny_kind":null,'
        '"details":{"a":[true,null],"\\u00e9":1},"id":"row 1","kind":"decision","org_id":"org","outcome":"allow",'
        '"policies":["observer-reads"],"principal_id":"agent","principal_type":"Agent","request_id":"request",'
        '"resource_id":"peer","resource_type":"Peer","seq":1,"slices":["abc"]}'
    )
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert digest == hashlib.sha256(f"{ORIGIN.hash}\n{text}".encode()).hexdigest()


def test_the_zone_of_a_time_does_not_matter_and_its_absence_is_refused() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=-3)))
    assert encode(a_row(at=elsewhere)).before == encode(a_row()).before
    with pytest.raises(ValueError, match="a time without a zone"):
        encode(a_row(at=datetime(2026, 3, 1)))  # noqa: DTZ001  # refused for it


def test_an_empty_outcome_is_hashed_as_it_is_stored(database: Database) -> None:
    database.write(record(a_row(outcome="", deny_kind=""))).result()
    assert asyncio.run(database.read(verify)).valid


AWKWARD = ["", "'", "'); DROP TABLE log; --", '"', "\\", "\0", "\n\r\t", "\u2028 é 東 🎉", "$1", "NULL", " x ", "[1, 2]"]


@pytest.mark.parametrize("text", AWKWARD, ids=range(len(AWKWARD)))
def test_every_text_is_stored_as_it_is(database: Database, text: str) -> None:
    row = a_row("here", resource_id=text, request_id=text, policies=(text,), details={"text": text})
    database.write(record(row)).result()
    columns = "resource_id, request_id, policies, details, outcome, deny_kind"
    [kept] = asyncio.run(database.read(lambda rows: rows.all(f"SELECT {columns} FROM log WHERE id = 'here'")))
    assert (kept[0], kept[1], json.loads(kept[2]), json.loads(kept[3])["text"]) == (text, text, [text], text)
    assert kept[4:] == (row.outcome, row.deny_kind)
    assert asyncio.run(database.read(verify)).valid


@pytest.mark.parametrize("end", ["\x1e", "\x1f"], ids=["row", "column"])
@pytest.mark.parametrize("column", ["id", "resource_id", "request_id", "deny_kind"])
def test_a_text_that_would_end_a_column_or_a_row_is_refused(column: str, end: str) -> None:
    with pytest.raises(ValueError, match="ends columns or rows"):
        encode(a_row("here", **{column: f"a{end}b"}))


def test_a_log_that_nobody_touched_holds(outsider: duckdb.DuckDBPyConnection) -> None:
    whole = found(outsider)
    assert whole == Verification(True, ROWS, ROWS, None, ROWS, whole.head_hash)
    assert found(outsider, from_seq=4, limit=3) == Verification(True, 3, 3, None, 6, found(outsider, limit=6).head_hash)
    assert found(outsider, from_seq=99) == Verification(True, 0, 0, None, ROWS, whole.head_hash)


def test_an_empty_log_holds(database: Database) -> None:
    assert database.read_sync(verify) == Verification(True, 0, 0, None, *ORIGIN)


CHANGES = [
    "kind = 'audit'", "id = 'row 6'", "\"at\" = \"at\" + INTERVAL 1 MICROSECOND", "org_id = 'x'", "principal_type = 'Human'",
    "principal_id = 'x'", "action = 'x'", "resource_type = 'x'", "resource_id = 'x'", "outcome = 'deny'", "outcome = NULL",
    "deny_kind = 'stale'", "policies = '[]'", "bundle = 'x'", "data_version = 8", "slices = '[]'", "request_id = 'x'",
    "details = '{}'", "details = details || ' '", "details = 'no JSON'", "details = repeat('[', 100000)", "hash = upper(hash)",
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_row_is_named(outsider: duckdb.DuckDBPyConnection, change: str) -> None:
    outsider.execute(f"UPDATE log SET {change} WHERE seq = 5")
    name = Rows(outsider).value("SELECT id FROM log WHERE seq = 5")
    assert found(outsider) == Verification(False, 5, 4, name, 4, found(outsider, limit=4).head_hash)


def test_a_row_cannot_be_cut_at_other_columns_into_the_same_text(database: Database, data: Path) -> None:
    """Details that look like the columns behind them let an outsider make another row of the very text that was hashed."""
    lookalike = {"a": 0, "id": "forged", "kind": "decision", "org_id": "org", "outcome": "allow", "policies": ["forged"]}
    database.write(record(a_row("genuine", details=lookalike))).result()
    database.close()
    with duckdb.connect(str(data / "peergate.duckdb")) as outsider:
        genuine = Rows(outsider).one(f"SELECT {SELECTED} FROM log")
        outsider.execute(
            "UPDATE log SET id = 'forged', details = $1, policies = $2",
            [
                '{"a":0',
                '["forged"]},"id":"genuine","kind":"decision","org_id":"org","outcome":"allow","policies":["observer-reads"]',
            ],
        )
        forged = Rows(outsider).one(f"SELECT {SELECTED} FROM log")
        assert genuine is not None
        assert forged is not None
        assert line(forged) == line(genuine)
        assert found(outsider).broken_at_id == "forged"


TAMPERING = {
    "removed": ("DELETE FROM log WHERE seq = 5", "row 6"),
    "removed first": ("DELETE FROM log WHERE seq = 1", "row 2"),
    "removed and closed up": ("DELETE FROM log WHERE seq = 5; UPDATE log SET seq = seq - 1 WHERE seq > 5", "row 6"),
    "exchanged": ("UPDATE log SET seq = CASE seq WHEN 5 THEN 6 ELSE 5 END WHERE seq IN (5, 6)", "row 6"),
    "inserted": ("INSERT INTO log SELECT * REPLACE (13 AS seq, 'new' AS id) FROM log WHERE seq = 12", "new"),
    "inserted in front": ("INSERT INTO log SELECT * REPLACE (0 AS seq, 'new' AS id) FROM log WHERE seq = 1", "new"),
    "replayed": ("UPDATE log SET seq = seq + 1 WHERE seq > 5; INSERT INTO log SELECT * REPLACE (6 AS seq) FROM log WHERE seq = 5",
                 "row 5"),
}  # fmt: skip


@pytest.mark.parametrize(("statements", "name"), TAMPERING.values(), ids=TAMPERING)
def test_a_row_out_of_its_place_is_named(outsider: duckdb.DuckDBPyConnection, statements: str, name: str) -> None:
    for statement in statements.split(";"):
        outsider.execute(statement)
    report = found(outsider)
    assert (report.valid, report.broken_at_id, report.verified) == (False, name, report.head_seq)


def test_rows_missing_at_the_end_of_a_page_are_noticed(outsider: duckdb.DuckDBPyConnection) -> None:
    outsider.execute("DELETE FROM log WHERE seq BETWEEN 5 AND 8")
    assert found(outsider, limit=6).broken_at_id == "row 9"


def test_a_walk_that_starts_behind_a_missing_row_does_not_hold(outsider: duckdb.DuckDBPyConnection) -> None:
    outsider.execute("DELETE FROM log WHERE seq = 5")
    assert found(outsider, from_seq=6).broken_at_id == "row 6"


def test_the_walk_goes_on_from_page_to_page(database: Database) -> None:
    database.write(record(*(a_row(f"row {number}") for number in range(2_500)))).result()
    assert database.read_sync(verify).verified == 2_500


NAMING = {"h": '[{"uid":{"id":"gone","type":"Peer"}}]', "i": '[{"uid":{"id":"gone too","type":"Peer"}}]'}
LATER = {"j": '[{"attrs":{"peers":[{"id":"other"},{"id":"gone"}]}}]', "k": '[{"attrs":{"name":"\\"id\\":\\"gone\\""}}]'}


def deciding_over(bodies: dict[str, str]) -> LogRow:
    return a_row(slices=tuple(bodies), slice_bodies=bodies)


def erasing(erased: str) -> Unit[int]:
    return Unit(lambda tx: tx.erase_id(erased), solo=True)


def kept(database: Database) -> list[str]:
    """The hashes of the slices that are stored."""
    return [digest for (digest,) in database.read_sync(lambda rows: rows.all("SELECT hash FROM slices ORDER BY hash"))]


def test_a_slice_is_stored_once(database: Database) -> None:
    for _ in range(2):
        database.write(record(deciding_over(NAMING))).result()
    assert database.read_sync(lambda rows: dict(rows.all("SELECT hash, body FROM slices"))) == NAMING


def test_a_slice_that_names_what_was_erased_is_never_stored_again(database: Database, data: Path, migrations: Path) -> None:
    database.write(record(deciding_over(NAMING))).result()
    assert database.write(erasing("gone")).result() == 1
    assert kept(database) == ["i"]
    database.write(record(deciding_over(NAMING | LATER))).result()
    assert kept(database) == ["i", "k"]
    database.close()
    reopened = Database.open(data, migrations=migrations)
    reopened.write(record(deciding_over(NAMING | LATER))).result()
    assert kept(reopened) == ["i", "k"]
    reopened.close()


def test_a_slice_that_was_noted_is_erased_with_the_others(database: Database) -> None:
    with busy_writer(database):
        database.note([deciding_over(NAMING)])
        erased = database.write(erasing("gone"))
    assert (erased.result(), kept(database)) == (1, ["i"])


def test_a_slice_is_not_stored_by_the_transaction_that_erases_what_it_names(database: Database) -> None:
    database.write(Unit(erasing("gone").run, log=(deciding_over(NAMING | LATER),))).result()
    assert kept(database) == ["i", "k"]


def test_the_memory_of_stored_slices_is_bounded(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Log, "SLICES_KNOWN", 2)
    for name in ("a", "b", "c", "a"):
        database.write(record(a_row(slices=(name,), slice_bodies={name: "[]"}))).result()
    assert database.read_sync(lambda rows: rows.value("SELECT count(*) FROM slices")) == 3
