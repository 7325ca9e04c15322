"""Who may do what with memory, remote agents, grants and bridges, written out a second time in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.access.door import Access
from gateway.model.caller import Caller
from gateway.model.memory import MEMORY_ACTIONS, PROVENANCES, TIERS, Memory, MemoryGrant, RemoteConnection
from gateway.model.records import ROLES, Agent
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines
from gateway.store.entities import uid_of
from gateway.store.state import State
from tests.remote import a_memory, a_memory_grant, a_remote_connection, over
from tests.world import AWAY, HOME, HOUR, NOW, World, a_human, agent_caller, an_agent, caller, session, shipped

HUMANS = ("hanna", "hugo")
AGENTS = ("alpha", "beta")
CONNECTIONS = ("partner", "rival")
LATER = NOW + HOUR

# -- the table

ROWS = {f"memory.{action}" for action in MEMORY_ACTIONS}
ON_ROW = ROWS | {"memory.retag", "memory.widen", "memory.retract", "memory.delete"}
OF_THE_AGENT = {"memory.list_untagged", "memory.forget", "memory.import", "remote_connection.list"}
ON_AGENT = OF_THE_AGENT | {"memory.erase", "remote_connection.create", "bridge.rotate_token", "bridge.chat"}
OF_ITS_CONNECTION = {"remote_connection.read", "remote_connection.preview", "remote_connection.converse", "grant.list"}
ON_CONNECTION = OF_ITS_CONNECTION | {
    "remote_connection.suspend",
    "remote_connection.resume",
    "remote_connection.revoke",
    "remote_connection.rotate_credential",
    "grant.create",
    "grant.revoke",
    "bridge.serve",
}


class Oracle:
    """What the table says, of one state at one time."""

    def __init__(self, state: State, now: datetime) -> None:
        self.state = state
        self.now = now

    def on_row(self, who: Caller, action: str, row: Memory) -> bool:
        match who.type:
            case "Human":
                return self.leads(who, row.org_id)
            case "Agent":
                return self.acts(who.id, row.org_id) and who.id == row.agent_id and action != "memory.widen"
            case "Connection":
                return action in ROWS and self.granted(who, action.removeprefix("memory."), row)
            case _:
                return False

    def on_agent(self, who: Caller, action: str, agent: Agent) -> bool:
        if who.type == "Bridge" or action == "bridge.chat":
            own = who.type == "Bridge" and (who.id, who.org_id) == (agent.id, agent.org_id)
            return action == "bridge.chat" and own and agent.is_active
        if who.type == "Human":
            return self.leads(who, agent.org_id)
        return who.type == "Agent" and who.id == agent.id and agent.is_active and action in OF_THE_AGENT

    def on_connection(self, who: Caller, action: str, connection: RemoteConnection) -> bool:
        active = connection.status == "active"
        match who.type:
            case "Bridge":
                own = who.id == connection.agent_id and who.org_id == connection.org_id
                return action == "bridge.serve" and own and active and self.is_active(who.id)
            case "Connection":
                itself = who.id == connection.id and who.org_id == connection.org_id
                return action == "remote_connection.read" and itself and active and self.is_active(connection.agent_id)
            case "Human" if self.leads(who, connection.org_id):
                return action != "bridge.serve" and (active or action != "remote_connection.converse")
            case "Agent" if self.acts(who.id, connection.org_id) and who.id == connection.agent_id:
                return action in OF_ITS_CONNECTION and (active or action != "remote_connection.converse")
            case _:
                return False

    def leads(self, who: Caller, org_id: str) -> bool:
        human = self.state.humans.get(who.id)
        return human is not None and human.org_id == org_id and human.role in {"owner", "admin"}

    def acts(self, agent_id: str, org_id: str) -> bool:
        return self.is_active(agent_id) and self.state.agents[agent_id].org_id == org_id

    def is_active(self, agent_id: str) -> bool:
        return agent_id in self.state.agents and self.state.agents[agent_id].is_active

    def granted(self, who: Caller, action: str, row: Memory) -> bool:
        connection = self.state.remote_connections.get((who.org_id, who.id))
        if connection is None or connection.status != "active" or not self.is_active(connection.agent_id):
            return False
        if (row.org_id, row.agent_id) != (connection.org_id, connection.agent_id):
            return False
        gone = row.retracted_at is not None or row.superseded_by is not None
        ended = row.expires_at is not None and row.expires_at <= self.now
        if gone or (ended and action != "remember"):
            return False
        return any(self.covers(grant, action, row) for grant in self.state.grants_of(connection.org_id, connection.id))

    def covers(self, grant: MemoryGrant, action: str, row: Memory) -> bool:
        if grant.revoked_at is not None or (grant.expires_at is not None and grant.expires_at <= self.now):
            return False
        if action not in grant.actions or row.project_id != grant.project_id or row.classification not in grant.classifications:
            return False
        held = [tag in row.tags for tag in grant.tags]
        if held and not (all(held) if grant.tags_match == "all" else any(held)):
            return False
        came_over = {source.connection_id for source in row.provenance}
        return {"any": True, "owner_only": not came_over, "own_connection": came_over == {grant.connection_id}}[grant.provenance]


# -- worlds

#: One for all worlds: what takes long is to build the policy sets, which are kept. The id of a grant stands for all of it.
ENGINE = PolicyEngine(shipped(), salt=b"salt")
numbers = count()
orgs = st.sampled_from([HOME, HOME, HOME, AWAY])
agents, projects = st.sampled_from(AGENTS), st.sampled_from(["alpha", "alpha2", "Alpha"])
tags = st.lists(st.sampled_from(["a", "A", "a,b"]), unique=True, max_size=2).map(tuple)
ends = st.sampled_from([None, None, None, NOW, LATER])
rows = st.builds(
    a_memory,
    agent=st.sampled_from(["alpha", "alpha", "beta"]),
    org_id=orgs,
    project_id=st.sampled_from(["alpha", "alpha", "alpha", "alpha2", None]),
    tags=tags,
    classification=st.sampled_from(TIERS),
    retracted_at=st.sampled_from([None, None, None, NOW]),
    superseded_by=st.sampled_from([None, None, None, "newer"]),
    provenance=st.sets(st.sampled_from(CONNECTIONS)).map(lambda found: over(*found)),
    expires_at=st.sampled_from([None, None, NOW]),
)
grants = st.builds(
    lambda connection, org, **given: a_memory_grant(connection_id=connection, org_id=org, **given),
    connection=st.sampled_from(["partner", "partner", "rival"]),
    org=orgs,
    actions=st.sets(st.sampled_from(MEMORY_ACTIONS), min_size=1).map(lambda found: tuple(sorted(found))),
    project_id=projects,
    tags=tags | st.just(()),
    tags_match=st.sampled_from(["any", "all"]),
    classifications=st.sets(st.sampled_from(TIERS), min_size=1).map(lambda found: tuple(sorted(found))),
    provenance=st.sampled_from([*PROVENANCES, "any"]),
    expires_at=ends,
    revoked_at=st.sampled_from([None, None, NOW]),
)
statuses = st.sampled_from(["active", "active", "suspended", "revoked"])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    world = World()
    world.access = Access(Engines(ENGINE), world.state)
    for name in HUMANS:
        world.state.put_human(a_human(name, draw(st.sampled_from(ROLES)), draw(orgs)))
    for name in AGENTS:
        world.state.put_agent(an_agent(name, draw(orgs), is_active=draw(st.sampled_from([True, True, False]))))
    if draw(st.integers(0, 9)) == 0:
        world.state.drop_agent("alpha")
    for org_id in (HOME, AWAY):
        for name in CONNECTIONS:
            world.state.put_remote_connection(a_remote_connection(name, draw(agents), org_id, status=draw(statuses)))
    for grant in draw(st.lists(grants, max_size=4)):
        world.state.put_memory_grant(replace(grant, id=f"grant-{next(numbers)}"))
    return world


def everyone(state: State) -> list[Caller]:
    """The humans and agents, each in its organisation, and whoever is on the network, in both."""
    people = [caller(name, org_id=state.humans[name].org_id) for name in HUMANS]
    working = [agent_caller(name, state.agents[name].org_id if name in state.agents else HOME) for name in AGENTS]
    network = [caller(name, kind, org) for org in (HOME, AWAY) for kind, names in NETWORK for name in names]  # type: ignore[arg-type]
    return [*people, *working, *network, caller("app", "Platform")]


NETWORK = (("Connection", (*CONNECTIONS, "unknown")), ("Bridge", AGENTS))


def _mistaken(
    world: World, now: datetime, actions: set[str], target: Any, expected: Callable[[Caller, str, Any], bool]
) -> list[tuple[Caller, str, bool]]:
    """Who may do something that the table denies, or may not do what it allows."""
    found = []
    for who in everyone(world.state):
        if who.uid == uid_of(target) and who.org_id != target.org_id:
            continue  # two connections of one id are never met in one question: each is looked for in its organisation
        for action in sorted(actions):
            answer = world.access.ask(session(who, now), action, target).allowed
            if answer != expected(who, action, target):
                found.append((who, action, answer))
    return found


@settings(max_examples=120, deadline=None)
@given(worlds(), rows, st.sampled_from([timedelta(0), HOUR]))
def test_every_answer_about_a_row_is_the_one_of_the_table(world: World, row: Memory, later: timedelta) -> None:
    now = NOW + later
    assert _mistaken(world, now, ON_ROW, row, Oracle(world.state, now).on_row) == []


@settings(max_examples=60, deadline=None)
@given(worlds(), agents)
def test_every_answer_about_an_agent_or_a_connection_is_the_one_of_the_table(world: World, agent: str) -> None:
    oracle = Oracle(world.state, NOW)
    if agent in world.state.agents:
        assert _mistaken(world, NOW, ON_AGENT, world.state.agents[agent], oracle.on_agent) == []
    for connection in world.state.remote_connections.values():
        assert _mistaken(world, NOW, ON_CONNECTION, connection, oracle.on_connection) == []


def test_every_action_on_memory_and_remote_agents_is_compared() -> None:
    kinds = {"memory", "remote_connection", "grant", "bridge"}
    assert ON_ROW | ON_AGENT | ON_CONNECTION == {name for name in shipped().actions if name.partition(".")[0] in kinds}


def test_a_connection_does_what_its_grant_names_and_no_more() -> None:
    world = World()
    world.state.put_remote_connection(a_remote_connection())
    world.state.put_memory_grant(a_memory_grant(actions=("search", "remember")))
    who = caller("partner", "Connection")
    answers = {action: world.access.ask(session(who), action, a_memory()).allowed for action in ROWS}
    assert answers == {"memory.search": True, "memory.remember": True, "memory.read": False, "memory.query": False}
