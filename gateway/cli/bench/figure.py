"""A figure: what was measured, what it must be, and whether it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

#: Fewer rounds have no median worth the name.
FEWEST_ROUNDS = 5
QUICK_PART = 50
OVERLOAD_SECONDS = 60.0

Unit = Literal["x", "ms", "us", "s", "MB", "records", "rows/s", "pages", "requests", "decisions", "decisions/s"]
Clients = Literal["own", "wrk"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure: rounds of each kind, whole or quick (sizes divided by 50, to see that it works), by which clients.

    `overload_seconds` is how long an overload is.
    """

    rounds: int = FEWEST_ROUNDS
    quick: bool = False
    clients: Clients = "own"
    overload_seconds: float = OVERLOAD_SECONDS

    def size(self, whole: int, *, least: int = 1) -> int:
        """A size as this plan has it; `least` is what a quick one still needs to mean anything."""
        return max(whole // QUICK_PART, least) if self.quick else whole

    def seconds(self, whole: float) -> float:
        """How long a round of load is."""
        return max(whole / QUICK_PART, 0.1) if self.quick else whole


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a value has to stay."""

    side: Literal["at_most", "at_least"]
    value: float

    def holds(self, value: float) -> bool:
        return value <= self.value if self.side == "at_most" else value >= self.value

    def __str__(self) -> str:
        return f"{'<=' if self.side == 'at_most' else '>='} {self.value:g}"


def at_most(value: float) -> Bound:
    return Bound("at_most", value)


def at_least(value: float) -> Bound:
    return Bound("at_least", value)


@dataclass(frozen=True, slots=True)
class Figure:
    """One result. `value`, in `unit`, is what `must` and `aim` are about; `measured` is what it was made from.

    `ratio` is what compares between machines: the value itself where that is one, else another one of the same run, or
    None where there is nothing to compare with.
    """

    name: str
    what: str
    unit: Unit
    value: float
    measured: Mapping[str, object]
    must: Bound | None = None
    aim: Bound | None = None
    beside: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value if self.unit == "x" else self.beside

    @property
    def met(self) -> bool | Literal["reported"]:
        """Whether it is what it must be; `reported` when nothing is demanded."""
        return "reported" if self.must is None else self.must.holds(self.value)

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "what": self.what,
            "unit": self.unit,
            "value": rounded(self.value),
            "must": _bound(self.must),
            "aim": _bound(self.aim),
            "ratio": None if self.ratio is None else rounded(self.ratio),
            "met": self.met,
            "aim_met": None if self.aim is None else self.aim.holds(self.value),
            "measured": {name: rounded(value) if isinstance(value, float) else value for name, value in self.measured.items()},
        }


def rounded(value: float) -> float:
    """Four digits: more would be noise."""
    return float(f"{value:.4g}")


def _bound(bound: Bound | None) -> dict[str, float] | None:
    return None if bound is None else {bound.side: bound.value}
