"""The reference of the API says what the table says."""

from __future__ import annotations

from pathlib import Path

from gateway.operations.reference import render
from gateway.operations.registry import OPERATIONS

API = Path(__file__).parents[2] / "docs" / "api.md"


def test_the_reference_is_that_of_the_table() -> None:
    assert API.read_text("utf-8") == render(OPERATIONS), "stale: python -m gateway.operations.reference > docs/api.md"
