"""Figure: what many written rules cost a prediction."""

from __future__ import annotations

from collections.abc import Callable

from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.records import some_rules
from gateway.cli.bench.rounds import alternate
from gateway.cli.bench.world import World
from gateway.cli.output import Progress
from gateway.model.caller import Caller
from gateway.model.proposal import Proposal, read_proposal

#: A document holds at most 100 rules; 300 are put into the state directly, to see where it goes.
COUNTS = (3, 30, 300)
TIMES, EACH = 100, 20


def rules(plan: Plan, shown: Progress) -> list[Figure]:
    """May this be automatic? Asked about the action of the last rule, so that every rule before it is passed."""
    world = World()
    asked = [_asked(world, number, count) for number, count in enumerate(COUNTS)]
    passes = [_ask(world, agent, proposal) for agent, proposal in asked]
    times = alternate(plan.rounds, passes, times=plan.size(TIMES), each=EACH, shown=shown)
    return [
        Figure(
            "rules",
            f"whether an action may be automatic, by {COUNTS[-1]} written rules against {COUNTS[0]}",
            "x",
            times[-1].over(times[0]),
            {f"{count}_rules_us": timed.microseconds for count, timed in zip(COUNTS, times, strict=True)}
            | {"rounds_x": times[-1].spread_over(times[0])},
            must=at_most(2.2),
        )
    ]


def _asked(world: World, number: int, count: int) -> tuple[Caller, Proposal]:
    written = some_rules(count)
    action = written.rules[-1].action_type
    read = read_proposal(action, {}, rules=written, known_recipient=False, declared_tier=None, sensitive_actions=())
    return world.agent(number, written), read


def _ask(world: World, agent: Caller, proposal: Proposal) -> Callable[[], None]:
    def ask() -> None:
        for _ in range(EACH):
            ruling = world.access.ask_automatic(world.session(agent), proposal, principal=agent, person_paused=False)
            if not ruling.allowed:
                raise RuntimeError("the last rule does not allow what is to be measured")

    return ask
