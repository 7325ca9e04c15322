"""A histogram: how long something took, as counts by bounds, and never a list of times."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

#: Seconds, from what a decision takes to what nobody waits for.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Histogram:
    """Counts by upper bound, in seconds. One thread adds; any may read, and sees each number as it is then."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = BOUNDS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one; a bound counts what took exactly that long."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds
