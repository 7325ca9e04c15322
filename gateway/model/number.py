"""A number as it was written: a decimal that keeps the text it was read from."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any


class Number(Decimal):
    """A JSON number with a fraction, an exponent or a sign before zero; `str()` gives its own text back.

    What is hashed, stored and shown is the text that was sent, and a reader that refuses exponents gets to see them.
    """

    __slots__ = ("_text",)

    _text: str

    def __new__(cls, text: str) -> Number:
        made = super().__new__(cls, text)
        made._text = text
        return made

    def __str__(self) -> str:
        return self._text


def whole(digits: str) -> int | Number:
    """A JSON number without a fraction; of `-0` an int would lose the sign."""
    return Number(digits) if digits == "-0" else int(digits)


def parse_exactly(text: str) -> Any:
    """The value of a JSON text, numbers as they were written."""
    return json.loads(text, parse_float=Number, parse_int=whole)
