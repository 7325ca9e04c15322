"""Bands: the ranges of amounts within which two actions are alike."""

from bisect import bisect_right
from decimal import Decimal
from itertools import pairwise

from derive.amounts import Amount

BANDS_VERSION = 1  # raised with every change of the edges: facts of another version are derived anew

# 50 is an edge because it is the threshold of an action without a rule of its own.
_EDGES = tuple(map(Decimal, (0, 10, 50, 100, 500, 1000, 5000, 10000)))
_RANGES = (*(f"{low}-{high}" for low, high in pairwise(_EDGES)), f"{_EDGES[-1]}+")

BANDS = (*_RANGES, "none", "unknown")


def band_of(amount: Amount) -> str:
    """Gives the band of an amount: half-open, so 50 is in `50-100`; `none` when absent, else `unknown`."""
    if amount.value is None:
        return "none" if amount.state == "absent" else "unknown"
    return _RANGES[bisect_right(_EDGES, amount.value) - 1]
