"""Here passwords cost what they cost people."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _cheap_passwords() -> None:
    """Not in this room."""
