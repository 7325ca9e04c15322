"""Exposition: numbers in the text format that Prometheus reads, version 0.0.4.

Sixty lines of our own and no client library: what is counted are plain numbers that their owners keep, and a registry of
counters with a lock each would be a second home for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from gateway.model.histogram import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = Mapping[str, str]
NONE: Labels = {}


@dataclass(frozen=True, slots=True)
class Family:
    """A metric and its samples, each with its labels: names of ours, and one value for every set of them."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    samples: Iterable[tuple[Labels, float]] = field(repr=False)

    def lines(self) -> Iterator[str]:
        """Its text."""
        yield from _head(self.name, self.kind, self.help)
        for labels, value in self.samples:
            yield _sample(self.name, labels, value)


@dataclass(frozen=True, slots=True)
class Times:
    """A histogram as a metric, in seconds."""

    name: str
    help: str
    taken: Histogram = field(repr=False)

    def lines(self) -> Iterator[str]:
        """Its text: each bucket counts what the ones before it do."""
        yield from _head(self.name, "histogram", self.help)
        below, counts = 0, tuple(self.taken.counts)
        for bound, count in zip((*map(_number, self.taken.bounds), "+Inf"), counts, strict=True):
            below += count
            yield _sample(f"{self.name}_bucket", {"le": bound}, below)
        yield _sample(f"{self.name}_sum", NONE, self.taken.total)
        yield _sample(f"{self.name}_count", NONE, below)


def one(name: str, kind: Literal["counter", "gauge"], help: str, value: float) -> Family:
    """A metric without labels."""
    return Family(name, kind, help, ((NONE, value),))


def text(families: Iterable[Family | Times]) -> str:
    """The page."""
    return "".join(f"{line}\n" for family in families for line in family.lines())


def _head(name: str, kind: str, help: str) -> tuple[str, str]:
    return f"# HELP {name} {help}", f"# TYPE {name} {kind}"


def _sample(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(said)}"' for label, said in labels.items())
    return f"{name}{{{shown}}} {_number(value)}" if shown else f"{name} {_number(value)}"


def _number(value: float) -> str:
    return repr(value) if value % 1 else str(int(value))


def _escaped(said: str) -> str:
    return said.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
