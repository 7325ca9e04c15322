"""Figures: what it saves to ask only the policies that could match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from gateway.cli.bench.figure import Figure, Plan, at_least
from gateway.cli.bench.policy_texts import policy_texts
from gateway.cli.bench.rounds import alternate
from gateway.cli.bench.world import World
from gateway.cli.output import Progress
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine

COUNTS = (1_000, 5_000)
ACTION = "peer.read_context"
TIMES, EACH = 20, 10


def partitions(plan: Plan, shown: Progress) -> list[Figure]:
    """`peer.read_context` by an agent that observes the peer, its slice kept, no record, by 1,000 and by 5,000 policies over
    twenty actions on peers; asked of the partition of the action, and of all policies about its types at once, through the
    same engine.
    """
    return [_partition(plan, shown, count) for count in COUNTS]


def _partition(plan: Plan, shown: Progress, whole_count: int) -> Figure:
    world = World()
    count = plan.size(whole_count, least=300)
    bundle = Bundle.from_text(world.engine.bundle.schema_text, policy_texts(count), house_rules=False)
    whole = replace(bundle, members=MappingProxyType(dict.fromkeys(bundle.members, tuple(bundle.trees))))
    parts, all_ = (_asking(world, made) for made in (bundle, whole))
    parted, unparted = alternate(plan.rounds, [parts, all_], times=plan.size(TIMES, least=2), each=EACH, shown=shown)
    return Figure(
        f"policies-partition-{whole_count}",
        f"a decision by {count:,} policies at once, against one by those that could match its action",
        "x",
        unparted.over(parted),
        {
            "policies": count,
            "matching": len(bundle.members[ACTION]),
            "partitioned_us": parted.microseconds,
            "unpartitioned_us": unparted.microseconds,
            "rounds_x": unparted.spread_over(parted),
        },
        aim=at_least(10) if whole_count == COUNTS[-1] else None,
    )


def _asking(world: World, bundle: Bundle) -> Callable[[], None]:
    agent = world.agent(0)
    peer = world.peer(0, [agent])
    engine, slice, query = PolicyEngine(bundle, salt=b"bench"), world.slice(agent, peer), world.query(agent, ACTION, peer)

    def ask() -> None:
        for _ in range(EACH):
            if not engine.decide(query, slice).allowed:
                raise RuntimeError("the policies do not allow what is to be measured")

    return ask
