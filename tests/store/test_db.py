"""The database: how it is made, opened, hardened and closed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import duckdb
import pytest

from gateway.store.db import Database
from gateway.store.faults import StoreFailed, StoreRefused
from gateway.store.rows import Rows
from tests.store.samples import a_thing, things


def test_a_new_data_directory_is_its_owners_alone(database: Database, data: Path) -> None:
    assert data.stat().st_mode & 0o777 == 0o700
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in data.iterdir()} == {
        "peergate.duckdb": "0o600",
        "peergate.lock": "0o600",
        "peergate.mark": "0o600",
    }


def test_a_directory_that_was_open_to_others_is_closed_to_them_and_all_its_files_are(data: Path, migrations: Path) -> None:
    data.mkdir()
    data.chmod(0o755)
    before = os.umask(0o022)
    try:
        database = Database.create(data, migrations=migrations)
        database.write(a_thing("kept")).result()
        assert data.stat().st_mode & 0o777 == 0o700
        assert {path.name: oct(path.stat().st_mode & 0o777) for path in data.iterdir()} == {
            "peergate.duckdb": "0o600",
            "peergate.duckdb.wal": "0o600",
            "peergate.lock": "0o600",
            "peergate.mark": "0o600",
        }
        database.close()
    finally:
        os.umask(before)


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o702])
def test_a_directory_that_is_open_to_others_is_refused_with_the_remedy(
    database: Database, data: Path, migrations: Path, mode: int
) -> None:
    database.close()
    data.chmod(mode)
    with pytest.raises(StoreRefused, match=f"is open to other users of this machine: chmod 700 {data}"):
        Database.open(data, migrations=migrations)
    data.chmod(0o700)
    Database.open(data, migrations=migrations).close()


def test_a_database_whose_making_was_cut_short_is_made_whole_by_opening_it(data: Path, migrations: Path) -> None:
    whole = (migrations / "0001_init.sql").read_text()
    (migrations / "0001_init.sql").write_text(f"{whole} SELECT nothing;")
    with pytest.raises(StoreRefused, match="cannot be opened"):
        Database.create(data, migrations=migrations)
    (migrations / "0001_init.sql").write_text(whole)
    database = Database.open(data, migrations=migrations)
    assert database.write(a_thing("kept")).result() == 0
    database.close()


def test_a_second_database_is_not_made_over_the_first(database: Database, data: Path, migrations: Path) -> None:
    with pytest.raises(StoreRefused, match="there is a database in"):
        Database.create(data, migrations=migrations)


def test_a_database_that_is_not_there_is_not_made_by_opening(data: Path, migrations: Path) -> None:
    with pytest.raises(StoreRefused, match=r"there is no database in .*: make one with `peergate init"):
        Database.open(data, migrations=migrations)
    assert not data.exists()


def test_what_was_acknowledged_is_there_after_a_close(database: Database, data: Path, migrations: Path) -> None:
    database.write(a_thing("kept")).result()
    database.close()
    database.close()
    assert not database.files.wal.exists()
    again = Database.open(data, migrations=migrations)
    assert things(again) == ["kept"]
    again.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "COPY things TO '/tmp/things.csv'",
        "ATTACH '/tmp/other.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET threads = 64",
        "SELECT * FROM 'https://example.org/things.csv'",
    ],
)
def test_no_statement_reaches_outside(database: Database, statement: str) -> None:
    with pytest.raises(duckdb.Error, match=r"(?i)disabled|locked"):
        database.read_sync(lambda rows: rows.all(statement))


def test_the_settings_are_those_that_were_asked_for(data: Path, migrations: Path) -> None:
    database = Database.create(data, migrations=migrations, threads=1, memory_limit="200MB")
    settings = "SELECT current_setting('threads'), current_setting('memory_limit'), current_setting('TimeZone')"
    assert database.read_sync(lambda rows: rows.one(settings)) == (1, "190.7 MiB", "UTC")
    database.close()


def test_a_quote_in_the_path_is_part_of_the_path(tmp_path: Path, migrations: Path) -> None:
    database = Database.create(tmp_path / "it's", migrations=migrations)
    assert database.write(a_thing("kept")).result() == 0
    database.close()


def test_a_probe_runs_a_query(database: Database) -> None:
    assert asyncio.run(database.probe()) is True
    database.failure = "the database has failed"
    assert asyncio.run(database.probe()) is False


def test_a_checkpoint_empties_the_write_ahead_log_while_something_is_read(database: Database) -> None:
    database.write(a_thing("kept")).result()

    def ask(rows: Rows) -> int:
        for _ in rows.batches("SELECT range FROM range(100000)", size=10):
            database.checkpoint().result()
            return database.files.wal.stat().st_size if database.files.wal.exists() else 0
        return -1

    assert database.read_sync(ask) == 0


def test_nothing_reaches_a_connection_that_is_closed(database: Database) -> None:
    database.close()
    with pytest.raises(StoreFailed, match="the database is closed"):
        assert database.connection
