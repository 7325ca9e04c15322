"""Strict JSON: what a body may be, and where it is wrong when it is not that."""

from __future__ import annotations

import json
import re
from decimal import InvalidOperation

from gateway import limits
from gateway.errors import Invalid
from gateway.model.number import Number, whole
from gateway.operations.fields import echo

#: Members that Cedar's JSON would read as something other than data.
CEDAR_KEYS = frozenset({"__entity", "__extn", "__expr"})
#: Digits of a whole number and power of ten of a fraction, about the range of a double: beyond it nothing on the other
#: side can hold the number, and turning text into one costs the square of its length.
NUMBER_RANGE = 308

_BOM = b"\xef\xbb\xbf"
# Possessive, and the closing quote may be missing, so that the scan is linear in whatever is sent.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_ALIKE = bytes.maketrans(b"[{]}", b"(())")
_NO_BRACKETS = bytes(frozenset(range(256)) - frozenset(b"[]{}"))
# Text with neither of these holds no lone surrogate, no NUL and no key of Cedar's: it need not be walked.
_SUSPECT = re.compile(rb"\\u(?:[dD][89a-fA-F]|00(?:00|5[fF]|65))|__e")
_LONE = re.compile("[\x00\ud800-\udfff]")


class _Refused:
    """A value that JSON text can hold and we do not take; the walk over the parsed body finds where it is."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why


class _Parser:
    """One parse: collects whether anything in the text has to be looked for."""

    __slots__ = ("refused",)

    def __init__(self) -> None:
        self.refused = False

    def parse(self, text: str) -> object:
        decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_float=self._fraction, parse_int=self._whole, parse_constant=self._constant
        )
        return decoder.decode(text)

    def _refuse(self, why: str) -> _Refused:
        self.refused = True
        return _Refused(why)

    def _object(self, pairs: list[tuple[str, object]]) -> object:
        made = dict(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    return self._refuse(f"holds the key {echo(key)} twice")
                seen.add(key)
        return made

    def _fraction(self, digits: str) -> object:
        try:
            value = Number(digits)
        except InvalidOperation:
            return self._refuse("is a number out of range")
        if len(digits) > 2 * NUMBER_RANGE or (value and abs(value.adjusted()) > NUMBER_RANGE):
            return self._refuse("is a number out of range")
        return value

    def _whole(self, digits: str) -> object:
        return whole(digits) if len(digits) <= NUMBER_RANGE else self._refuse("is a number out of range")

    def _constant(self, word: str) -> object:
        return self._refuse(f"must be a number, got `{word}`")


def parse_object(body: bytes) -> dict[str, object]:
    """The JSON object that a body holds; fractions as `Number`, with their text.

    Raises:
        Invalid: not UTF-8, not JSON, not an object, nested too deep, or with a member that is refused anywhere.
    """
    if body.startswith(_BOM):
        raise Invalid("the body must be UTF-8 without a byte order mark")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise Invalid(f"the body must be UTF-8; byte {wrong.start} is not") from None
    if _depth_over(body, limits.BODY_NESTING):
        raise Invalid(f"the body is nested deeper than {limits.BODY_NESTING} levels")
    parser = _Parser()
    try:
        parsed = parser.parse(text)
    except json.JSONDecodeError as wrong:
        raise Invalid(f"the body is not valid JSON at line {wrong.lineno}, column {wrong.colno}") from None
    if parser.refused or _SUSPECT.search(body):
        _inspect(parsed)
    if not isinstance(parsed, dict):
        raise Invalid(f"the body must be a JSON object, got {echo(parsed)}")
    return parsed


def _depth_over(body: bytes, most: int) -> bool:
    """Whether brackets nest deeper than `most`. Each round takes the innermost pairs away, one level of them."""
    bare = _STRING.sub(b"", body) if b"\\" in body else b"".join(body.split(b'"')[::2])
    brackets = left = bare.translate(_ALIKE, _NO_BRACKETS)
    for _ in range(most):
        if not left:
            return False
        left = left.replace(b"()", b"")
    # Deeper, or not in pairs and so no JSON: what matters is only that the parser does not go too deep before it sees that.
    depth = 0
    for bracket in brackets if left else b"":
        depth += 1 if bracket == 0x28 else -1
        if depth > most:
            return True
    return False


def _inspect(parsed: object) -> None:
    found = _find(parsed)
    if found is not None:
        place, why = found[0].removeprefix("."), found[1]
        raise Invalid(f"`{place}` {why}" if place else f"the body {why}", field=place or None)


def _find(value: object) -> tuple[str, str] | None:
    """The place of the first value or key that is refused, outer first, and why.

    Only the place of what is found is ever written down: a body may hold a million values. Depth is bounded before this runs.
    """
    match value:
        case str():
            return ("", "holds a NUL or a lone surrogate") if _LONE.search(value) else None
        case dict():
            for key, member in value.items():
                if _LONE.search(key):
                    return f".{_shown(key)}", "is a key with a NUL or a lone surrogate"
                if key in CEDAR_KEYS:
                    return f".{_shown(key)}", "is a reserved key"
                found = _find(member)
                if found is not None:
                    return f".{_shown(key)}{found[0]}", found[1]
        case list():
            for index, member in enumerate(value):
                found = _find(member)
                if found is not None:
                    return f"[{index}]{found[0]}", found[1]
        case _Refused(why=why):
            return "", why
    return None


def _shown(key: str) -> str:
    return echo(key)[1:-1]
