"""The last look: a row that was fetched is decided once more, with what is stored."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from gateway.errors import Forbidden, Stale
from gateway.model.condition import FALSE, TRUE
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.memory import MemoryScope
from gateway.model.records import Agent
from gateway.policy.sets import PolicySets
from tests.remote import a_memory, a_memory_grant, a_remote_connection
from tests.world import PERMIT_ALL, World, bundle_of, caller, session

CONNECTION = caller("partner", "Connection")


def a_world() -> World:
    world = World()
    world.state.put_remote_connection(a_remote_connection())
    world.state.put_memory_grant(a_memory_grant())
    return world


def the_agent(world: World) -> Agent:
    return world.state.agents["agent"]


def planned(world: World) -> Grant[MemoryScope]:
    return world.access.plan(session(CONNECTION), "memory.search", the_agent(world))


def test_a_row_that_the_decision_denies_is_dropped_counted_logged_and_recorded(caplog: pytest.LogCaptureFixture) -> None:
    world = a_world()
    grant = planned(world)
    kept, hidden = a_memory("kept"), a_memory("hidden", classification="pii")
    with caplog.at_level(logging.ERROR, "gateway.access"):
        confirmed = world.access.confirm(grant, [kept, hidden])
    assert [row for row, _ in confirmed] == [kept]
    assert world.access.divergences == 1
    *_, denied = grant.session.rows
    assert (denied.outcome, denied.resource_id, denied.action) == ("deny", "hidden", "memory.search")
    assert denied.policies == ("guardrails/memory/grant", "guardrails/memory/tier")
    [line] = caplog.messages
    assert line == f"decision {denied.id} denies memory hidden, which the query had kept"
    assert hidden.text not in str(denied)


def test_a_row_of_another_agent_or_organisation_is_dropped_whatever_brought_it() -> None:
    world = a_world()
    for stray in (a_memory("stray", "other"), a_memory("stray", "foreign", "away")):
        assert world.access.confirm(planned(world), [stray]) == []


def test_a_grant_that_is_revoked_between_the_query_and_the_last_look_makes_the_request_run_again() -> None:
    world = a_world()
    grant = planned(world)
    revoked = a_memory_grant(revoked_at=grant.now)
    world.state.put_memory_grant(revoked)
    with pytest.raises(Stale):
        world.access.confirm(grant, [a_memory()])
    assert world.access.divergences == 0


@pytest.mark.parametrize("kind", ["Bridge", "Platform", "Operator"])
def test_a_principal_that_owns_nothing_and_was_granted_nothing_has_no_rows_though_every_policy_permits(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PolicySets, "granted", lambda *_: False)
    world = World(bundle_of(PERMIT_ALL))
    who = caller("agent" if kind == "Bridge" else "app", kind)  # type: ignore[arg-type]  # one of the principal types
    try:
        grant = world.access.plan(session(who), "memory.search", the_agent(world))
    except Forbidden:
        return  # the schema gives an operator no such action
    assert (grant.target.policy, grant.target.floor) == (TRUE, FALSE)


def test_another_agent_has_no_rows_though_every_policy_permits() -> None:
    world = World(bundle_of(PERMIT_ALL))
    grant = world.access.plan(session(caller("other", "Agent")), "memory.search", the_agent(world))
    assert (grant.target.policy, grant.target.floor) == (TRUE, FALSE)


def test_the_last_look_is_at_the_principal_that_the_plan_was_for() -> None:
    world = a_world()
    grant = world.access.plan(session(caller("owner")), "memory.search", the_agent(world), principal=CONNECTION)
    assert [row.id for row, _ in world.access.confirm(grant, [a_memory(), a_memory("pii", classification="pii")])] == ["memory"]


def test_rows_beyond_one_slice_are_each_decided() -> None:
    world = a_world()
    rows = [a_memory(f"row-{n}", classification="pii" if n % 2 else "public") for n in range(450)]
    assert [row for row, _ in world.access.confirm(planned(world), rows)] == rows[::2]


def test_a_scope_names_whom_it_was_made_for() -> None:
    scope = planned(a_world()).target
    assert (scope.principal, scope.connection_id) == (CONNECTION, "partner")
    assert replace(scope, principal=caller("owner")).connection_id is None


def test_the_text_of_a_row_is_kept_nowhere_and_its_labels_not_when_it_was_denied() -> None:
    world = a_world()
    asked = session(CONNECTION)
    world.access.authorize(asked, "memory.read", a_memory("row", tags=("zebra",), text="quagga"))
    with pytest.raises(Forbidden):
        world.access.authorize(asked, "memory.remember", a_memory("new", tags=("okapi",), project_id="beta"))
    allowed, denied = asked.rows
    assert "zebra" in str(allowed.slice_bodies)
    assert denied.slice_bodies == {}
    assert "quagga" not in str(asked.rows)
    assert all(not isinstance(key[2], EntityUid) or key[2].type != "Memory" for key in world.access._slices)
