"""Durability: kill -9, a lost end of the write-ahead log, a full disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.bench.kill import kill_trials, killed_writer
from gateway.cli.output import Progress
from gateway.store.db import Database
from gateway.store.faults import StoreBehind
from gateway.store.log import verify
from tests.store.samples import logged, things

TRIALS = int(os.environ.get("KILL_TRIALS", "5"))


def test_a_killed_process_loses_nothing_that_it_acknowledged(data: Path) -> None:
    done = kill_trials(data, TRIALS, Progress("killing"))
    assert done.acknowledged > TRIALS
    assert (done.lost, done.chains_broken) == (0, 0)


def test_a_write_ahead_log_that_lost_its_end_is_noticed(data: Path) -> None:
    Database.create(data).close()
    killed_writer(data, "x", after=50)
    wal = data / "peergate.duckdb.wal"
    os.truncate(wal, wal.stat().st_size // 2)
    with pytest.raises(StoreBehind, match="records are missing") as refused:
        Database.open(data)
    assert refused.value.missing > 0


def test_a_write_ahead_log_that_is_gone_is_noticed(data: Path) -> None:
    Database.create(data).close()
    acknowledged = killed_writer(data, "x", after=10)
    (data / "peergate.duckdb.wal").unlink()
    with pytest.raises(StoreBehind) as refused:
        Database.open(data)
    assert refused.value.missing >= len(acknowledged)


@pytest.mark.parametrize("limit", [400_000, 3_000_000])
def test_a_full_disk_fails_the_unit_and_keeps_what_was_acknowledged(data: Path, migrations: Path, limit: int) -> None:
    Database.create(data, migrations=migrations).close()
    command = [sys.executable, "-m", "tests.store.full_disk", str(data), str(migrations), str(limit)]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert all("may have happened" in failure for failure in said["failures"])
    assert said["healthy"] is ("could not be opened again" not in said["failures"][-1])
    database = Database.open(data, migrations=migrations)
    assert set(said["written"]) <= set(things(database))
    assert set(said["written"]) <= set(logged(database))
    assert database.read_sync(verify).valid
    database.close()
