"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import passwords
from tests.builders import Gateway


@pytest.fixture(scope="module", autouse=True)
def _cheap_passwords() -> Iterator[None]:
    with passwords.cheap():
        yield


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway of its own for one test."""
    made = Gateway(tmp_path / "data")
    yield made
    made.close()
