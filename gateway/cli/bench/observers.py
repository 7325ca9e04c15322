"""Figure: what a long observer list costs the agents that are on it."""

from __future__ import annotations

from collections.abc import Callable

from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.rounds import alternate
from gateway.cli.bench.world import World
from gateway.cli.output import Progress
from gateway.model.caller import Caller
from gateway.model.records import Peer

ACTION = "peer.read_context"
FEW, SOME, MANY = 3, 100, 10_000
TIMES, EACH = 100, 20


def observers(plan: Plan, shown: Progress) -> list[Figure]:
    """Decisions by an agent in the middle of the list, its slice kept, and with its slice made anew each time."""
    world = World()
    agents = [world.agent(number) for number in range(plan.size(MANY, least=SOME))]
    sizes = (FEW, SOME, len(agents))
    listed = [(agents[size // 2], world.peer(number, agents[:size])) for number, size in enumerate(sizes)]
    kept, anew = (
        alternate(plan.rounds, [make(world, *pair) for pair in listed], times=plan.size(TIMES), each=EACH, shown=shown)
        for make in (_kept, _anew)
    )
    return [
        Figure(
            name,
            f"a decision by a listed agent, {how}: {sizes[-1]:,} observers against {FEW}",
            "x",
            times[-1].over(times[0]),
            {f"{size}_observers_us": timed.microseconds for size, timed in zip(sizes, times, strict=True)}
            | {"rounds_x": times[-1].spread_over(times[0])},
            must=must,
        )
        for name, how, times, must in (
            ("observers", "its slice kept", kept, at_most(1.25)),
            ("observers-anew", "its slice made anew", anew, None),
        )
    ]


def _kept(world: World, agent: Caller, peer: Peer) -> Callable[[], None]:
    def decide() -> None:
        for _ in range(EACH):
            world.access.authorize(world.session(agent), ACTION, peer)

    return decide


def _anew(world: World, agent: Caller, peer: Peer) -> Callable[[], None]:
    def decide() -> None:
        for _ in range(EACH):
            world.touch()
            world.access.authorize(world.session(agent), ACTION, peer)

    return decide
