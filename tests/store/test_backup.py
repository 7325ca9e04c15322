"""Backups: whole, of one moment, and data directories themselves."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from gateway.store.backup import backup
from gateway.store.db import Database
from gateway.store.duplicate import duplicate
from gateway.store.faults import StoreFailed, StoreRefused
from gateway.store.log import verify
from gateway.store.writer import record
from tests.store.samples import a_row, a_thing, logged, things


def test_a_backup_opens_as_a_data_directory_and_its_chain_holds(database: Database, tmp_path: Path, migrations: Path) -> None:
    database.write(a_thing("kept", row=a_row("1"))).result()
    steps: list[str] = []
    counts = backup(database, tmp_path / "backup", steps.append)
    database.write(a_thing("later", row=a_row("2"))).result()
    assert counts == {"erased": 0, "log": 1, "schema_version": 1, "slices": 0, "things": 1}
    assert steps == ["checkpoint", "copy", "compare", "move"]
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in (tmp_path / "backup").iterdir()} == {
        "peergate.duckdb": "0o600",
        "peergate.mark": "0o600",
    }
    restored = Database.open(tmp_path / "backup", migrations=migrations)
    assert (things(restored), logged(restored), restored.read_sync(verify).valid) == (["kept"], ["1"], True)
    restored.write(record(a_row("after"))).result()
    restored.close()
    assert things(database) == ["kept", "later"]


def test_a_backup_never_replaces_what_is_there(database: Database, tmp_path: Path) -> None:
    for target in (tmp_path, tmp_path / "no" / "parent"):
        with pytest.raises(StoreRefused, match="name a new directory"):
            backup(database, target)


def test_a_backup_that_fails_leaves_nothing_and_the_store_goes_on(database: Database, tmp_path: Path) -> None:
    def stop(step: str) -> None:
        if step == "compare":
            raise InterruptedError

    before = {path.name for path in database.files.data.iterdir()}
    with pytest.raises(InterruptedError):
        backup(database, tmp_path / "backup", stop)
    assert not (tmp_path / "backup").exists()
    assert {path.name for path in database.files.data.iterdir()} == before
    backup(database, tmp_path / "backup")


def test_a_copy_that_differs_is_not_used(database: Database) -> None:
    def spoil(connection: duckdb.DuckDBPyConnection) -> None:
        def step(name: str) -> None:
            if name == "compare":
                connection.execute("CREATE TABLE fresh.extra (x BIGINT)")

        duplicate(connection, database.files.fresh, step)

    with pytest.raises(StoreFailed, match="the copy differs"):
        database.exclusive(spoil).result()
    assert not database.files.fresh.exists()
