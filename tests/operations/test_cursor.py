"""Cursors: good for the question, the caller and the moment they were made for, and for nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.errors import Invalid
from gateway.operations.cursor import Position, binding, cursor_key, cursor_of, position_of

KEY = cursor_key(b"secret")
BOUND = binding("caller", {"project_id": "alpha"}, 10)
PLACES: tuple[Position, ...] = (0, 501, (datetime(2026, 3, 4, 10, 0, 0, 123456, UTC), "00000000-0000-4000-8000-000000000000"))


@pytest.mark.parametrize("place", PLACES)
def test_a_cursor_gives_back_its_position(place: Position) -> None:
    assert position_of(KEY, BOUND, cursor_of(KEY, BOUND, place)) == place


@pytest.mark.parametrize(
    ("key", "bound"),
    [
        (cursor_key(b"another secret"), BOUND),
        (b"secret", BOUND),
        (KEY, binding("another caller", {"project_id": "alpha"}, 10)),
        (KEY, binding("caller", {"project_id": "beta"}, 10)),
        (KEY, binding("caller", {"project_id": "alpha"}, 11)),
    ],
)
def test_a_cursor_of_another_key_or_question_is_refused(key: bytes, bound: bytes) -> None:
    with pytest.raises(Invalid) as refused:
        position_of(key, bound, cursor_of(KEY, BOUND, 7))
    assert refused.value.field == "cursor"
    assert "cursor" in refused.value.detail


def test_a_cursor_with_any_character_changed_added_or_dropped_is_refused() -> None:
    good = cursor_of(KEY, BOUND, 7)
    bad = [good[:at] + ("A" if good[at] != "A" else "B") + good[at + 1 :] for at in range(len(good))]
    bad += [good[:-1], good + "=", good + "A", good + "\n", " " + good, "", "7", "é", "=" * 8, "A" * 4_000, good.rstrip("=")]
    for cursor in bad:
        if cursor == good:
            continue
        with pytest.raises(Invalid):
            position_of(KEY, BOUND, cursor)
