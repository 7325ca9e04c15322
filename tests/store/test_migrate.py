"""Migrations: in order, once, and never behind the program's back."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from gateway.store.db import Database
from gateway.store.faults import StoreRefused
from gateway.store.migrate import MIGRATIONS, load
from tests.store.samples import NOON, things


def add(migrations: Path, name: str, sql: str) -> None:
    (migrations / name).write_text(sql)


def test_new_files_are_applied_in_order_and_recorded(data: Path, migrations: Path) -> None:
    Database.create(data, migrations=migrations).close()
    add(migrations, "0003_fill.sql", "INSERT INTO more VALUES (1); INSERT INTO more VALUES (2);")
    add(migrations, "0002_more.sql", "CREATE TABLE more (x BIGINT);")
    database = Database.open(data, migrations=migrations, clock=lambda: NOON)
    assert database.read_sync(lambda rows: rows.value("SELECT sum(x) FROM more")) == 3
    versions = database.read_sync(lambda rows: rows.all("SELECT version, applied_at FROM schema_version ORDER BY version"))
    assert versions[1:] == [(2, NOON), (3, NOON)]
    database.close()


def test_a_file_that_fails_leaves_nothing_of_itself(data: Path, migrations: Path) -> None:
    Database.create(data, migrations=migrations).close()
    add(migrations, "0002_half.sql", "CREATE TABLE half (x BIGINT); INSERT INTO nowhere VALUES (1);")
    with pytest.raises(StoreRefused, match="cannot be opened"):
        Database.open(data, migrations=migrations)
    add(migrations, "0002_half.sql", "CREATE TABLE half (x BIGINT);")
    Database.open(data, migrations=migrations).close()


def test_a_database_newer_than_the_program_is_refused(data: Path, migrations: Path) -> None:
    add(migrations, "0002_more.sql", "CREATE TABLE more (x BIGINT);")
    Database.create(data, migrations=migrations).close()
    (migrations / "0002_more.sql").unlink()
    with pytest.raises(StoreRefused, match="has schema 2, newer than this program, which knows 1"):
        Database.open(data, migrations=migrations)


def test_a_changed_file_is_refused(data: Path, migrations: Path) -> None:
    Database.create(data, migrations=migrations).close()
    with (migrations / "0001_init.sql").open("a") as file:
        file.write("-- harmless\n")
    with pytest.raises(StoreRefused, match=r"made with another `0001_init\.sql`"):
        Database.open(data, migrations=migrations)


@pytest.mark.parametrize("name", ["0003_gap.sql", "0001_twice.sql", "2_short.sql", "0002-dash.sql"])
def test_a_file_out_of_its_number_is_refused(migrations: Path, name: str) -> None:
    add(migrations, name, "")
    with pytest.raises(StoreRefused, match="has to come next"):
        load(migrations)


def test_the_write_ahead_log_is_empty_after_a_migration(database: Database) -> None:
    assert not database.files.wal.exists()
    assert things(database) == []


def test_the_programs_own_files_make_a_database(tmp_path: Path) -> None:
    database = Database.create(tmp_path / "data")
    assert database.read_sync(lambda rows: rows.value("SELECT max(version) FROM schema_version")) == len(load(MIGRATIONS))
    database.close()


def test_a_directory_that_is_no_database_is_refused(data: Path, migrations: Path) -> None:
    data.mkdir()
    (data / "peergate.duckdb").write_bytes(b"no database" * 1_000)
    with pytest.raises(StoreRefused, match="cannot be opened") as refused:
        Database.open(data, migrations=migrations)
    assert isinstance(refused.value.__cause__, duckdb.Error)
