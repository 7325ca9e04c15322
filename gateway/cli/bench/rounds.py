"""Rounds: things timed in turn within one run, so that what slows the machine down slows all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Timed:
    """The seconds that one thing took in each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def microseconds(self) -> float:
        return self.median * 1e6

    def over(self, other: Timed) -> float:
        """How many times as long as the other one, by medians."""
        return self.median / other.median

    def spread_over(self, other: Timed) -> list[float]:
        """The lowest and the highest of the rounds' own ratios: how far the run is to be trusted."""
        ratios = [mine / its for mine, its in zip(self.seconds, other.seconds, strict=True)]
        return [round(min(ratios), 3), round(max(ratios), 3)]


def alternate(rounds: int, passes: Sequence[Callable[[], object]], *, times: int, each: int) -> list[Timed]:
    """Time every pass `times` times a round, forwards and backwards in turn; a pass does `each` things, of which one is timed."""
    for run in passes:
        run()  # what is made on first use is no part of what follows
    seconds: list[list[float]] = [[] for _ in passes]
    for number in range(rounds):
        order = range(len(passes)) if number % 2 == 0 else reversed(range(len(passes)))
        for index in order:
            seconds[index].append(_time(passes[index], times) / (times * each))
    return [Timed(tuple(series)) for series in seconds]


def _time(run: Callable[[], object], times: int) -> float:
    start = perf_counter()
    for _ in range(times):
        run()
    return perf_counter() - start
