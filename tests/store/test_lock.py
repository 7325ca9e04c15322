"""The lock: one process, one data directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.store.db import Database
from gateway.store.faults import StoreRefused
from tests.store.samples import a_thing

OPEN = """
import pathlib, sys
from gateway.store.db import Database
Database.open(pathlib.Path(sys.argv[1]), migrations=pathlib.Path(sys.argv[2]))
"""


def open_elsewhere(data: Path, migrations: Path) -> str:
    """Open the database in another process, and return the last line of what it says about it."""
    done = subprocess.run([sys.executable, "-c", OPEN, data, migrations], capture_output=True, text=True, check=False)
    return "opened" if done.returncode == 0 else done.stderr.splitlines()[-1]


def test_a_second_process_is_refused_with_a_sentence(database: Database, data: Path, migrations: Path) -> None:
    said = open_elsewhere(data, migrations)
    assert said.startswith("gateway.store.faults.StoreHeld: ")
    assert said.endswith(f"another process holds the data directory `{data}`: stop it, or use its HTTP interface")


def test_the_same_process_is_refused_as_well(database: Database, data: Path, migrations: Path) -> None:
    with pytest.raises(StoreRefused, match="another process holds"):
        Database.open(data, migrations=migrations)
    assert database.write(a_thing("still there")).result() == 0


def test_opening_and_closing_the_files_does_not_release_the_lock(database: Database, data: Path, migrations: Path) -> None:
    for path in data.iterdir():
        path.open("rb").close()
    assert "another process holds" in open_elsewhere(data, migrations)


def test_the_next_process_may_open_what_was_closed(database: Database, data: Path, migrations: Path) -> None:
    database.close()
    assert open_elsewhere(data, migrations) == "opened"


def test_a_refused_opening_lets_go_of_the_directory(database: Database, data: Path, migrations: Path) -> None:
    database.close()
    (migrations / "0003_gap.sql").write_text("")
    for _ in range(2):
        with pytest.raises(StoreRefused, match="has to come next"):
            Database.open(data, migrations=migrations)
