"""A number keeps the text it was written as."""

from __future__ import annotations

from decimal import Decimal

import pytest

from derive.amounts import AmountError, parse_amount
from gateway.model.number import Number, parse_exactly, whole
from gateway.store.canonical import canonical

TEXTS = ("10e-1", "1E400", "1.50", "-0.0", "0.1000000000000000055511151231257827")


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_equal_to_its_value_and_written_as_its_text(text: str) -> None:
    number = Number(text)
    assert (number, str(number), canonical({"a": [number]})) == (Decimal(text), text, f'{{"a":[{text}]}}')


@pytest.mark.parametrize("text", [*TEXTS, "-0", "-1", "7", "12345678901234567890123"])
def test_what_is_read_is_written_as_it_was(text: str) -> None:
    assert canonical(parse_exactly(f'{{"a":{text}}}')) == f'{{"a":{text}}}'


def test_a_whole_number_is_an_int_but_for_a_sign_before_zero() -> None:
    assert [type(whole(digits)) for digits in ("0", "7", "-7", "-0")] == [int, int, int, Number]


@pytest.mark.parametrize("text", ["10e-1", "1e0", "1E400", "-0", "-0.0", "-1.0", "1.00000"])
def test_an_amount_in_another_spelling_than_a_plain_decimal_is_refused(text: str) -> None:
    with pytest.raises(AmountError):
        parse_amount(parse_exactly(text))
