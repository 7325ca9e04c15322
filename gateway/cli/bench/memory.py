"""Figures: what it costs that nobody sees a row of memory that is not theirs to see, and that nothing else does."""

from __future__ import annotations

from gateway.cli.bench.figure import Figure, Plan
from gateway.cli.bench.memory_hidden import hidden
from gateway.cli.bench.memory_insert import insert
from gateway.cli.bench.memory_plan import plans
from gateway.cli.bench.memory_search import searches
from gateway.cli.output import Progress


def memory(plan: Plan, shown: Progress) -> list[Figure]:
    """All of them, one after the other."""
    return [*plans(plan, shown), *searches(plan, shown), *hidden(plan, shown), *insert(plan, shown)]
