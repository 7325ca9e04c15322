"""Recent: so many and no more, and the ones that are asked for stay."""

from __future__ import annotations

from gateway.recent import Recent


def test_the_one_that_was_asked_for_longest_ago_goes() -> None:
    recent: Recent[str, int] = Recent(2)
    for key in ("a", "b"):
        recent.put(key, 1)
    assert recent.of("a", lambda: 2) == 1
    recent.put("c", 3)
    assert [key in recent for key in ("a", "b", "c")] == [True, False, True]
    assert (recent.get("a"), recent.get("b")) == (1, None)
    recent.put("d", 4)
    assert [key in recent for key in ("a", "c", "d")] == [True, False, True]
    assert len(recent) == 2


def test_a_value_is_made_once_even_when_it_is_none() -> None:
    made: list[str] = []
    recent: Recent[str, None] = Recent(2)
    for _ in range(3):
        recent.of("a", lambda: made.append("a"))
    assert made == ["a"]
