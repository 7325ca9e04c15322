"""The reference and the description of the API say what the table says."""

from __future__ import annotations

from pathlib import Path

from gateway.operations import openapi
from gateway.operations.reference import render
from gateway.operations.registry import OPERATIONS, OWN

API = Path(__file__).parents[2] / "docs" / "api.md"
OPENAPI = API.with_name("openapi.json")


def test_the_reference_is_that_of_the_table() -> None:
    assert API.read_text("utf-8") == render(OPERATIONS), "stale: python -m gateway.operations.reference > docs/api.md"


def test_the_description_is_that_of_the_table() -> None:
    assert OPENAPI.read_text("utf-8") == openapi.render((*OWN, *OPERATIONS)), "stale: peergate openapi > docs/openapi.json"
