"""Turns of the model: questions before texts, and nobody behind the whole of a long text."""

from __future__ import annotations

from gateway.embedding.turns import AT_ONCE, CHARACTERS, Turns

LONG = "x" * 1_000
FOUR = CHARACTERS // len(LONG)


def taken(turns: Turns) -> list[str]:
    return [text[:2] for text, _ in turns.next()]


def long(name: str, pieces: int) -> list[str]:
    return [name + LONG[2:]] * pieces


def test_short_texts_share_a_turn_in_the_order_they_came() -> None:
    turns = Turns()
    for name in ("a", "b"):
        turns.wait_for([name] * 2, question=False)
    assert taken(turns) == ["a", "b", "a", "b"]


def test_a_turn_is_bounded_in_texts_and_in_characters() -> None:
    turns = Turns()
    turns.wait_for(["s"] * (AT_ONCE + 1), question=False)
    assert (taken(turns), taken(turns)) == (["s"] * AT_ONCE, ["s"])
    turns.wait_for(long("l1", FOUR + 1), question=False)
    assert (taken(turns), taken(turns)) == (["l1"] * FOUR, ["l1"])


def test_a_short_text_does_not_wait_for_the_rest_of_a_long_one() -> None:
    turns = Turns()
    for name in ("l1", "l2"):
        turns.wait_for(long(name, 100), question=False)
    taken(turns)
    turns.wait_for(["s"], question=False)
    assert "s" in taken(turns)


def test_a_question_goes_before_every_text() -> None:
    turns = Turns()
    turns.wait_for(long("l1", 100), question=False)
    turns.wait_for(["q"], question=True)
    assert taken(turns) == ["q", "l1"]


def test_questions_without_end_hold_no_text_up() -> None:
    turns = Turns()
    turns.wait_for(["t1", "t2"], question=False)
    turns.wait_for(["q"] * 3 * AT_ONCE, question=True)
    assert [taken(turns)[-1] for _ in range(3)] == ["t1", "t2", "q"]


def test_what_nobody_waits_for_any_more_takes_no_turn() -> None:
    turns = Turns()
    for future in turns.wait_for(long("l1", 100), question=False):
        future.cancel()
    turns.wait_for(["s"], question=False)
    assert taken(turns) == ["s"]


def test_no_texts_wait_for_nothing() -> None:
    turns = Turns()
    assert turns.wait_for([], question=False) == []
    turns.wait_for(["s"], question=False)
    assert taken(turns) == ["s"]
