"""Figures: what it costs to turn the policies and the grants of a remote connection into a condition on rows."""

from __future__ import annotations

from time import thread_time

from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.memory_fill import a_connection, a_grant
from gateway.cli.bench.rounds import Timed
from gateway.cli.bench.world import World
from gateway.cli.output import Progress
from gateway.model.caller import Caller
from gateway.store.entities import Compiler

ACTION = "memory.search"
CONNECTIONS, TIMES = 40, 20


def plans(plan: Plan, shown: Progress) -> list[Figure]:
    """Once for each of many remote connections with a grant of its own, and then once more."""
    world = World()
    agent = world.state.agents[world.agent(0).id]
    first: list[float] = []
    again: list[float] = []
    for number in range(plan.rounds):
        shown(number + 1, plan.rounds)
        for place in range(CONNECTIONS):
            each = number * CONNECTIONS + place
            connection = a_connection(each, world.org.id, agent.id, world.now)
            grant = a_grant(each, connection, f"project-{each}", world.now)
            world.state.put_remote_connection(connection)
            world.state.put_memory_grant(grant)
            caller = Caller("Connection", connection.id, world.org.id, "bench")
            query = world.query(caller, ACTION, agent)
            entities, _ = Compiler(world.state).compile(caller, agent, world.now)
            asked = world.engine.slice(*entities)
            for times, series in ((1, first), (TIMES, again)):
                start = thread_time()
                for _ in range(times):
                    planned = world.engine.plan(query, "Memory", asked, (grant,))
                series.append((thread_time() - start) / times)
            if not planned.verdict.allowed:
                raise RuntimeError("the policies do not allow what is to be measured")
    new, kept = Timed(tuple(first)), Timed(tuple(again))
    measured: dict[str, object] = {"connections": len(first)}
    what = "the policies and a grant as a condition on rows, for the first time"
    return [
        Figure("memory-plan", what, "ms", new.milliseconds, measured, aim=at_most(1.5), beside=new.over(kept)),
        Figure(
            "memory-plan-kept", "the same once more", "ms", kept.milliseconds, measured, aim=at_most(0.05), beside=kept.over(new)
        ),
    ]
