"""Whatever an organisation writes, nobody does more than without it, and nobody more than the table of roles lets them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.access.door import Access
from gateway.model.caller import Caller
from gateway.model.records import Org
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines
from gateway.policy.organisation import extend
from gateway.store.targets import Installation, Target, uid_of
from tests import test_role_table as roles
from tests.remote import a_memory, a_memory_grant, a_remote_connection
from tests.world import (
    AWAY,
    HOME,
    World,
    a_connection,
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
    'forbid (principal is Human, action in Action::"content", resource);',
    "forbid (principal, action, resource) unless { principal is Agent };",
)
CONDITIONS = (
    "true",
    "context.clock.weekday < 8",
    "principal is Human || principal is Agent",
    "!(resource is Approval)",
    "9223372036854775807 + context.clock.weekday > 0",
)
texts = st.lists(
    st.builds(
        lambda text, condition: f"{text[:-1]} when {{ {condition} }};", st.sampled_from(WRITTEN), st.sampled_from(CONDITIONS)
    ),
    min_size=1,
    max_size=4,
).map("\n".join)
ROLES = ("owner", "admin", "security", "auditor", "member")
Asked = tuple[Caller, str, int]


def a_world(text: str | None = None) -> World:
    """Two organisations, of which each wrote the same; agents of which one is listed; a remote agent of few grants."""
    world = World()
    for human in ROLES:
        world.state.put_agent(an_agent(f"of-{human}", created_by=human))
    world.state.put_connection(a_connection("link", "member"))
    world.state.put_peer(a_peer("outside", "x", peer_type="external"))
    world.state.put_remote_connection(a_remote_connection("partner", "agent"))
    world.state.put_memory_grant(replace(a_memory_grant(connection_id="partner", actions=("search",)), id="grant-few"))
    if text is not None:
        world.access = Access(Engines(PolicyEngine(extend(shipped(), {"written": text}), salt=b"salt")), world.state)
    return world


def callers() -> list[Caller]:
    people = [caller(role) for role in ROLES]
    agents = [agent_caller(name) for name in ("agent", "other", "of-security")]
    others = [caller("partner", "Connection"), caller("agent", "Bridge"), caller("app", "Platform")]
    return [*people, *agents, *others, caller("stranger", org_id=AWAY), agent_caller("foreign", AWAY)]


def targets(world: World) -> list[Target]:
    state = world.state
    approvals = [
        an_approval("a", "agent", "owner"),
        an_approval("b", "agent", "member"),
        an_approval("c", None, "x", asked_by="y"),
    ]
    rows = [a_memory(agent="agent"), a_memory(agent="agent", project_id=None), a_memory(agent="other")]
    agents = [state.agents[name] for name in ("agent", "other", "of-member")]
    humans = [state.humans["member"], state.humans["owner"]]
    policies = [an_org_policy("written"), state.remote_connections[HOME, "partner"]]
    return [*state.peers.values(), *agents, *approvals, *rows, *humans, *policies, world.org, state.orgs[AWAY], Installation()]


def org_of(target: Target) -> str | None:
    """The organisation that a target is in; None for the installation, which is in none."""
    match target:
        case Installation():
            return None
        case Org():
            return target.id
    found: str = target.org_id
    return found


def allowed(world: World) -> Iterator[Asked]:
    """Who may do what, and about which of the targets, of all that the schema lets anybody ask."""
    vocabulary = shipped().vocabulary
    for number, target in enumerate(targets(world)):
        kind = uid_of(target).type
        for action, kinds in vocabulary.resources.items():
            if kind in kinds:
                for who in callers():
                    if who.type in vocabulary.principals[action] and world.access.ask(session(who), action, target).allowed:
                        yield who, action, number


@cache
def without() -> frozenset[Asked]:
    return frozenset(allowed(a_world()))


def check(text: str) -> None:
    world = a_world(text)
    found = frozenset(allowed(world))
    assert found - without() == frozenset()
    whole = targets(world)
    for who, action, number in found:
        assert org_of(whole[number]) in (who.org_id, None), (who, action, whole[number])
        assert not (who.id in {"other", "of-security"} and action in roles.PEER_ACTIONS), (who, action)


@pytest.mark.parametrize("text", WRITTEN)
def test_no_single_policy_lets_anybody_do_more(text: str) -> None:
    check(text)


@settings(max_examples=8, deadline=None)
@given(texts)
def test_no_policies_together_let_anybody_do_more(text: str) -> None:
    check(text)


def test_there_is_something_to_lose_for_everybody() -> None:
    held = {(who.type, who.id) for who, _, _ in without()}
    assert held >= {(who.type, who.id) for who in callers()}
    narrowed = frozenset(allowed(a_world(WRITTEN[-1])))
    assert {who.type for who, action, _ in without() - narrowed} >= {"Human", "Connection", "Bridge"}
