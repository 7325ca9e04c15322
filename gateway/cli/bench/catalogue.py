"""The catalogue: every figure that can be measured, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.cli.bench.decision import decision
from gateway.cli.bench.figure import Figure, Plan
from gateway.cli.output import Progress

CATALOGUE: Mapping[str, Callable[[Plan, Progress], list[Figure]]] = {
    "decision": decision,
}
