"""The published client manages agents."""

from __future__ import annotations

import pytest
from oneclaw import OneclawError

from tests.real.world import World, data, error

POLICY = {
    "default_mode": "approve",
    "rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "25"}],
}


def test_an_agent_is_created_with_a_key_in_both_nestings(world: World) -> None:
    made = data(world.client(world.owner.api_key).agents.create("assistant", description="sample"))
    assert made["agent"] | {"api_key": made["api_key"]} == {name: made[name] for name in (*made["agent"], "api_key")}
    assert made["agent"]["name"] == "assistant"
    assert made["agent"]["action_approval_policy"] in (None, {})


def test_an_agent_is_read_alike_by_list_get_and_by_itself(world: World) -> None:
    owner, agent = world.client(world.owner.api_key), world.agent()
    shown = data(owner.agents.get(agent.id))
    assert data(world.client(agent.api_key).agents.me()) == shown
    assert shown in data(owner.agents.list())["agents"]
    required = {"id", "name", "auth_method", "is_active", "intents_api_enabled", "shroud_enabled", "created_at"}
    assert required <= shown.keys()
    assert shown["created_by"] == world.owner.id


def test_a_human_is_no_agent(world: World) -> None:
    assert error(world.client(world.owner.api_key).agents.me()) == (403, "auth_error")


def test_an_approval_policy_is_set_and_cleared(world: World) -> None:
    owner, agent = world.client(world.owner.api_key), world.agent()
    assert data(owner.agents.update(agent.id, action_approval_policy=POLICY))["action_approval_policy"] == POLICY
    assert data(world.client(agent.api_key).agents.me())["action_approval_policy"] == POLICY
    assert data(owner.agents.update(agent.id, action_approval_policy={}))["action_approval_policy"] in (None, {})


def test_a_malformed_policy_is_refused_and_changes_nothing(world: World) -> None:
    owner, agent = world.client(world.owner.api_key), world.agent(POLICY)
    worse = {"rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "fifty"}]}
    refused = owner.agents.update(agent.id, action_approval_policy=worse)
    assert error(refused) == (400, "validation_error")
    assert "`fifty`" in refused.error.message
    assert data(owner.agents.get(agent.id))["action_approval_policy"] == POLICY


def test_an_agent_does_not_change_its_own_policy(world: World) -> None:
    agent = world.agent(POLICY)
    assert error(world.client(agent.api_key).agents.update(agent.id, action_approval_policy={})) == (403, "auth_error")


def test_a_widening_waits_for_a_second_person_and_changes_nothing_until_then(world: World) -> None:
    owner, agent = world.client(world.owner.api_key), world.agent()
    data(owner.org.update_setting("guardrail_changes_require_approval", "true"))
    try:
        waiting = owner.agents.update(agent.id, action_approval_policy=POLICY)
        assert (waiting.meta.status, data(waiting)["status"]) == (202, "awaiting_approval")
        assert waiting.data["approval_id"] == waiting.data["pending_approval_id"]
        assert data(owner.agents.get(agent.id))["action_approval_policy"] in (None, {})
    finally:
        off = {"guardrail_changes_require_approval": "false"}
        confirmed = {"X-Auth-Confirm": world.owner.password}
        assert world.http(world.owner.api_key).patch("/v1/org/settings", json=off, headers=confirmed).status_code == 200


def test_a_rotated_key_ends_the_old_one_at_once(world: World) -> None:
    owner, agent = world.client(world.owner.api_key), world.agent()
    before = world.client(agent.api_key)
    data(before.agents.me())
    fresh = data(owner.agents.rotate_key(agent.id))["api_key"]
    assert error(before.agents.me()) == (401, "auth_error")
    assert data(world.client(fresh).agents.me())["id"] == agent.id


def test_a_child_is_created_and_listed_under_its_parent(world: World) -> None:
    owner, parent = world.client(world.owner.api_key), world.agent(POLICY)
    child = data(owner.agents.create_child(parent.id, "child", description="sample"))
    assert child["agent"]["action_approval_policy"] == POLICY
    assert [each["id"] for each in data(owner.agents.list_children(parent.id))["agents"]] == [child["agent"]["id"]]
    assert data(world.client(child["api_key"]).agents.me())["name"] == "child"


def test_a_deleted_agent_is_gone_and_so_are_its_children(world: World) -> None:
    owner, agent = world.client(world.owner.api_key), world.agent()
    child = data(owner.agents.create_child(agent.id, "child"))
    assert owner.agents.delete(agent.id).meta.status == 204
    assert error(owner.agents.get(agent.id)) == (404, "not_found")
    assert error(owner.agents.get(child["agent"]["id"])) == (404, "not_found")
    with pytest.raises(OneclawError):
        world.client(agent.api_key).agents.me()
