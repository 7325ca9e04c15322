"""Agents: registered, shown, changed, given keys, and ended with everything that hangs on them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway import limits
from tests.builders import Client, Gateway, done
from tests.operations.asking import ABSENT, actions, ask, restart, stored

RULES = {
    "default_mode": "deny",
    "rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "20"}],
}


def register(human: Client, **body: object) -> dict[str, Any]:
    made: dict[str, Any] = done(human.post("/v1/agents", {"name": "helper", **body}), 201)
    return made


def test_a_registration_answers_in_both_nestings_and_shows_the_key_once(gateway: Gateway) -> None:
    made = register(gateway.member, action_approval_policy=RULES)
    assert made["api_key"].startswith("ocv_")
    agent = {
        "id": made["id"],
        "org_id": gateway.services.state.humans[gateway.member.id].org_id,
        "name": "helper",
        "description": "",
        "auth_method": "api_key",
        "is_active": True,
        "intents_api_enabled": False,
        "shroud_enabled": False,
        "scopes": [],
        "vault_ids": [],
        "memory_namespace_allowlist": [],
        "token_ttl_seconds": 3600,
        "api_key_expires_at": None,
        "parent_id": None,
        "connection_id": None,
        "action_approval_policy": RULES,
        "created_by": gateway.member.id,
        "created_at": "2026-03-04T10:00:00Z",
    }
    assert made == {"agent": agent, "api_key": made["api_key"], **agent}
    assert done(gateway.member.get(f"/v1/agents/{made['id']}"), 200) == agent
    assert made["api_key"] not in str(stored(gateway, "SELECT * FROM credentials"))


def test_the_fields_that_the_official_client_always_sends_are_kept_and_others_ignored(gateway: Gateway) -> None:
    sent = {
        "description": "",
        "auth_method": "api_key",
        "intents_api_enabled": True,
        "shroud_enabled": True,
        "token_ttl_seconds": 120,
        "scopes": ["read:*"],
        "vault_ids": ["v"],
        "api_key_expires_at": "2026-03-05T00:00:00+01:00",
    }
    ignored = {"shroud_config": {"a": 1}, "tx_to_allowlist": ["0x0"], "tx_daily_limit_eth": "1", "federation_enabled": True}
    agent = register(gateway.owner, **sent, **ignored)["agent"]
    assert {name: agent[name] for name in sent} == {**sent, "api_key_expires_at": "2026-03-04T23:00:00Z"}
    assert not ignored.keys() & agent.keys()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": 4}, "name"),
        ({"description": "x" * 501}, "description"),
        ({"token_ttl_seconds": 119}, "token_ttl_seconds"),
        ({"token_ttl_seconds": 86_401}, "token_ttl_seconds"),
        ({"token_ttl_seconds": "600"}, "token_ttl_seconds"),
        ({"scopes": "read"}, "scopes"),
        ({"scopes": [4]}, "scopes[0]"),
        ({"intents_api_enabled": "true"}, "intents_api_enabled"),
        ({"api_key_expires_at": "tomorrow"}, "api_key_expires_at"),
        ({"api_key_expires_at": "2026-03-04T10:00:00Z"}, "api_key_expires_at"),
        ({"action_approval_policy": []}, "action_approval_policy"),
        (
            {"action_approval_policy": {"rules": [{"action_type": "*", "mode": "deny"}]}},
            "action_approval_policy.rules[0].action_type",
        ),
        ({"action_approval_policy": {"ruels": []}}, "action_approval_policy.ruels"),
    ],
)
def test_a_malformed_registration_is_400_naming_the_field(gateway: Gateway, body: dict[str, object], field: str) -> None:
    refused = gateway.owner.post("/v1/agents", {"name": "helper", **body})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])
    assert done(gateway.owner.get("/v1/agents"), 200) == {"agents": []}


def test_members_register_and_manage_their_own_and_see_no_others(gateway: Gateway) -> None:
    own = gateway.agent("own", by=gateway.member)
    gateway.clock.advance(timedelta(seconds=1))
    other = gateway.agent("other")
    listed = {
        human.email: [a["id"] for a in done(human.get("/v1/agents"), 200)["agents"]] for human in (gateway.member, gateway.admin)
    }
    assert listed == {gateway.member.email: [own.id], gateway.admin.email: [own.id, other.id]}
    assert done(gateway.member.get(f"/v1/agents/{own.id}"), 200)["id"] == own.id
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"name": "mine"}),
        ("DELETE", "", None),
        ("POST", "/rotate-key", {}),
        ("POST", "/children", {"name": "child"}),
        ("GET", "/children", None),
    ):
        assert gateway.member.request(method, f"/v1/agents/{other.id}{path}", body).status_code == 403
    for human in (gateway.security, gateway.auditor):
        assert human.get("/v1/agents").status_code == 403
        assert human.post("/v1/agents", {"name": "x"}).status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("PATCH", "", {"name": "mine"}),
        ("PATCH", "", {"action_approval_policy": {}}),
        ("DELETE", "", None),
        ("POST", "/rotate-key", {}),
        ("POST", "/children", {"name": "child"}),
        ("GET", "/children", None),
    ],
)
def test_another_organisations_agent_is_byte_for_byte_an_unknown_one(
    gateway: Gateway, method: str, path: str, body: dict[str, object] | None
) -> None:
    agent = gateway.agent()
    foreign = gateway.agent(by=gateway.other_owner)
    for caller in (gateway.other_owner, foreign):
        answers = []
        for agent_id in (agent.id, ABSENT, "no-id"):
            answer = caller.request(method, f"/v1/agents/{agent_id}{path}", body)
            headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
            answers.append((answer.status_code, answer.content, headers))
        assert answers[0][0] == 404
        assert answers[0] == answers[1] == answers[2]
    assert done(gateway.owner.get(f"/v1/agents/{agent.id}"), 200)["name"] == "agent"


def test_an_agent_knows_itself_and_nothing_else(gateway: Gateway) -> None:
    agent, other = gateway.agent("a"), gateway.agent("b")
    own = done(agent.get("/v1/agents/me"), 200)
    assert own == done(agent.get(f"/v1/agents/{agent.id}"), 200) == done(gateway.owner.get(f"/v1/agents/{agent.id}"), 200)
    assert done(agent.get(f"/v1/agents/{agent.id}/children"), 200) == {"agents": []}
    assert agent.get(f"/v1/agents/{other.id}").status_code == 403
    assert agent.get("/v1/agents").status_code == 403
    for human in (gateway.owner, gateway.member):
        assert human.get("/v1/agents/me").status_code == 403


def test_an_agent_changes_nothing_about_agents(gateway: Gateway) -> None:
    agent = gateway.agent()
    path = f"/v1/agents/{agent.id}"
    for method, route, body in (
        ("PATCH", path, {"name": "me"}),
        ("PATCH", path, {"action_approval_policy": RULES}),
        ("DELETE", path, None),
        ("POST", f"{path}/rotate-key", {}),
        ("POST", f"{path}/children", {"name": "child"}),
        ("POST", "/v1/agents", {"name": "another"}),
    ):
        refused = agent.request(method, route, body)
        assert (refused.status_code, refused.json()["detail"]) == (403, "Only a human does this.")


def test_a_change_sets_what_it_names_and_leaves_the_rest(gateway: Gateway) -> None:
    made = register(gateway.owner, description="first", scopes=["a"], action_approval_policy=RULES)["agent"]
    path = f"/v1/agents/{made['id']}"
    change = {"name": "renamed", "shroud_enabled": True, "scopes": None, "token_ttl_seconds": 600, "surplus": 1}
    changed = done(gateway.owner.patch(path, change), 200)
    assert changed == {**made, "name": "renamed", "shroud_enabled": True, "token_ttl_seconds": 600}
    assert done(gateway.owner.get(path), 200) == changed
    assert done(gateway.owner.patch(path, {"description": ""}), 200) == {**changed, "description": ""}


@pytest.mark.parametrize("cleared", [{}, None])
def test_an_empty_policy_clears_it(gateway: Gateway, cleared: object) -> None:
    agent = gateway.agent(policy=RULES)
    changed = done(gateway.owner.patch(f"/v1/agents/{agent.id}", {"action_approval_policy": cleared}), 200)
    assert changed["action_approval_policy"] is None
    assert stored(gateway, "SELECT approval_policy FROM agents WHERE id = $1", agent.id) == [(None,)]


def test_a_policy_of_only_a_default_is_shown_as_it_was_written(gateway: Gateway) -> None:
    agent = gateway.agent(policy={"rules": []})
    assert done(agent.get("/v1/agents/me"), 200)["action_approval_policy"] == {"rules": []}


def test_a_new_key_ends_the_old_one_and_every_token(gateway: Gateway) -> None:
    agent = gateway.agent()
    token = done(gateway.http.post("/v1/auth/agent-token", json={"api_key": agent.key}), 200)["access_token"]
    body = {"api_key_expires_at": "2026-03-04T12:00:00Z"}
    answer = done(gateway.owner.post(f"/v1/agents/{agent.id}/rotate-key", body), 200)
    for old in (agent.key, token):
        assert Client(gateway.http, agent.id, old).get("/v1/agents/me").status_code == 401
    fresh = Client(gateway.http, agent.id, answer["api_key"])
    assert done(fresh.get("/v1/agents/me"), 200)["api_key_expires_at"] == "2026-03-04T12:00:00Z"
    gateway.clock.advance(timedelta(hours=2))
    assert fresh.get("/v1/agents/me").status_code == 401
    done(gateway.owner.request("POST", f"/v1/agents/{agent.id}/rotate-key"), 200)


def test_the_end_of_a_key_can_be_moved_while_it_lives(gateway: Gateway) -> None:
    agent, other = gateway.agent(), gateway.agent("other")
    token = done(gateway.http.post("/v1/auth/agent-token", json={"api_key": agent.key}), 200)["access_token"]
    path, held = f"/v1/agents/{agent.id}", [agent, Client(gateway.http, agent.id, token)]
    for end in ("2026-03-04T12:00:00Z", "2026-03-04T10:30:00Z"):
        assert done(gateway.owner.patch(path, {"api_key_expires_at": end}), 200)["api_key_expires_at"] == end
    assert [one.get("/v1/agents/me").status_code for one in held] == [200, 200]
    gateway.clock.advance(timedelta(minutes=30))
    assert [one.get("/v1/agents/me").status_code for one in held] == [401, 401]
    assert done(other.get("/v1/agents/me"), 200)["api_key_expires_at"] is None
    restart(gateway)
    assert replace(agent, http=gateway.http).get("/v1/agents/me").status_code == 401


@pytest.mark.parametrize("end", ["tomorrow", "2026-03-04T10:00:00Z", 7])
def test_the_end_of_a_key_is_a_time_in_the_future(gateway: Gateway, end: object) -> None:
    refused = gateway.owner.patch(f"/v1/agents/{gateway.agent().id}", {"api_key_expires_at": end})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["api_key_expires_at"])


def test_a_deactivated_agent_is_locked_out_until_it_gets_a_new_key(gateway: Gateway) -> None:
    agent = gateway.agent()
    path = f"/v1/agents/{agent.id}"
    token = done(gateway.http.post("/v1/auth/agent-token", json={"api_key": agent.key}), 200)["access_token"]
    assert done(gateway.owner.patch(path, {"is_active": False}), 200)["is_active"] is False
    held = [Client(gateway.http, agent.id, secret) for secret in (agent.key, token)]
    assert [one.get("/v1/agents/me").status_code for one in held] == [401, 401]
    done(gateway.owner.patch(path, {"is_active": True}), 200)
    assert [one.get("/v1/agents/me").status_code for one in held] == [401, 401]
    fresh = Client(gateway.http, agent.id, done(gateway.owner.post(f"{path}/rotate-key"), 200)["api_key"])
    assert done(fresh.get("/v1/agents/me"), 200)["is_active"] is True


def test_a_child_takes_after_its_parent(gateway: Gateway) -> None:
    parent = register(gateway.member, scopes=["a", "b"], vault_ids=["v"], token_ttl_seconds=600, action_approval_policy=RULES)
    made = done(gateway.member.post(f"/v1/agents/{parent['id']}/children", {"name": "child"}), 201)
    child = made["agent"]
    assert made == {"agent": child, "api_key": made["api_key"], **child}
    differing = {"id", "name", "parent_id", "memory_namespace_allowlist"}
    assert {**parent["agent"], **{name: child[name] for name in differing}} == child
    assert child["parent_id"] == parent["id"]
    assert child["memory_namespace_allowlist"] == [f"child:{child['id']}"]
    assert done(gateway.member.get(f"/v1/agents/{parent['id']}/children"), 200) == {"agents": [child]}
    as_parent = Client(gateway.http, parent["id"], parent["api_key"])
    assert done(as_parent.get(f"/v1/agents/{parent['id']}/children"), 200) == {"agents": [child]}
    assert done(Client(gateway.http, child["id"], made["api_key"]).get("/v1/agents/me"), 200) == child


def test_an_admins_child_of_a_members_agent_answers_to_the_member(gateway: Gateway) -> None:
    parent = gateway.agent(by=gateway.member)
    made = done(gateway.admin.post(f"/v1/agents/{parent.id}/children", {"name": "child"}), 201)
    assert ask(Client(gateway.http, made["id"], made["api_key"]))["user_id"] == gateway.member.id


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x" * 101}, "name"),
        ({"scopes": ["a", "c"]}, "scopes"),
        ({"vault_ids": ["w"]}, "vault_ids"),
        ({"expires_at": "2026-03-04T09:00:00Z"}, "expires_at"),
    ],
)  # fmt: skip
def test_a_child_has_nothing_that_its_parent_has_not(gateway: Gateway, body: dict[str, object], field: str) -> None:
    parent = register(gateway.owner, scopes=["a"], action_approval_policy=RULES)
    refused = gateway.owner.post(f"/v1/agents/{parent['id']}/children", {"name": "child", **body})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])
    assert done(gateway.owner.get(f"/v1/agents/{parent['id']}/children"), 200) == {"agents": []}


def test_a_child_may_have_a_policy_of_its_own(gateway: Gateway) -> None:
    parent = gateway.agent()
    own = done(gateway.owner.post(f"/v1/agents/{parent.id}/children", {"name": "c", "action_approval_policy": RULES}), 201)
    assert own["action_approval_policy"] == RULES
    assert done(parent.get("/v1/agents/me"), 200)["action_approval_policy"] is None


def test_a_child_has_no_children_and_a_parent_not_more_than_fifty(gateway: Gateway) -> None:
    parent = gateway.agent()
    path = f"/v1/agents/{parent.id}/children"
    made = [done(gateway.owner.post(path, {"name": f"c{n}"}), 201)["id"] for n in range(limits.CHILDREN_PER_AGENT)]
    refused = gateway.owner.post(path, {"name": "one more"})
    assert (refused.status_code, refused.json()["detail"]) == (409, "this agent has 50 children, which is the most it may have")
    assert gateway.owner.post(f"/v1/agents/{made[0]}/children", {"name": "grandchild"}).status_code == 400
    done(gateway.owner.delete(f"/v1/agents/{made[0]}"), 204)
    assert gateway.owner.post(path, {"name": "one more"}).status_code == 201


def test_a_deleted_agent_takes_everything_with_it(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    child = done(gateway.member.post(f"/v1/agents/{agent.id}/children", {"name": "child"}), 201)
    young = Client(gateway.http, child["id"], child["api_key"])
    other = gateway.agent("other")
    peer = gateway.peer(observers=[agent, young, other])
    token = done(gateway.http.post("/v1/auth/agent-token", json={"api_key": agent.key}), 200)["access_token"]
    asked, by_child = ask(agent), ask(young)
    assert gateway.member.delete(f"/v1/agents/{agent.id}").content == b""
    for secret in (agent.key, token, young.key):
        assert Client(gateway.http, "", secret).get("/v1/agents/me").status_code == 401
    unknown = gateway.owner.get(f"/v1/agents/{ABSENT}")
    for gone in (agent.id, young.id):
        answer = gateway.owner.get(f"/v1/agents/{gone}")
        assert (answer.status_code, answer.content) == (404, unknown.content)
    assert gateway.member.delete(f"/v1/agents/{agent.id}").status_code == 404
    assert [one["id"] for one in done(gateway.owner.get("/v1/agents"), 200)["agents"]] == [other.id]
    observers = done(gateway.owner.get(f"/v1/peers/{peer['id']}/observers"), 200)["observers"]
    assert [entry["agent_id"] for entry in observers] == [other.id]
    for one in (asked, by_child):
        kept = done(gateway.owner.get(f"/v1/approvals/{one['id']}"), 200)
        assert kept == {**one, "status": "cancelled", "decision_reason": "the agent was deleted"}
    assert stored(gateway, "SELECT agent_id FROM observers") == [(other.id,)]
    assert stored(gateway, "SELECT id FROM credentials WHERE principal_id IN ($1, $2)", agent.id, young.id) == []
    ended = [action for action in actions(gateway) if action in ("agent.deleted", "approval.cancelled")]
    assert sorted(ended) == ["agent.deleted", "agent.deleted", "approval.cancelled", "approval.cancelled"]


def test_a_deleted_child_leaves_its_parent(gateway: Gateway) -> None:
    agent = gateway.agent()
    child = done(gateway.owner.post(f"/v1/agents/{agent.id}/children", {"name": "child"}), 201)
    done(gateway.owner.delete(f"/v1/agents/{child['id']}"), 204)
    assert done(agent.get(f"/v1/agents/{agent.id}/children"), 200) == {"agents": []}


def test_every_change_is_in_the_audit(gateway: Gateway) -> None:
    agent = gateway.agent()
    path = f"/v1/agents/{agent.id}"
    done(gateway.owner.post(f"{path}/children", {"name": "child"}), 201)
    done(gateway.owner.patch(path, {"name": "new name"}), 200)
    done(gateway.owner.post(f"{path}/rotate-key"), 200)
    done(gateway.owner.delete(path), 204)
    about = [action for action in actions(gateway) if action.startswith("agent.")]
    assert about == [
        "agent.created",
        "agent.child_created",
        "agent.updated",
        "agent.key_rotated",
        "agent.deleted",
        "agent.deleted",
    ]
    assert "new name" not in str(stored(gateway, "SELECT details FROM log"))


def test_what_was_changed_is_there_after_a_restart(gateway: Gateway) -> None:
    agent = gateway.agent(policy=RULES)
    changed = done(gateway.owner.patch(f"/v1/agents/{agent.id}", {"name": "n", "scopes": ["a"], "token_ttl_seconds": 130}), 200)
    gone = gateway.agent("gone")
    done(gateway.owner.delete(f"/v1/agents/{gone.id}"), 204)
    restart(gateway)
    assert done(gateway.owner.get(f"/v1/agents/{agent.id}"), 200) == changed
    assert done(gateway.owner.get("/v1/agents"), 200) == {"agents": [changed]}
    assert Client(gateway.http, gone.id, gone.key).get("/v1/agents/me").status_code == 401
