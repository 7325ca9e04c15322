"""Whatever an organisation writes, nobody does more than the table of roles lets its kind do at all."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.access.door import Access
from gateway.model.caller import Caller
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines
from gateway.policy.organisation import extend
from gateway.store.entities import Installation, Target
from tests import test_memory_table as memory
from tests import test_role_table as roles
from tests.remote import a_memory, a_memory_grant, a_remote_connection
from tests.world import (
    AWAY,
    HOME,
    NOW,
    World,
    a_connection,
    a_human,
    a_peer,
    agent_caller,
    an_agent,
    an_approval,
    an_org_policy,
    caller,
    session,
    shipped,
)

#: The policies that a careless or hostile writer would try, the widest first.
WRITTEN = (
    "permit (principal, action, resource);",
    "permit (principal, action, resource) when { true };",
    'permit (principal is Agent, action in Action::"observed", resource);',
    'permit (principal is Human, action in [Action::"content", Action::"human_only"], resource);',
    'permit (principal in Role::"security", action in Action::"authority", resource);',
    'permit (principal is Connection, action in Action::"memory_rows", resource);',
    'permit (principal, action, resource is Memory) when { principal in Org::"home" || principal in Org::"away" };',
    'permit (principal, action in [Action::"administration", Action::"membership"], resource);',
    'permit (principal is Platform, action in Action::"platform", resource);',
    'permit (principal is Bridge, action in Action::"bridge", resource) unless { principal is Human };',
)
CONDITIONS = ("true", "context.clock.weekday < 8", "principal is Human || principal is Agent", "!(resource is Approval)")
texts = st.lists(
    st.builds(
        lambda text, condition: f"{text[:-1]} when {{ {condition} }};", st.sampled_from(WRITTEN), st.sampled_from(CONDITIONS)
    ),
    min_size=1,
    max_size=4,
).map("\n".join)
ROLES = ("security", "auditor", "member")
#: Of the table, what is held by guardrails: content, authority over it, members, and the data directory. That there is a
#: peer, and who is listed for it, an organisation may show to others; a person may link what is about them.
HELD = {
    "Peer": {name for name in roles.PEER_ACTIONS if name not in {"peer.read", "peer.read_observers", "peer.link"}},
    "Agent": {"agent.update", "agent.set_rules", "agent.rotate_key", "agent.create_child"},
    "Approval": {"approval.decide"},
}
ADMINISTRATION = {"admin.backup", "admin.erase", "admin.reload"}


@cache
def engine(text: str) -> PolicyEngine:
    return PolicyEngine(extend(shipped(), {"written": text}), salt=b"salt")


def a_world(text: str) -> World:
    """Two organisations, of which each wrote the same; agents of which one is listed; a remote agent of few grants."""
    world = World()
    for human in ROLES:
        world.state.put_agent(an_agent(f"of-{human}", created_by=human))
    world.state.put_connection(a_connection("link", "member"))
    world.state.put_peer(a_peer("outside", "x", peer_type="external"))
    world.state.put_remote_connection(a_remote_connection("partner", "agent"))
    world.state.put_memory_grant(replace(a_memory_grant(connection_id="partner", actions=("search",)), id="grant-few"))
    world.access = Access(Engines(engine(text)), world.state)
    return world


def may(world: World, who: Caller, action: str, target: Target) -> bool:
    return world.access.ask(session(who), action, target).allowed


def check(text: str) -> None:
    world = a_world(text)
    _unlisted_agents_read_no_peer(world)
    _nothing_across_organisations(world)
    _humans_stay_in_their_row(world)
    _the_network_and_platforms_do_their_own_acts(world)


def _unlisted_agents_read_no_peer(world: World) -> None:
    for agent in ("other", "of-security", "foreign"):
        who = agent_caller(agent, AWAY if agent == "foreign" else HOME)
        for peer in world.state.peers.values():
            allowed = {action for action in roles.PEER_ACTIONS if may(world, who, action, peer)}
            assert allowed == set(), (agent, peer.id)


def _nothing_across_organisations(world: World) -> None:
    callers = [caller("stranger", org_id=AWAY), agent_caller("foreign", AWAY)]
    targets: dict[str, list[Target]] = {
        "Peer": [world.peer],
        "Agent": [world.state.agents["agent"]],
        "Org": [world.org],
        "Memory": [a_memory(agent="agent")],
        "Connection": [world.state.remote_connections[HOME, "partner"]],
        "Policy": [an_org_policy("policy")],
        "Human": [world.state.humans["member"]],
    }
    for who in callers:
        for action, kinds in shipped().vocabulary.resources.items():
            for target in (target for kind in kinds for target in targets.get(kind, ())):
                assert not may(world, who, action, target), (who, action)


def _humans_stay_in_their_row(world: World) -> None:
    oracle, rows = roles.Oracle(world, NOW), memory.Oracle(world.state, NOW)
    agents = [world.state.agents[name] for name in ("agent", "other", *(f"of-{role}" for role in ROLES))]
    approvals = [
        an_approval("a", "agent", "owner"),
        an_approval("b", "agent", "member"),
        an_approval("c", None, "x", asked_by="y"),
    ]
    for role in ROLES:
        who = caller(role)
        allowed: list[tuple[str, Any]] = []
        for peer in world.state.peers.values():
            allowed += [(a, peer) for a in HELD["Peer"] if may(world, who, a, peer) and not oracle.on_peer(who, a, peer)]
        for agent in agents:
            allowed += [(a, agent) for a in HELD["Agent"] if may(world, who, a, agent) and not oracle.on_agent(who, a, agent)]
        for approval in approvals:
            allowed += [
                (a, approval)
                for a in HELD["Approval"]
                if may(world, who, a, approval) and not oracle.on_approval(who, a, approval)
            ]
        row = a_memory(agent="agent")
        allowed += [(a, row) for a in memory.ON_ROW if may(world, who, a, row) and not rows.on_row(who, a, row)]
        connection = world.state.remote_connections[HOME, "partner"]
        granting = ("grant.create", "remote_connection.resume", "remote_connection.rotate_credential", "bridge.serve")
        allowed += [(a, connection) for a in granting if may(world, who, a, connection)]
        whole = ("member.list", "member.add", "org.update_settings", "platform_app.create", "platform_template.create")
        allowed += [(a, world.org) for a in whole if may(world, who, a, world.org)]
        allowed += [(a, role) for a in ADMINISTRATION if may(world, who, a, Installation())]
        human = a_human("member")
        allowed += [(a, human) for a in ("member.update", "member.remove") if may(world, who, a, human)]
        governed = {"policy.create", "policy.list", "policy.test", "policy.shadow_report", "policy.replay"}
        table = {"security": governed, "auditor": governed - {"policy.create"}, "member": set[str]()}[role]
        assert {a for a in governed if may(world, who, a, world.org)} == table
        assert allowed == [], role


def _the_network_and_platforms_do_their_own_acts(world: World) -> None:
    rows = memory.Oracle(world.state, NOW)
    connection = world.state.remote_connections[HOME, "partner"]
    partner, bridge, app = caller("partner", "Connection"), caller("agent", "Bridge"), caller("app", "Platform")
    for row in (a_memory(agent="agent"), a_memory(agent="agent", project_id=None), a_memory(agent="other")):
        for who in (partner, bridge, app):
            done = {a for a in memory.ON_ROW if may(world, who, a, row)}
            assert done <= {a for a in memory.ON_ROW if rows.on_row(who, a, row)}, (who, row)
    for who, own in ((partner, {"remote_connection.read"}), (bridge, {"bridge.serve"}), (app, set[str]())):
        assert {a for a in memory.ON_CONNECTION if may(world, who, a, connection)} <= own
        assert {a for a in roles.PEER_ACTIONS if may(world, who, a, world.peer)} == set()
        assert {a for a in roles.AGENT_ACTIONS if may(world, who, a, world.state.agents["agent"])} == set()
        assert {a for a in roles.ORG_ACTIONS if may(world, who, a, world.org)} == set()


@pytest.mark.parametrize("text", WRITTEN)
def test_no_single_policy_lets_anybody_do_more(text: str) -> None:
    check(text)


@settings(max_examples=12, deadline=None)
@given(texts)
def test_no_policies_together_let_anybody_do_more(text: str) -> None:
    check(text)


def test_the_widest_policy_does_open_something() -> None:
    world = a_world(WRITTEN[0])
    assert may(world, caller("auditor"), "org.read_settings", world.org)
    assert may(world, caller("security"), "agent.list", world.org)
