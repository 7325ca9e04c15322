"""A real database in a temporary directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.store.db import Database
from tests.store.samples import SCHEMA


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    directory = tmp_path / "migrations"
    directory.mkdir()
    (directory / "0001_init.sql").write_text(SCHEMA)
    return directory


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def database(data: Path, migrations: Path) -> Iterator[Database]:
    made = Database.create(data, migrations=migrations)
    yield made
    made.close()
