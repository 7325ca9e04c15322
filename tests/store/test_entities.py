"""Compilation: whatever the state, what is asked about comes whole, fits the schema, and never raises."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.model.caller import OPERATOR, Caller, PrincipalType
from gateway.model.entity import Entity, EntityUid
from gateway.model.memory import LAYERS, TIERS, Memory, RemoteConnection
from gateway.model.org_policy import OrgPolicy
from gateway.model.records import (
    PEER_TYPES,
    ROLES,
    Agent,
    ApprovalHeader,
    Credential,
    Human,
    Org,
    OrgSettings,
    Pause,
    Peer,
    PlatformApp,
    PlatformConnection,
)
from gateway.model.rules import MODES, NO_RULES, parse_rules
from gateway.policy.engine import PolicyEngine
from gateway.store.entities import Compiler, Installation, LogEntry, Missing, MissingType, Target, proposal_entity, uid_of
from gateway.store.state import State
from tests.remote import a_memory, a_memory_grant, a_remote_connection, over
from tests.world import (
    AWAY,
    HOME,
    HOUR,
    NOW,
    World,
    a_connection,
    a_human,
    a_peer,
    a_proposal,
    agent_caller,
    an_agent,
    an_approval,
    an_entry,
    an_org_policy,
    caller,
    shipped,
)

ENGINE = PolicyEngine(shipped(), salt=b"salt")
# Few names, so that references dangle, meet and cross organisations.
names = st.sampled_from(["a", "b", "", 'é"::\\'])
orgs = st.sampled_from(["home", "away"])
ends = st.sampled_from([None, NOW - HOUR, NOW, NOW + HOUR, NOW + 2 * HOUR])
humans = st.builds(a_human, names, st.sampled_from(ROLES), orgs)
policies = st.sampled_from([NO_RULES, *(
    parse_rules({"rules": [{"action_type": "refund.create", "mode": mode, "require_for_amount_above_usd": limit}]})
    for mode in MODES
    for limit in (None, "0", "50", "999999999999.9999")
)])  # fmt: skip
agents = st.builds(
    an_agent,
    names,
    orgs,
    is_active=st.booleans(),
    created_by=names,
    parent_id=st.none() | names,
    connection_id=st.none() | names,
    rules=policies,
)
peers = st.builds(
    a_peer,
    names,
    names,
    orgs,
    peer_type=st.sampled_from(PEER_TYPES),
    connection_id=st.none() | names,
    archived=st.booleans(),
    pause=st.builds(Pause, st.booleans(), st.booleans(), ends),
)
connections = st.builds(
    a_connection, names, names, orgs, app_id=names, status=st.sampled_from(["pending", "active", "disconnected"])
)
approvals = st.builds(
    an_approval,
    names,
    names,
    names,
    org_id=orgs,
    connection_id=st.none() | names,
    risk_tier=st.integers(1, 3),
    asked_by=st.none() | names,
)
credentials = st.builds(
    Credential, names, orgs, st.sampled_from(["Human", "Agent", "Platform"]), names, names, names, st.just(NOW), ends
)
apps = st.builds(PlatformApp, names, orgs, names, names, names, st.just(NOW))
remote_connections = st.builds(
    a_remote_connection, names, names, orgs, status=st.sampled_from(["active", "suspended", "revoked"])
)
grants = st.builds(
    a_memory_grant,
    st.sampled_from(["g1", "g2", "g3"]),
    names,
    orgs,
    project_id=names,
    classifications=st.lists(st.sampled_from(TIERS), max_size=2).map(tuple),
    expires_at=ends,
    revoked_at=st.sampled_from([None, None, NOW]),
)
memories = st.builds(
    a_memory,
    names,
    names,
    orgs,
    layer=st.sampled_from(LAYERS),
    project_id=st.none() | names,
    tags=st.lists(names, unique=True).map(tuple),
    classification=st.sampled_from(TIERS),
    retracted_at=st.none() | st.just(NOW),
    superseded_by=st.none() | names,
    provenance=st.lists(names, unique=True).map(lambda found: over(*found)),
)
ending = st.builds(lambda row, end: replace(row, expires_at=end), memories, ends)
targets: st.SearchStrategy[Target] = st.one_of(
    st.builds(Org, orgs, names, st.just(OrgSettings()), st.just(NOW)),
    humans,
    agents,
    peers,
    approvals,
    apps,
    connections,
    credentials,
    remote_connections,
    memories,
    st.builds(LogEntry, names, orgs),
    st.builds(an_org_policy, names, st.just(""), orgs),
    st.just(Installation()),
    st.builds(Missing, st.sampled_from(get_args(MissingType)), names),
)
CALLERS = [
    caller("owner"),
    agent_caller(),
    caller("app", "Platform"),
    caller("partner", "Connection"),
    caller("agent", "Bridge"),
    OPERATOR,
]
callers = st.just(OPERATOR) | st.builds(Caller, st.sampled_from(get_args(PrincipalType)), names, orgs, names)


@st.composite
def states(draw: st.DrawFn) -> State:
    state = State()
    for human in draw(st.lists(humans, max_size=3)):
        state.put_human(human)
    for app in draw(st.lists(apps, max_size=2)):
        state.put_app(app)
    for connection in draw(st.lists(connections, max_size=2)):
        state.put_connection(connection)
    for remote in draw(st.lists(remote_connections, max_size=3)):
        state.put_remote_connection(remote)
    for grant in draw(st.lists(grants, max_size=3, unique_by=lambda made: made.id)):
        state.put_memory_grant(grant)
    for agent in draw(st.lists(agents, min_size=1, max_size=3)):
        state.put_agent(agent)
    for peer in draw(st.lists(peers, max_size=3)):
        state.put_peer(peer)
        state.put_observers(peer.id, [an_entry(peer.id, agent, draw(ends)) for agent in draw(st.sets(names, max_size=3))])
    return state


@settings(max_examples=300, deadline=None)
@given(states(), callers, targets | ending)
def test_every_question_compiles_to_a_whole_slice_that_fits_the_schema(state: State, who: Caller, target: Target) -> None:
    entities, until = Compiler(state).compile(who, target, NOW)
    made = ENGINE.slice(*entities)
    assert made.missing == frozenset()
    assert {who.uid, uid_of(target)} <= made.uids
    assert until is None or until > NOW


@settings(max_examples=200, deadline=None)
@given(states(), callers, st.sampled_from(["refund.create", "agent.delete", "access_request", "policy_change"]), st.booleans())
def test_every_proposal_compiles_to_a_whole_slice_that_fits_the_schema(
    state: State, who: Caller, action: str, paused: bool
) -> None:
    entities, until = Compiler(state).compile_authority(who, who.org_id, NOW)
    for proposal in (a_proposal(action), a_proposal(action, amount_usd="922337203685477.5807"), a_proposal(action, amount=1)):
        entity = proposal_entity(proposal, who.org_id, person_paused=paused)
        made = ENGINE.extend(ENGINE.slice(*entities), entity)
        assert made.missing == frozenset()
        assert {who.uid, entity.uid} <= made.uids
    assert until is None


@settings(max_examples=100, deadline=None)
@given(states(), callers, targets)
def test_a_compilation_stands_until_its_end(state: State, who: Caller, target: Target) -> None:
    compiler = Compiler(state)
    entities, until = compiler.compile(who, target, NOW)
    moments = [NOW + timedelta(minutes=minutes) for minutes in range(0, 200, 20)]
    assert {compiler.compile(who, target, at)[0] == entities for at in moments if until is None or at < until} == {True}


def test_the_missing_types_are_the_resources_of_the_schema_that_have_an_id_on_the_wire() -> None:
    resources = set()
    for line in shipped().schema_text.splitlines():
        if "resource: [" in line:
            resources |= set(line.partition("resource: [")[2].partition("]")[0].split(", "))
    assert resources - {"Org", "Installation", "ProposedAction"} == set(get_args(MissingType))


@pytest.mark.parametrize("kind", get_args(MissingType))
@pytest.mark.parametrize("who", CALLERS)
def test_an_unknown_and_a_foreign_id_compile_alike_but_for_the_id(kind: MissingType, who: Caller) -> None:
    compiler = Compiler(World().state)
    unknown, _ = compiler.compile(who, Missing(kind, "unknown"), NOW)
    for foreign in ("stranger", "foreign", "abroad"):
        found, _ = compiler.compile(who, Missing(kind, foreign), NOW)
        assert sorted(_renamed(found, foreign)) == sorted(_renamed(unknown, "unknown"))


def _renamed(entities: tuple[Entity, ...], name: str) -> list[str]:
    return [repr(entity).replace(f"'{name}'", "ID") for entity in entities]


def test_an_agent_has_the_edge_to_a_peer_only_while_it_is_listed() -> None:
    world = World()
    edge = EntityUid("Observers", "peer")
    for until, expected in ((None, True), (NOW, False), (NOW + HOUR, True)):
        world.observe("agent", until=until)
        assert (edge in _parents(world, "agent", world.peer)) is expected
        assert edge not in _parents(world, "other", world.peer)
    assert edge not in _parents(world, "agent", world.state.peers["abroad"])


def _parents(world: World, agent: str, peer: Peer) -> tuple[EntityUid, ...]:
    entities, _ = Compiler(world.state).compile(agent_caller(agent), peer, NOW)
    [found] = [entity for entity in entities if entity.uid == EntityUid("Agent", agent)]
    return found.parents


def test_the_person_of_a_peer_is_the_user_it_names_or_the_user_of_its_connection() -> None:
    world = World()
    world.state.put_connection(a_connection("link", "admin"))
    world.state.put_human(a_human("abroad-too", org_id="away"))
    people = {
        a_peer("user"): "member",
        a_peer("foreign", "stranger"): None,
        a_peer("unknown", "nobody"): None,
        a_peer("linked", "link", peer_type="platform_connection", connection_id="link"): "admin",
        a_peer("external", "member", peer_type="external"): None,
        a_peer("external-linked", "x", peer_type="external", connection_id="link"): "admin",
        a_peer("unlinked", "gone", peer_type="platform_connection", connection_id="gone"): None,
    }
    for peer, person in people.items():
        entities, _ = Compiler(world.state).compile(caller("owner"), peer, NOW)
        [entity] = [entity for entity in entities if entity.uid == uid_of(peer)]
        assert entity.attrs.get("person") == (None if person is None else EntityUid("Human", person)), peer.id


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Org(HOME, "", OrgSettings(), NOW), 'Org::"home"'),
        (a_human("x"), 'Human::"x"'),
        (an_agent("x"), 'Agent::"x"'),
        (a_peer("x"), 'Peer::"x"'),
        (an_approval("x"), 'Approval::"x"'),
        (PlatformApp("x", HOME, "", "", "y", NOW), 'Platform::"x"'),
        (a_connection("x"), 'PlatformConnection::"x"'),
        (Credential("x", HOME, "Human", "y", "", "", NOW, None), 'Credential::"x"'),
        (a_remote_connection("x"), 'Connection::"x"'),
        (a_memory("x"), 'Memory::"x"'),
        (LogEntry("x", HOME), 'Decision::"x"'),
        (an_org_policy("x"), 'Policy::"x"'),
        (Installation(), 'Installation::"local"'),
        (Missing("Peer", "x"), 'Peer::"x"'),
    ],
)
def test_a_target_is_decided_under_its_own_identifier(target: Target, expected: str) -> None:
    assert str(uid_of(target)) == expected


def test_a_proposal_is_decided_under_its_action() -> None:
    assert str(uid_of(a_proposal("refund.create"))) == 'ProposedAction::"refund.create"'


def test_every_kind_of_target_is_in_the_property_tests() -> None:
    people, platforms = (Org, Human, Agent, Credential), (PlatformApp, PlatformConnection)
    remote = (RemoteConnection, Memory, OrgPolicy)
    kinds = (*people, *platforms, *remote, Peer, ApprovalHeader, LogEntry, Installation, Missing)
    assert set(get_args(Target)) == set(kinds)


def _entity(world: World, target: Target) -> Entity:
    entities, _ = Compiler(world.state).compile(caller("owner"), target, NOW)
    [found] = [entity for entity in entities if entity.uid == uid_of(target)]
    return found


def test_an_approval_of_a_connection_names_it_and_one_of_a_lost_connection_does_not() -> None:
    world = World()
    world.state.put_connection(a_connection("link"))
    named = [_entity(world, an_approval(connection_id=link)).attrs.get("connection") for link in ("link", "gone", None)]
    assert named == [EntityUid("PlatformConnection", "link"), None, None]


def test_a_peer_of_any_type_names_the_connection_that_it_is_linked_to() -> None:
    world = World()
    world.state.put_connection(a_connection("link"))
    for kind in PEER_TYPES:
        named = [
            _entity(world, a_peer("p", peer_type=kind, connection_id=link)).attrs.get("connection")
            for link in ("link", "gone", None)
        ]
        assert named == [EntityUid("PlatformConnection", "link"), None, None]


def test_the_data_directory_is_in_an_organisation_only_while_there_is_no_other() -> None:
    world = World()
    assert _entity(world, Installation()).parents == ()
    world.state.orgs.pop("away")
    assert _entity(world, Installation()).parents == (EntityUid("Org", HOME),)


def test_only_the_key_of_a_human_has_a_holder() -> None:
    kinds = ("Human", "Agent", "Platform")
    holders = [_entity(World(), Credential("k", HOME, kind, "member", "", "", NOW, None)).attrs.get("holder") for kind in kinds]  # type: ignore[arg-type]
    assert holders == [EntityUid("Human", "member"), None, None]


def test_what_the_state_keeps_of_a_target_is_what_is_current() -> None:
    world = World()
    compiler = Compiler(world.state)
    before = a_connection("link")
    assert compiler.current(before) == Missing("PlatformConnection", "link")
    world.state.put_connection(before)
    ended = a_connection("link", status="disconnected")
    world.state.put_connection(ended)
    assert compiler.current(before) is ended
    assert compiler.current(a_peer("peer", "somebody else")) is world.peer
    assert compiler.current(None) is None


# -- remote agents and memory


def _connected(world: World, *, org_id: str = HOME) -> Entity:
    """The connection `partner` of an organisation, as the principal of a question."""
    entities, _ = Compiler(world.state).compile(caller("partner", "Connection", org_id), world.state.orgs[org_id], NOW)
    [found] = [entity for entity in entities if entity.uid == EntityUid("Connection", "partner")]
    return found


def test_a_connection_names_its_live_grants_and_what_they_name() -> None:
    world = World()
    world.state.put_remote_connection(a_remote_connection())
    world.state.put_memory_grant(a_memory_grant("b", project_id="beta", classifications=("pii",)))
    world.state.put_memory_grant(a_memory_grant("a", expires_at=NOW + HOUR))
    world.state.put_memory_grant(a_memory_grant("ended", project_id="ended", expires_at=NOW))
    world.state.put_memory_grant(a_memory_grant("revoked", project_id="revoked", revoked_at=NOW))
    world.state.put_memory_grant(a_memory_grant("other", "somebody", project_id="other"))
    found = _connected(world)
    org = EntityUid("Org", HOME)
    assert found == Entity(
        EntityUid("Connection", "partner"),
        {
            "org": org,
            "agent": EntityUid("Agent", "agent"),
            "active": True,
            "grants": ("a", "b"),
            "projects": ("alpha", "beta"),
            "tiers": ("internal", "pii", "public"),
        },
        (org,),
    )


@pytest.mark.parametrize("status", ["suspended", "revoked"])
def test_a_connection_that_is_not_active_has_no_grants(status: str) -> None:
    world = World()
    world.state.put_remote_connection(a_remote_connection(status=status))
    world.state.put_memory_grant(a_memory_grant())
    attrs = _connected(world).attrs
    assert {name: attrs[name] for name in ("active", "grants", "projects", "tiers")} == {
        "active": False, "grants": (), "projects": (), "tiers": (),
    }  # fmt: skip


def test_connections_of_one_id_in_two_organisations_are_two() -> None:
    world = World()
    world.state.put_remote_connection(a_remote_connection())
    world.state.put_remote_connection(a_remote_connection(agent="foreign", org_id=AWAY))
    world.state.put_memory_grant(a_memory_grant("here"))
    world.state.put_memory_grant(a_memory_grant("there", org_id=AWAY, project_id="beta"))
    named = [
        (found.attrs["agent"], found.attrs["grants"], found.attrs["projects"])
        for found in (_connected(world), _connected(world, org_id=AWAY))
    ]
    assert named == [
        (EntityUid("Agent", "agent"), ("here",), ("alpha",)),
        (EntityUid("Agent", "foreign"), ("there",), ("beta",)),
    ]


def test_a_connection_that_is_not_there_is_of_no_organisation_and_has_nothing() -> None:
    found = _connected(World())
    nowhere = EntityUid("Org", "")
    assert found.parents == (nowhere,)
    assert found.attrs == {
        "org": nowhere, "agent": EntityUid("Agent", ""), "active": False, "grants": (), "projects": (), "tiers": (),
    }  # fmt: skip


def test_a_bridge_is_of_its_agent() -> None:
    world = World()
    entities, _ = Compiler(world.state).compile(caller("agent", "Bridge"), world.org, NOW)
    org = EntityUid("Org", HOME)
    [found] = [entity for entity in entities if entity.uid.type == "Bridge"]
    assert found == Entity(EntityUid("Bridge", "agent"), {"org": org, "agent": EntityUid("Agent", "agent")}, (org,))


def test_a_row_of_memory_holds_its_metadata_and_nothing_that_anybody_wrote() -> None:
    world = World()
    row = a_memory(
        tags=("a", "b"), provenance=over("partner", "other"), expires_at=NOW, superseded_by="newer", source_did="did:web:x"
    )
    org = EntityUid("Org", HOME)
    attrs = {
        "org": org,
        "agent": EntityUid("Agent", "agent"),
        "layer": "fact",
        "project": "alpha",
        "tags": ("a", "b"),
        "classification": "internal",
        "sources": ("other", "partner"),
        "retracted": False,
        "superseded": True,
        "expired": True,
    }
    assert _entity(world, row) == Entity(EntityUid("Memory", "memory"), attrs, (org,))
    untagged = {name: value for name, value in attrs.items() if name != "project"}
    assert _entity(world, replace(row, project_id=None)).attrs == untagged


def test_a_row_of_memory_is_compiled_anew_when_it_ends() -> None:
    _, until = Compiler(World().state).compile(agent_caller(), a_memory(expires_at=NOW + HOUR), NOW)
    assert until == NOW + HOUR


def test_a_connection_is_current_as_the_state_holds_it() -> None:
    world = World()
    compiler = Compiler(world.state)
    before, after = a_remote_connection(), a_remote_connection(status="revoked")
    assert compiler.current(before) == Missing("Connection", "partner")
    world.state.put_remote_connection(after)
    assert compiler.current(before) is after
