"""The bytes of an answer."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from gateway.model.number import Number
from gateway.web.answer import answer

LONG = "0.1000000000000000055511151231257827021181583404541015625"


@pytest.mark.parametrize("text", [LONG, "1.50", "100.00", "1e2", "12345678901234567890.5"])
def test_a_number_goes_out_with_the_digits_it_came_in_with(text: str) -> None:
    made = answer(200, {"é": [Number(text), {"b": 0.83, "c": (None, True, 1, 'x"')}]})
    assert made.body is not None
    assert made.body.decode() == f'{{"é":[{text},{{"b":0.83,"c":[null,true,1,"x\\""]}}]}}'


def test_what_holds_a_decimal_is_written_like_everything_else() -> None:
    body = {"a": "é\u2028", "b": [], "c": {}, "d": [1.5, False, {"e": None}], "f": -7}
    plain, exact = answer(200, body), answer(200, {**body, "g": Decimal(1)})
    assert plain.body is not None
    assert exact.body == plain.body[:-1] + b',"g":1}'
    assert json.loads(exact.body) == {**body, "g": 1}


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_what_json_cannot_hold_is_a_fault(value: object) -> None:
    for body in ({"a": value}, {"a": value, "b": Decimal(1)}, {"b": Decimal(1), "a": value}):
        with pytest.raises((TypeError, ValueError)):
            answer(200, body)
