"""Figure: what one policy in the shadow adds to the decisions of its organisation."""

from __future__ import annotations

from collections.abc import Callable

from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.records import id_of
from gateway.cli.bench.rounds import alternate
from gateway.cli.bench.world import World
from gateway.cli.output import Progress
from gateway.model.org_policy import OrgPolicy, PolicyVersion

TIMES, EACH = 100, 20
ITS_ACTION, OTHER_ACTION = "peer.predict", "peer.read_context"
TEXT = """@id("bench") @reason("Nobody predicts before it is day.")
forbid (principal, action == Action::"peer.predict", resource is Peer) when { context.clock.minute < 0 };"""


def shadowing(plan: Plan, shown: Progress) -> list[Figure]:
    """`peer.predict` and `peer.read_context` by an agent that observes the peer, its slice kept, record included, by the
    shipped policies; once as they are, and once with one policy on `peer.predict` in the shadow beside them.
    """
    passes = [_asking(action, shadowed=shadowed) for action in (ITS_ACTION, OTHER_ACTION) for shadowed in (False, True)]
    alone, beside, other_alone, other_beside = alternate(plan.rounds, passes, times=plan.size(TIMES), each=EACH, shown=shown)
    measured: dict[str, object] = {
        "alone_us": alone.microseconds,
        "beside_us": beside.microseconds,
        "rounds_x": beside.spread_over(alone),
        "another_action_us": other_beside.microseconds,
        "another_action_x": other_beside.over(other_alone),
    }
    what = "a decision with a policy about its action in the shadow, against one without"
    return [Figure("policies-shadow", what, "x", beside.over(alone), measured, aim=at_most(1.5))]


def _asking(action: str, *, shadowed: bool) -> Callable[[], None]:
    world = World()
    agent = world.agent(0)
    peer = world.peer(0, [agent])
    if shadowed:
        policy_id = id_of("policy", 0)
        version = PolicyVersion(policy_id, 1, None, TEXT, "shadow", None, world.owner.id, world.now)
        policy = OrgPolicy(policy_id, world.org.id, "bench", None, world.owner.id, world.now, world.now, 1, version, None)
        engines = world.access.engines
        engines.put(world.org.id, engines.build([policy], world.now))

    def ask() -> None:
        for _ in range(EACH):
            world.access.authorize(world.session(agent), action, peer)

    return ask
