"""What a body may be."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Invalid
from gateway.limits import BODY_BYTES, BODY_NESTING
from gateway.web import json_body
from gateway.web.json_body import parse_object


def refused(body: bytes) -> tuple[str, str | None]:
    with pytest.raises(Invalid) as caught:
        parse_object(body)
    return caught.value.detail, caught.value.field


def test_a_fraction_is_a_decimal_from_its_text_and_a_whole_number_stays_whole() -> None:
    assert parse_object(b'{"a": 0.10, "b": 1e2, "c": 12345678901234567890123, "d": -0.0, "e": [true, null]}') == {
        "a": Decimal("0.10"),
        "b": Decimal("1e2"),
        "c": 12345678901234567890123,
        "d": Decimal("-0.0"),
        "e": [True, None],
    }


def test_a_pair_of_surrogate_escapes_is_one_character() -> None:
    assert parse_object(rb'{"a": "\ud83d\ude00"}') == {"a": "\U0001f600"}


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"\xef\xbb\xbf{}", "the body must be UTF-8 without a byte order mark"),
        (b'{"a": "\xff"}', "the body must be UTF-8; byte 7 is not"),
        (b'{"a": "\xed\xa0\x80"}', "the body must be UTF-8; byte 7 is not"),
        ('{"a": 1}'.encode("utf-16"), "the body must be UTF-8; byte 0 is not"),
        (b"{", "the body is not valid JSON at line 1, column 2"),
        (b'{"a": 1} x', "the body is not valid JSON at line 1, column 10"),
        (b'{"a": 01}', "the body is not valid JSON at line 1, column 8"),
        (b"{'a': 1}", "the body is not valid JSON at line 1, column 2"),
        (b'{"a": "\x00"}', "the body is not valid JSON at line 1, column 8"),
        (b"  ", "the body is not valid JSON at line 1, column 3"),
        (b"[]", "the body must be a JSON object, got a list"),
        (b"null", "the body must be a JSON object, got `null`"),
        (b'"a"', "the body must be a JSON object, got `a`"),
        (b"NaN", "the body must be a number, got `NaN`"),
    ],
)
def test_a_body_that_is_no_json_object_in_utf8_is_refused(body: bytes, detail: str) -> None:
    assert refused(body) == (detail, None)


@pytest.mark.parametrize(
    ("value", "detail", "field"),
    [
        (b'{"x": 1, "x": 1}', "`payload.items[1]` holds the key `x` twice", "payload.items[1]"),
        (b'{"x": 1, "\\u0078": 2}', "`payload.items[1]` holds the key `x` twice", "payload.items[1]"),
        (b"NaN", "`payload.items[1]` must be a number, got `NaN`", "payload.items[1]"),
        (b"Infinity", "`payload.items[1]` must be a number, got `Infinity`", "payload.items[1]"),
        (b"-Infinity", "`payload.items[1]` must be a number, got `-Infinity`", "payload.items[1]"),
        (b"1e999", "`payload.items[1]` is a number out of range", "payload.items[1]"),
        (b"1e-999", "`payload.items[1]` is a number out of range", "payload.items[1]"),
        (b"1e99999999999999999999999", "`payload.items[1]` is a number out of range", "payload.items[1]"),
        (b"1" + b"0" * 1000, "`payload.items[1]` is a number out of range", "payload.items[1]"),
        (b"0." + b"1" * 1000, "`payload.items[1]` is a number out of range", "payload.items[1]"),
        (b'"\\ud800"', "`payload.items[1]` holds a NUL or a lone surrogate", "payload.items[1]"),
        (b'"\\ude00\\ud83d"', "`payload.items[1]` holds a NUL or a lone surrogate", "payload.items[1]"),
        (b'"\\u0000"', "`payload.items[1]` holds a NUL or a lone surrogate", "payload.items[1]"),
        (b'{"\\ud800": 1}', "`payload.items[1].?` is a key with a NUL or a lone surrogate", "payload.items[1].?"),
        (b'{"a\\u0000": 1}', "`payload.items[1].a?` is a key with a NUL or a lone surrogate", "payload.items[1].a?"),
        (b'{"__entity": {}}', "`payload.items[1].__entity` is a reserved key", "payload.items[1].__entity"),
        (b'{"__extn": {}}', "`payload.items[1].__extn` is a reserved key", "payload.items[1].__extn"),
        (b'{"__expr": ""}', "`payload.items[1].__expr` is a reserved key", "payload.items[1].__expr"),
        (b'{"\\u005f_extn": {}}', "`payload.items[1].__extn` is a reserved key", "payload.items[1].__extn"),
        (b'{"_\\u005Fextn": {}}', "`payload.items[1].__extn` is a reserved key", "payload.items[1].__extn"),
        (b'{"__\\u0065xtn": {}}', "`payload.items[1].__extn` is a reserved key", "payload.items[1].__extn"),
        (b'{"_\\u005f\\u0065xtn": {}}', "`payload.items[1].__extn` is a reserved key", "payload.items[1].__extn"),
    ],
)
def test_a_refused_member_is_named_by_its_place(value: bytes, detail: str, field: str) -> None:
    assert refused(b'{"payload": {"items": [0, %b]}}' % value) == (detail, field)


def test_the_reserved_words_are_only_refused_as_keys() -> None:
    assert parse_object(b'{"a": "__extn", "__exotic": 1}') == {"a": "__extn", "__exotic": 1}


def nested(depth: int, opener: bytes = b"[", closer: bytes = b"]") -> bytes:
    return b'{"a": ' + opener * (depth - 1) + b"1" + closer * (depth - 1) + b"}"


def test_fifty_levels_are_read_and_one_more_is_refused() -> None:
    assert "a" in parse_object(nested(BODY_NESTING))
    assert refused(nested(BODY_NESTING + 1)) == ("the body is nested deeper than 50 levels", None)
    assert refused(nested(BODY_NESTING + 1, b'{"a":', b"}")) == ("the body is nested deeper than 50 levels", None)


def test_many_brackets_side_by_side_or_inside_strings_are_not_depth() -> None:
    body = b'{"a": [%b], "b": "%b", "c": "\\"%b"}' % (b",".join([b"{}"] * 500), b"[" * 500, b"{" * 500)
    assert len(parse_object(body)["a"]) == 500  # type: ignore[arg-type]


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'["\\"', b'"\\"', b'["', b'"[', b"[[]"])
def test_a_body_of_the_largest_size_made_of_openings_is_a_plain_refusal(opening: bytes) -> None:
    body = opening * (BODY_BYTES // len(opening))
    assert refused(body)[1] is None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='abz_é"\\[{', max_size=6), inner, max_size=4),
    max_leaves=30,
)


@given(st.dictionaries(st.text(alphabet='ab_"\\é', max_size=4), JSON, max_size=4), st.booleans())
def test_what_is_allowed_is_read_as_the_standard_parser_reads_it(body: dict[str, object], ascii_only: bool) -> None:
    assert parse_object(json.dumps(body, ensure_ascii=ascii_only).encode()) == body


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,\\u0d8abcN1e-.\0 ', max_size=80).map(str.encode))
def test_any_bytes_are_an_object_or_a_refusal(body: bytes) -> None:
    with suppress(Invalid):
        assert isinstance(parse_object(body), dict)


def test_only_the_place_of_what_is_found_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million values deep inside, each with a place of its own, would hold everybody up for seconds."""
    written: list[str] = []
    monkeypatch.setattr(json_body, "_shown", lambda key: written.append(key) or key)
    parse_object(b'{"a": {"b": ["__e", {"c": 1}]}, "d": {}}')
    assert written == []
    assert refused(b'{"a": {"b": ["__e", {"c": 1}]}, "d": {"e": [0, "\\u0000"]}}')[1] == "d.e[1]"
    assert written == ["e", "d"]
