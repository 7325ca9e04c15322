"""Amounts: what a payload says an action is worth, in US dollars, read exactly and never rounded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from derive.echo import echo

FIELD = "amount_usd"
LIMIT = Decimal("922337203685477.5807")  # the largest value of Cedar's decimal type
GRAMMAR = re.compile(r"(0|[1-9][0-9]{0,14})(\.[0-9]{1,4})?")


class AmountError(ValueError):
    """Says which field of a payload is not an amount, and echoes it."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Holds a value when known; `absent` when none is given, `unknown` when it is not given in US dollars."""

    state: Literal["known", "absent", "unknown"]
    value: Decimal | None

    def __post_init__(self) -> None:
        if (self.state == "known") != (self.value is not None):
            raise ValueError(f"an amount has a value when it is known and only then: {echo(self.state)}")


_ABSENT = Amount("absent", None)
_UNKNOWN = Amount("unknown", None)


def parse_amount(value: object) -> Decimal:
    """Reads a JSON string or number as an exact decimal from 0 to 922337203685477.5807.

    Takes `str`, `int` and `Decimal` written with at most 15 whole digits and 4 decimals: no sign, exponent,
    blank or leading zero. Raises AmountError for everything else, `float` and `bool` included.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise AmountError(f"{echo(value)} is not a decimal string or number")
    # An int by way of Decimal, because its own str() raises above 4300 digits. A decimal may remember how it was written.
    text = str(Decimal(value)) if isinstance(value, int) else str(value)
    if not GRAMMAR.fullmatch(text):
        raise AmountError(f"{echo(text)} is not a decimal with at most 15 whole digits and 4 decimals")
    amount = Decimal(text)
    if amount > LIMIT:
        raise AmountError(f"{echo(text)} is more than {LIMIT}")
    return amount


def cedar_decimal(value: Decimal) -> str:
    """Writes an amount with four decimals for Cedar's `decimal()`; refuses what parse_amount refuses."""
    return f"{parse_amount(value):.4f}"


def read_amount(payload: Mapping[str, object]) -> Amount:
    """Reads `amount_usd` of a payload; raises AmountError naming `amount_usd` or `currency`.

    `amount_usd: null` is absent. The amount is unknown when `currency` is not USD, or when there is no
    `amount_usd` but another field whose name starts with `amount`. In any currency a malformed
    `amount_usd` is an error.
    """
    amount = _amount_usd(payload.get(FIELD))
    if not _in_dollars(payload):
        return _UNKNOWN
    if amount is not None:
        return Amount("known", amount)
    given = (name.lower() for name, value in payload.items() if value is not None)
    return _UNKNOWN if any(name.startswith("amount") for name in given) else _ABSENT


def _amount_usd(value: object) -> Decimal | None:
    if value is None:
        return None
    try:
        return parse_amount(value)
    except AmountError as error:
        raise AmountError(f"{FIELD} {error}") from None


def _in_dollars(payload: Mapping[str, object]) -> bool:
    currency = payload.get("currency", "USD")
    if not isinstance(currency, str):
        raise AmountError(f"currency {echo(currency)} is not a string")
    return currency.lower() == "usd"  # not upper() or casefold(): both turn U+017F (long s) into an s
