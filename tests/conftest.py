"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.builders import Gateway

# INVARIANT: nothing of the product is imported with this file, which a worker of pytest-xdist reads before it measures.

# How busy the machine is says nothing about the product.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(scope="module", autouse=True)
def _cheap_passwords() -> Iterator[None]:
    from tests import passwords

    with passwords.cheap():
        yield


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway of its own for one test."""
    from tests.builders import Gateway

    made = Gateway(tmp_path / "data")
    yield made
    made.close()
