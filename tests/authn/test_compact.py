"""A token's parts: one spelling, one meaning, bounded."""

from __future__ import annotations

import base64

import pytest

from gateway.authn.compact import TOKEN_CHARACTERS, Compact, read_compact, read_object


def part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


HEAD = part(b'{"alg":"x"}')
TOKEN = f"{HEAD}.{part(b'payload')}.{part(b'signature.')}"


def test_the_parts_of_a_token_are_its_header_and_its_payload() -> None:
    assert read_compact(TOKEN) == Compact({"alg": "x"}, b"payload")
    assert read_compact(f"{HEAD}..") == Compact({"alg": "x"}, b"")


def test_a_second_spelling_is_refused_before_any_decoder_of_ours_or_others_sees_it() -> None:
    assert TOKEN[-1] in "AQgw"
    doubtful = chr(ord(TOKEN[-1]) + 1)
    for form in (TOKEN[:-1] + doubtful, f"{TOKEN}.", f"{TOKEN}=", f"{TOKEN}\n", f"{TOKEN}\u00e9", f"{HEAD}.QUFB", f"{HEAD}.Q.Q"):
        assert read_compact(form) is None, form[-20:]


def test_a_token_has_a_length() -> None:
    fits = f"{HEAD}.{'QUFB' * ((TOKEN_CHARACTERS - len(HEAD) - 2) // 4)}."
    assert read_compact(fits) is not None
    assert read_compact(fits + "QUFB") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1",
        b"[]",
        b'"a"',
        b"{",
        b'{"a": 1, "a": 1}',
        b'{"a": {"b": 1, "b": 2}}',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b"\xff",
    ],
)
def test_what_two_readers_could_read_in_two_ways_is_no_object(content: bytes) -> None:
    assert read_object(content) is None
    assert read_compact(f"{part(content)}.QUFB.QUFB") is None


@pytest.mark.parametrize(
    "content", [b"[" * 7_000, b'{"a":' * 1_200, b'{"a": 1' + b"0" * 6_000 + b"}"], ids=["lists", "objects", "digits"]
)
def test_depth_and_digits_are_no_fault_of_ours(content: bytes) -> None:
    assert read_object(content) is None
