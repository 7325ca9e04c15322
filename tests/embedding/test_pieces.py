"""Pieces: bounded, cut where a reader would cut, and together the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.embedding.pieces import LONGEST, SHORTEST, pieces

SENTENCE = "One sentence of some words that says a thing. "


def test_a_short_text_is_one_piece() -> None:
    assert pieces("a") == ["a"]
    assert pieces("x" * LONGEST) == ["x" * LONGEST]


def test_a_long_text_is_cut_after_sentences() -> None:
    cut = pieces(SENTENCE * 100)
    assert {piece[:3] for piece in cut} == {"One"}
    assert all(SHORTEST <= len(piece) <= LONGEST for piece in cut[:-1])


def test_without_sentences_it_is_cut_after_white_space() -> None:
    assert all(piece.endswith(" ") for piece in pieces("word " * 1_000))


def test_without_white_space_it_is_cut_where_a_piece_is_full() -> None:
    assert [len(piece) for piece in pieces("漢" * 2_500)] == [LONGEST, LONGEST, 500]


@pytest.mark.parametrize("text", [" " * 5_000, "\n"])
def test_a_text_of_nothing_but_white_space_is_one_piece(text: str) -> None:
    assert pieces(text) == [text]


@given(st.lists(st.sampled_from([SENTENCE, "word ", "漢字。", "x" * 700, "\n\n", "😀", " " * 1_200])).map("".join))
def test_nothing_but_white_space_is_lost(text: str) -> None:
    assert "".join("".join(pieces(text)).split()) == "".join(text.split())


@given(st.integers(0, 65_536))
def test_the_number_of_pieces_is_bounded(length: int) -> None:
    assert len(pieces("ab cd. " * (length // 7))) <= 65_536 // SHORTEST + 1
