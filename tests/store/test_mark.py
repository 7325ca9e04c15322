"""The mark: it knows the last acknowledged row, survives a torn write, and refuses a log that fell behind."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from gateway.store.db import Database
from gateway.store.faults import StoreBehind, StoreRefused
from gateway.store.log import ORIGIN, Head
from gateway.store.mark import Mark
from gateway.store.writer import record
from tests.store.samples import a_row, logged

BLOCK = 4_096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mark"


@pytest.fixture
def kept(data: Path, migrations: Path) -> Path:
    """The data directory of a closed database with three rows in its log."""
    database = Database.create(data, migrations=migrations)
    for name in ("1", "2", "3"):
        database.write(record(a_row(name))).result()
    database.close()
    return data


def tamper(data: Path, statement: str) -> None:
    with duckdb.connect(str(data / "peergate.duckdb")) as connection:
        connection.execute(statement)


def read(path: Path) -> Head | None:
    mark = Mark(path)
    try:
        return mark.read()
    finally:
        mark.close()


def write(path: Path, *seqs: int) -> None:
    mark = Mark(path)
    mark.read()
    for seq in seqs:
        mark.write(Head(seq, f"{seq:064x}"))
    mark.close()


def test_the_newest_mark_is_read_whichever_slot_holds_it(path: Path) -> None:
    assert read(path) is None
    for seq in range(1, 6):
        write(path, seq)
        assert read(path) == Head(seq, f"{seq:064x}")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("torn", range(96))
def test_a_torn_write_leaves_the_mark_before_it(path: Path, torn: int) -> None:
    write(path, 1, 2)
    with path.open("r+b") as file:
        file.seek(BLOCK + torn)
        file.write(b"\xff")
    assert read(path) == (Head(1, f"{1:064x}") if torn < 95 else Head(2, f"{2:064x}"))


def test_a_mark_with_both_slots_damaged_says_nothing(path: Path) -> None:
    write(path, 1, 2)
    path.write_bytes(b"\x00" * 2 * BLOCK)
    assert read(path) is None


def test_a_log_that_ends_before_the_mark_is_refused_with_the_number_of_rows(kept: Path, migrations: Path) -> None:
    tamper(kept, "DELETE FROM log WHERE seq > 1")
    with pytest.raises(StoreBehind, match="ends at record 1, but record 3 was acknowledged: 2 records are missing") as refused:
        Database.open(kept, migrations=migrations)
    assert refused.value.missing == 2


def test_a_log_that_lost_everything_is_refused(kept: Path, migrations: Path) -> None:
    tamper(kept, "DELETE FROM log")
    with pytest.raises(StoreBehind, match="3 records are missing"):
        Database.open(kept, migrations=migrations)


def test_a_log_with_another_row_at_the_mark_is_refused(kept: Path, migrations: Path) -> None:
    tamper(kept, "UPDATE log SET hash = repeat('0', 64) WHERE seq = 3")
    with pytest.raises(StoreBehind, match="record 3 of the log is not the one that was acknowledged"):
        Database.open(kept, migrations=migrations)


def test_a_mark_behind_the_log_is_moved_up(kept: Path, migrations: Path) -> None:
    newest = read(kept / "peergate.mark")
    assert newest is not None
    mark = (kept / "peergate.mark").read_bytes()
    slots = [mark[:BLOCK], mark[BLOCK:]]
    older = [slot for slot in slots if newest.hash.encode() not in slot]
    (kept / "peergate.mark").write_bytes(older[0])
    Database.open(kept, migrations=migrations).close()
    assert read(kept / "peergate.mark") == newest


def test_a_missing_mark_is_refused_until_it_is_accepted_on_purpose(kept: Path, migrations: Path) -> None:
    newest = read(kept / "peergate.mark")
    (kept / "peergate.mark").unlink()
    for _ in range(2):
        with pytest.raises(StoreRefused, match="accept_missing_mark"):
            Database.open(kept, migrations=migrations)
    Database.open(kept, migrations=migrations, accept_missing_mark=True).close()
    assert read(kept / "peergate.mark") == newest
    database = Database.open(kept, migrations=migrations)
    assert logged(database) == ["1", "2", "3"]
    database.close()


def test_a_new_database_is_marked_at_the_origin(database: Database) -> None:
    assert read(database.files.mark) == ORIGIN
