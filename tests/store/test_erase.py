"""Erasure: the bytes are gone, the rest is there, and no moment to die is a bad one."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from gateway.store.backup import backup
from gateway.store.db import Database
from gateway.store.erase import rewrite
from gateway.store.faults import StoreFailed
from gateway.store.files import shred
from gateway.store.log import verify
from gateway.store.writer import Unit, record
from tests.store.samples import a_row, a_thing, logged, things

MARKER = "a sentence that has to go "
STEPS = ["link log", "checkpoint", "copy", "compare", "close", "link", "rename", "open", "shred"]


def fill(database: Database) -> None:
    for number in range(20):
        database.write(a_thing(f"{MARKER}{number}", row=a_row(f"{number}"))).result()
    database.write(a_thing("what stays")).result()
    database.write(Unit(lambda tx: tx.run("DELETE FROM things WHERE starts_with(name, $1)", MARKER))).result()


def uncompressed(source: Path, target: Path) -> bytes:
    """The bytes of an uncompressed copy of what a file shows, where a marker cannot hide behind compression."""
    with duckdb.connect(config={"force_compression": "uncompressed"}) as connection:
        connection.execute(f"ATTACH '{source}' AS source (READ_ONLY)")
        connection.execute(f"ATTACH '{target}' AS target")
        connection.execute("COPY FROM DATABASE source TO target")
    return target.read_bytes()


def test_what_was_deleted_is_found_before_and_not_after(data: Path, migrations: Path, tmp_path: Path) -> None:
    database = Database.create(data, migrations=migrations)
    for number in range(20):
        database.write(a_thing(f"{MARKER}{number}", row=a_row(f"{number}"))).result()
    database.close()
    assert MARKER.encode() in uncompressed(database.files.database, tmp_path / "control")

    database = Database.open(data, migrations=migrations)
    database.write(a_thing("what stays")).result()
    database.write(Unit(lambda tx: tx.run("DELETE FROM things WHERE starts_with(name, $1)", MARKER))).result()
    database.checkpoint().result()
    deleted_only = database.files.database.read_bytes()
    receipt = rewrite(database)
    assert things(database) == ["what stays"]
    database.close()
    assert MARKER.encode() in deleted_only
    assert MARKER.encode() not in database.files.database.read_bytes()
    assert MARKER.encode() not in uncompressed(database.files.database, tmp_path / "after")
    assert b"what stays" in (tmp_path / "after").read_bytes()
    assert receipt.tables == {"erased": 0, "log": 20, "schema_version": 1, "slices": 0, "things": 1}
    assert receipt.bytes_verified >= receipt.bytes_before


def test_the_old_file_and_its_log_are_zeros_before_they_are_unlinked(database: Database, tmp_path: Path) -> None:
    fill(database)
    wal = database.files.wal.stat().st_size
    receipt = rewrite(database)
    assert receipt.bytes_verified >= receipt.bytes_before + wal
    assert {path.name for path in database.files.data.iterdir()} == {"peergate.duckdb", "peergate.lock", "peergate.mark"}


def test_backups_are_named_as_not_covered(database: Database, tmp_path: Path) -> None:
    backup(database, tmp_path / "one")
    backup(database, tmp_path / "two")
    assert rewrite(database).backups_not_covered == (str(tmp_path / "one"), str(tmp_path / "two"))


def test_the_store_goes_on_in_the_new_file(database: Database) -> None:
    fill(database)
    rewrite(database)
    assert database.write(a_thing("after", row=a_row("after"))).result() == 1
    assert database.read_sync(verify).verified == 21


@pytest.mark.parametrize("step", STEPS)
def test_a_rewrite_that_fails_leaves_a_store_that_goes_on(database: Database, step: str) -> None:
    def stop(name: str) -> None:
        if name == step:
            raise OSError(errno.ENOSPC, "no space left on device")

    fill(database)
    with database.files.wal.open("rb") as wal:
        with pytest.raises(OSError, match="no space left"):
            rewrite(database, stop)
        assert leftovers(database) == set()
        if not database.files.wal.exists():
            assert set(wal.read()) == {0}
    assert things(database) == ["what stays"]
    assert database.write(a_thing("after")).result() == 1
    assert rewrite(database).tables["things"] == 2
    database.close()
    assert MARKER.encode() not in database.files.database.read_bytes()
    assert leftovers(database) == set()


def leftovers(database: Database) -> set[str]:
    """The names in the data directory that have no business there."""
    files = database.files
    belonging = {files.database, files.wal, files.lock, files.mark}
    return {path.name for path in files.data.iterdir() if path not in belonging}


def test_a_copy_that_does_not_fit_on_the_disk_is_a_fault_of_the_store_and_the_next_one_is_made(
    data: Path, migrations: Path
) -> None:
    command = [sys.executable, "-m", "tests.store.test_erase", str(data), str(migrations), "overflow"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said, *names = done.stdout.splitlines()
    assert said.startswith("the database cannot be copied: ")
    assert said.endswith("File too large")
    assert names == ["what stays", "peergate.duckdb", "peergate.lock", "peergate.mark"]


@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_at_any_step_leaves_a_whole_database_and_no_leftovers(data: Path, migrations: Path, step: str) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.store.test_erase", data, migrations, step], check=False)
    assert done.returncode == -signal.SIGKILL
    database = Database.open(data, migrations=migrations)
    assert things(database) == ["what stays"]
    assert logged(database) == [str(number) for number in range(20)]
    assert database.read_sync(verify).valid
    database.close()
    assert {path.name for path in data.iterdir()} == {"peergate.duckdb", "peergate.lock", "peergate.mark"}


def test_a_file_with_another_name_only_loses_this_one(tmp_path: Path) -> None:
    live, name = tmp_path / "live", tmp_path / "name"
    live.write_bytes(b"content" * 1_000_000)
    os.link(live, name)
    assert shred(name) == 0
    assert live.read_bytes() == b"content" * 1_000_000
    assert shred(live) == 7_000_000
    assert list(tmp_path.iterdir()) == []


def die(data: Path, migrations: Path, step: str) -> None:
    """Rewrite a database and be killed at a step."""
    database = Database.create(data, migrations=migrations)
    fill(database)
    rewrite(database, lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == step else None)


def overflow(data: Path, migrations: Path) -> None:
    """Rewrite a database twice, the first time while no file may grow to half its size, and say what came of it."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    database = Database.create(data, migrations=migrations)
    fill(database)
    database.write(record(*(a_row(f"{number}", details={"padding": os.urandom(5_000).hex()}) for number in range(500)))).result()
    database.checkpoint().result()
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (database.files.database.stat().st_size // 2, most[1]))
    try:
        rewrite(database)
    except StoreFailed as failed:
        os.write(1, f"{failed}\n".encode())
    resource.setrlimit(resource.RLIMIT_FSIZE, most)
    rewrite(database)
    os.write(1, "".join(f"{name}\n" for name in (*things(database), *sorted(os.listdir(data)))).encode())
    database.close()


if __name__ == "__main__":
    match sys.argv[3]:
        case "overflow":
            overflow(Path(sys.argv[1]), Path(sys.argv[2]))
        case step:
            die(Path(sys.argv[1]), Path(sys.argv[2]), step)
