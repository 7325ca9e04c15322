"""A child that ends well has still said something, or what it read does not load."""

from __future__ import annotations

import pytest

from gateway.policy import child

FINDING = '{"file": "a.cedar", "line": 2, "policy_id": "a", "message": "is wrong"}'


def told(written: str) -> list[str]:
    return [str(found) for found in child.ask(("-c", f"print({written!r})"), "", seconds=60)]


def test_what_a_child_writes_is_what_is_found() -> None:
    assert told("[]") == []
    assert told(f"[{FINDING}]") == ["a.cedar:2: `a`: is wrong"]


@pytest.mark.parametrize("written", ["", "{", "[]]", "null", "{}", '""', "1", "[1]", "[{}]", "\\x00", f"{FINDING}"])
def test_a_child_that_says_nothing_that_is_understood_has_found_something(written: str) -> None:
    assert told(written) == [":0: the process that read it has not said what it found"]
