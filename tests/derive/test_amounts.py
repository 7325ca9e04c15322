"""Amounts are read exactly, or refused."""

from collections.abc import Mapping
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derive.amounts import Amount, AmountError, cedar_decimal, parse_amount, read_amount

LIMIT = Decimal("922337203685477.5807")
ABSENT = Amount("absent", None)
UNKNOWN = Amount("unknown", None)


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        ("0", "0"),
        ("0.0001", "0.0001"),
        ("49.99", "49.99"),
        ("50.0000", "50"),
        (50, "50"),
        (Decimal("49.5"), "49.5"),
        ("922337203685477.5807", "922337203685477.5807"),
        (922337203685477, "922337203685477"),
    ],
)
def test_a_decimal_string_or_number_is_read_exactly(value: object, amount: str) -> None:
    assert parse_amount(value) == Decimal(amount)


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", " 5", "5 ", "5\n", "1 000", "1,000", "1_000", "+5", "-5", "-0", "05", "00", ".5", "5."),
        *("1e3", "1E3", "0x10", "NaN", "nan", "Infinity", "inf", "fifty", "$5", "5.00000", "0.00001"),
        *(
            "\u0665",
            "\uff15",
            "\u0967",
            "5\u200b",
            "\ud800",
            "922337203685477.5808",
            "1000000000000000",
            "9" * 30,
        ),
        *(-5, 10**30, 922337203685478, True, False, None, 5.0, float("nan"), b"5", [5], {"a": 5}),
        *(Decimal("-0.5"), Decimal("0.00001"), Decimal("1E+3"), Decimal("NaN"), Decimal("Infinity")),
    ],
    ids=ascii,
)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(AmountError):
        parse_amount(value)


def test_a_number_too_long_for_python_to_print_is_refused_like_any_other() -> None:
    with pytest.raises(AmountError):
        parse_amount(10**5000)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("fifty", "`fifty` is not a decimal with at most 15 whole digits and 4 decimals"),
        (-5, "`-5` is not a decimal with at most 15 whole digits and 4 decimals"),
        (True, "`True` is not a decimal string or number"),
        (1.5, "`1.5` is not a decimal string or number"),
        ("922337203685477.5808", "`922337203685477.5808` is more than 922337203685477.5807"),
        ("x" * 41, f"`{'x' * 40}` is not a decimal with at most 15 whole digits and 4 decimals"),
        ("a`\n\ud800", r"`a'\n\ud800` is not a decimal with at most 15 whole digits and 4 decimals"),
    ],
)
def test_a_refusal_echoes_what_was_sent_in_safe_characters(value: object, message: str) -> None:
    with pytest.raises(AmountError) as refusal:
        parse_amount(value)
    assert str(refusal.value) == message


@given(st.decimals(min_value=0, max_value=LIMIT, places=4))
def test_cedar_gets_four_decimals_and_the_same_value(amount: Decimal) -> None:
    text = cedar_decimal(amount)
    assert Decimal(text) == amount
    assert text[-5] == "."


def test_fifty_dollars_are_fifty_point_four_zeros() -> None:
    assert cedar_decimal(Decimal(50)) == "50.0000"


def test_cedar_never_gets_a_rounded_value() -> None:
    with pytest.raises(AmountError):
        cedar_decimal(Decimal("0.00005"))


@pytest.mark.parametrize(
    ("payload", "amount"),
    [
        ({}, ABSENT),
        ({"amount_usd": None}, ABSENT),
        ({"amount": None, "note": 5}, ABSENT),
        ({"currency": "usd"}, ABSENT),
        ({"amount_usd": "5"}, Amount("known", Decimal(5))),
        ({"amount_usd": 5, "currency": "UsD", "amount_eur": 9}, Amount("known", Decimal(5))),
        ({"amount": "5"}, UNKNOWN),
        ({"Amount_EUR": 5}, UNKNOWN),
        ({"amount_usd": None, "amount_eur": 5}, UNKNOWN),
        ({"amount_usd": "5", "currency": "EUR"}, UNKNOWN),
        ({"amount_usd": "5", "currency": "u\u017fd"}, UNKNOWN),
        ({"amount_usd": "5", "currency": ""}, UNKNOWN),
        ({"currency": "EUR"}, UNKNOWN),
    ],
    ids=ascii,
)
def test_a_payload_says_known_absent_or_unknown(payload: Mapping[str, object], amount: Amount) -> None:
    assert read_amount(payload) == amount


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"amount_usd": "-5"}, "amount_usd"),
        ({"amount_usd": "-5", "currency": "EUR"}, "amount_usd"),
        ({"amount_usd": ""}, "amount_usd"),
        ({"amount_usd": "5", "currency": 840}, "currency"),
        ({"amount_usd": "5", "currency": None}, "currency"),
    ],
)
def test_a_malformed_payload_is_refused_by_the_name_of_the_field(payload: Mapping[str, object], field: str) -> None:
    with pytest.raises(AmountError, match=f"^{field} `"):
        read_amount(payload)


def test_an_amount_without_its_value_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="has a value when it is known"):
        Amount("known", None)
