"""A histogram: what it counts where."""

from __future__ import annotations

from gateway.model.histogram import Histogram


def test_a_bound_counts_what_took_exactly_that_long_and_the_last_place_the_rest() -> None:
    taken = Histogram((0.1, 1.0))
    for seconds in (0.0, 0.1, 0.5, 1.0, 7.0):
        taken.add(seconds)
    assert (taken.counts, taken.total) == ([2, 2, 1], 8.6)
