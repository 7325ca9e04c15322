"""Figure: what a decision costs here, against Cedar alone."""

from __future__ import annotations

from collections.abc import Callable

from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.rounds import alternate
from gateway.cli.bench.world import World
from gateway.cli.output import Progress
from gateway.errors import Forbidden
from gateway.model.caller import Caller
from gateway.model.records import Peer
from gateway.policy.bare import bare_question

ACTION = "peer.read_context"
PAIRS = 200
TIMES = 25


def decision(plan: Plan, shown: Progress) -> list[Figure]:
    """A decision through the one door, entities and record included, over many agents and peers in turn."""
    world, pairs = _world()
    changing, changing_pairs = _world()
    stranger = world.agent(PAIRS)
    questions = [_bare(world, agent, peer, validated=False) for agent, peer in pairs]
    validated = [_bare(world, agent, peer, validated=True) for agent, peer in pairs]
    if not all(ask() for ask in (*questions, *validated)):
        raise RuntimeError("Cedar does not allow what is to be measured")

    def allowed() -> None:
        for agent, peer in pairs:
            world.access.authorize(world.session(agent), ACTION, peer)

    def denied() -> None:
        for _, peer in pairs:
            _refused(world, stranger, peer)

    def made_anew() -> None:
        for agent, peer in changing_pairs:
            changing.touch()
            changing.access.authorize(changing.session(agent), ACTION, peer)

    def bare() -> None:
        for ask in questions:
            ask()

    def bare_validated() -> None:
        for ask in validated:
            ask()

    passes: list[Callable[[], None]] = [bare, bare_validated, allowed, denied, made_anew]
    yard, checked, kept, refused, anew = alternate(plan.rounds, passes, times=plan.size(TIMES), each=PAIRS, shown=shown)
    return [
        Figure(
            "decision",
            "a decision with its record, its slice kept, against Cedar alone over the same slice and policies",
            "x",
            kept.over(yard),
            {
                "bare_us": yard.microseconds,
                "bare_validated_us": checked.microseconds,
                "decision_us": kept.microseconds,
                "denial_us": refused.microseconds,
                "denial_x": refused.over(yard),
                "rounds_x": kept.spread_over(yard),
            },
            must=at_most(4),
            aim=at_most(2),
        ),
        Figure(
            "decision-anew",
            "the same with its slice made anew, as after each change of the state",
            "x",
            anew.over(yard),
            {"decision_us": anew.microseconds, "rounds_x": anew.spread_over(yard)},
        ),
    ]


def _world() -> tuple[World, list[tuple[Caller, Peer]]]:
    """A world, and in it agents that observe one peer each."""
    world = World()
    return world, [(agent, world.peer(number, [agent])) for number, agent in enumerate(map(world.agent, range(PAIRS)))]


def _bare(world: World, agent: Caller, peer: Peer, *, validated: bool) -> Callable[[], bool]:
    return bare_question(world.engine.bundle, world.query(agent, ACTION, peer), world.slice(agent, peer), validated=validated)


def _refused(world: World, agent: Caller, peer: Peer) -> None:
    try:
        world.access.authorize(world.session(agent), ACTION, peer)
    except Forbidden:
        return
    raise RuntimeError("a stranger was allowed")
