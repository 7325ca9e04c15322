"""Rounds: things timed in turn within one run, so that what slows the machine down slows all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, thread_time

from gateway.cli.output import Progress


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

    @property
    def milliseconds(self) -> float:
        return self.median * 1e3

    def over(self, other: Timed) -> float:
        """How many times as long as the other one, by medians."""
        return self.median / other.median

    def spread_over(self, other: Timed) -> list[float]:
        """The lowest and the highest of the rounds' own ratios: how far the run is to be trusted."""
        ratios = [mine / its for mine, its in zip(self.seconds, other.seconds, strict=True)]
        return [round(min(ratios), 3), round(max(ratios), 3)]


def alternate(rounds: int, passes: Sequence[Callable[[], object]], *, times: int, each: int, shown: Progress) -> list[Timed]:
    """Run the passes in turn, forwards and backwards, `times` times a round; return what one thing of each cost.

    A pass does `each` things. All of them run once before, because what is made on first use is no part of what follows.
    The cost is processor time of this thread: nothing here waits, and what else runs on the machine is not in it.
    """
    for run in passes:
        run()
    series: list[list[float]] = [[] for _ in passes]
    for number in range(rounds):
        shown(number + 1, rounds)
        spent = [0.0] * len(passes)
        for turn in range(times):
            for index in range(len(passes)) if turn % 2 == 0 else reversed(range(len(passes))):
                start = thread_time()
                passes[index]()
                spent[index] += thread_time() - start
        for index, seconds in enumerate(spent):
            series[index].append(seconds / (times * each))
    return [Timed(tuple(seconds)) for seconds in series]


def by_the_clock(rounds: int, passes: Sequence[Callable[[int], object]], *, each: int, shown: Progress) -> list[Timed]:
    """Run the passes in turn, each with the numbers below `each`, once more a round; return what every run took by the clock.

    For what waits on other threads. As in `alternate`, a first turn is not counted.
    """
    series: list[list[float]] = [[] for _ in passes]
    for number in range(rounds + 1):
        shown(max(number, 1), rounds)
        for turn in range(each):
            for index in range(len(passes)) if turn % 2 == 0 else reversed(range(len(passes))):
                start = perf_counter()
                passes[index](turn)
                if number:
                    series[index].append(perf_counter() - start)
    return [Timed(tuple(seconds)) for seconds in series]
