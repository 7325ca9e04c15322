from __future__ import annotations

import pytest

from gateway.policy.text import Piece, split


def test_a_text_falls_into_its_policies_with_their_lines() -> None:
    text = '// first\n@id("a")\npermit (principal, action, resource);\n\n// second\nforbid (principal, action, resource);'
    assert split(text) == [
        Piece(2, '@id("a")\npermit (principal, action, resource);'),
        Piece(6, "forbid (principal, action, resource);"),
    ]


@pytest.mark.parametrize(
    "inside",
    ['"a;b"', '"a\\";b"', "1 // ; )\n", "[1, 2]", '{ "k": ";" }'],
)
def test_a_semicolon_in_a_string_or_a_comment_ends_nothing(inside: str) -> None:
    policy = f"permit (principal, action, resource) when {{ {inside} }};"
    assert split(policy + policy) == [Piece(1, policy), Piece(1 + inside.count("\n"), policy)]


def test_a_carriage_return_alone_ends_a_comment_as_it_does_for_cedar() -> None:
    assert split("// note\rpermit (principal, action, resource);") == [Piece(1, "permit (principal, action, resource);")]


def test_what_follows_the_last_policy_is_kept_for_the_parser_to_refuse() -> None:
    assert split("permit (principal, action, resource); permit (") == [
        Piece(1, "permit (principal, action, resource);"),
        Piece(1, "permit ("),
    ]


def test_a_closing_bracket_too_many_hides_nothing() -> None:
    assert [piece.text for piece in split(") ; permit (a);")] == [") ;", "permit (a);"]


@pytest.mark.parametrize("text", ['"' + '\\"' * 500_000, '"' + '\\"' * 500_000 + "\\", "//" * 500_000, "/" * 500_000])
def test_a_long_text_without_an_end_is_read_whole(text: str) -> None:
    # Of a size that a reader which goes back over what it has read does not get through.
    assert split(text) == ([] if text.startswith("//") else [Piece(1, text)])
