"""Bands: the ranges of amounts within which two actions are alike."""

import re
from bisect import bisect_right
from decimal import Decimal
from itertools import pairwise

from derive.amounts import Amount

BANDS_VERSION = 1  # raised with every change of the edges: facts of another version are derived anew
_FORM = re.compile(r"none|unknown|(0|[1-9][0-9]*)(?:-([1-9][0-9]*)|\+)")

# 50 is an edge because it is the threshold of an action without a rule of its own.
_EDGES = tuple(map(Decimal, (0, 10, 50, 100, 500, 1000, 5000, 10000)))
_RANGES = (*(f"{low}-{high}" for low, high in pairwise(_EDGES)), f"{_EDGES[-1]}+")

BANDS = (*_RANGES, "none", "unknown")


def band_of(amount: Amount) -> str:
    """Gives the band of an amount: half-open, so 50 is in `50-100`; `none` when absent, else `unknown`."""
    if amount.value is None:
        return "none" if amount.state == "absent" else "unknown"
    return _RANGES[bisect_right(_EDGES, amount.value) - 1]


def is_band(text: str) -> bool:
    """Tells whether a text is a band of this table or of one before it: what was stored under one stays readable."""
    return _FORM.fullmatch(text) is not None


def bands_within(band: str) -> tuple[str, ...]:
    """Gives the bands of this table that share amounts with a band of any table; one when all of it is in that one."""
    if band in BANDS:
        return (band,)
    low, high = _ends(band)
    return tuple(each for each in _RANGES if _ends(each)[0] < high and low < _ends(each)[1])


def _ends(band: str) -> tuple[Decimal, Decimal]:
    low, _, high = band.partition("-")
    return Decimal(low.removesuffix("+")), Decimal(high) if high else Decimal("Infinity")
