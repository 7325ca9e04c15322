"""Words: what a text is found by, and that no text is too odd for it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.limits import TOKEN_CHARACTERS
from gateway.store.words import terms, tokens

anything = st.text(max_size=40) | st.text(st.sampled_from("aB1+#-. _\n\0'é\u0301東カไ🎉\ud800\u200d\ufe0f"), max_size=40)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (" \t\n\0", []),
        ("?!... -- ''", []),
        ("The fox, the FOX.", ["the", "fox", "the", "fox"]),
        ("foo-bar", ["foo", "bar", "foo-bar"]),
        ("(foo-bar).", ["foo", "bar", "foo-bar"]),
        ("a_b axb", ["a", "b", "axb", "a_b"]),
        ("3.11", ["3", "11", "3.11"]),
        ("89 89%", ["89", "89"]),
        ("a@b.example", ["a", "b", "example", "a@b.example"]),
        ("C++", ["c", "+", "+", "c++"]),
        ("(c++), c#.", ["c", "+", "+", "c", "c++", "c#"]),
        ("#tag", ["tag"]),
        ("don't", ["don", "t", "don't"]),
        ("straße STRASSE", ["strasse", "strasse"]),
        ("\uff21\uff22\uff23 \ufb01", ["abc", "fi"]),
        ("café cafe\u0301", ["café", "café"]),
        ("co\u00adoperate", ["cooperate"]),
        ("a\ufe00\u0300", ["à"]),
        ("हिन्दी", ["हिन्दी"]),
        ("狐狸", ["狐", "狸"]),
        ("東京タワー2024、大阪", ["東", "京", "タ", "ワ", "ー", "2024", "大", "阪"]),
        ("C++入門", ["c", "+", "+", "入", "門", "c++"]),
        ("ไทย", ["ไ", "ท", "ย"]),
        ("한국어 사과", ["한국어", "사과"]),
        ("🎉🎉 hi🎉", ["🎉", "🎉", "hi", "🎉"]),
        ("❤\ufe0f 👩\u200d💻", ["❤", "👩", "💻"]),
        ("a\ud800b", ["a", "b"]),
        ("AND OR NOT", ["and", "or", "not"]),
    ],
)
def test_a_text_is_found_by_its_words_its_characters_and_its_exact_chunks(text: str, found: list[str]) -> None:
    assert tokens(text) == found


def test_a_query_asks_for_each_of_its_tokens_once() -> None:
    assert terms("the fox, the C++ fox") == ["the", "fox", "c", "+", "c++"]


def test_a_long_word_is_cut_the_same_in_a_text_and_in_a_query() -> None:
    assert tokens("x" * 100) == terms("X" * 100) == ["x" * TOKEN_CHARACTERS]


def test_marks_without_end_take_no_time() -> None:
    assert len(tokens("a" + "\u0301\u0327" * 20_000)) == len(tokens("a" + "\u0301\u0327\ufe0f" * 20_000)) == 1


@pytest.mark.parametrize("piece", ["a-", "-a", "+", "#", "-", "a ", "東", "🎉", "\ufdfa", "\u00ad", "\u0301"])
def test_a_full_text_of_anything_has_its_tokens(piece: str) -> None:
    assert all(0 < len(token) <= TOKEN_CHARACTERS for token in tokens(piece * (64 * 1024 // len(piece.encode()))))


@given(anything)
def test_a_token_is_never_empty_nor_too_long_and_can_be_stored(text: str) -> None:
    for token in tokens(text):
        assert 0 < len(token) <= TOKEN_CHARACTERS
        assert "\0" not in token
        token.encode()


@given(anything, anything)
def test_white_space_parts_what_is_before_it_from_what_is_behind(before: str, behind: str) -> None:
    assert Counter(tokens(f"{before} {behind}")) == Counter(tokens(before)) + Counter(tokens(behind))


@given(anything)
def test_a_text_is_found_by_each_of_its_own_tokens(text: str) -> None:
    assert all(token in terms(token) for token in tokens(text) if len(token) < TOKEN_CHARACTERS)
