"""Figures: what many policies cost, to decide by them, to load them, to try others and to have one in the shadow."""

from __future__ import annotations

from gateway.cli.bench.figure import Figure, Plan
from gateway.cli.bench.policy_partition import partitions
from gateway.cli.bench.policy_reload import reloading
from gateway.cli.bench.policy_replay import replaying
from gateway.cli.bench.policy_shadow import shadowing
from gateway.cli.output import Progress


def policies(plan: Plan, shown: Progress) -> list[Figure]:
    """All of them, one after the other."""
    return [*partitions(plan, shown), *reloading(plan, shown), *replaying(plan, shown), *shadowing(plan, shown)]
