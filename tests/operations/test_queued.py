"""Requests that wait behind a change of what they were decided on."""

from __future__ import annotations

import pytest

from tests.builders import Gateway, done
from tests.operations.asking import ORDER, ask, stored
from tests.operations.queueing import queue_blocked


@pytest.mark.parametrize(
    ("sender", "method", "path", "change"),
    [
        ("member", "put", "/v1/peers/{peer}/pause", {"reading": False, "learning": True}),
        ("owner", "patch", "/v1/org/settings", {"auto_approve": "false"}),
        ("owner", "patch", "/v1/org/settings", {"sensitive_actions": ["ticket.close"]}),
        ("owner", "patch", "/v1/agents/{agent}", {"action_approval_policy": {}}),
    ],
)
def test_a_request_queued_behind_what_brings_the_human_back_is_not_approved_without_them(
    gateway: Gateway, sender: str, method: str, path: str, change: dict[str, object]
) -> None:
    done(gateway.owner.patch("/v1/org/settings", {"auto_approve": "true"}), 200)
    agent = gateway.agent(by=gateway.member, policy={"rules": [{"action_type": "ticket.close", "mode": "allow"}]})
    peer = gateway.peer(observers=[agent])
    wanted = {**ORDER, "action": "ticket.close"}
    with queue_blocked(gateway) as queued:
        send = getattr(getattr(gateway, sender), method)
        changed = queued(send, path.format(peer=peer["id"], agent=agent.id), change)
        answer = queued(agent.post, "/v1/approvals/request", wanted)
    assert changed.result().status_code == 200
    assert done(answer.result(), 202)["status"] == "pending"
    assert stored(gateway, "SELECT status FROM approvals") == [("pending",)]


def test_a_request_queued_behind_the_approval_of_its_recipient_is_read_with_it(gateway: Gateway) -> None:
    agent = gateway.agent()
    first = ask(agent, payload={"recipient": "a@b.co"})
    with queue_blocked(gateway) as queued:
        headers = {"X-Auth-Confirm": gateway.owner.password}
        decided = queued(gateway.owner.post, f"/v1/approvals/{first['id']}/approve", {}, headers)
        answer = queued(agent.post, "/v1/approvals/request", {**ORDER, "payload": {"recipient": "a@b.co"}})
    assert decided.result().status_code == 200
    second = done(answer.result(), 202)
    assert (first["understood"]["recipient_kind"], second["understood"]["recipient_kind"]) == ("new", "known")


def test_a_child_queued_behind_a_change_of_its_parent_takes_after_the_parent_as_it_is_then(gateway: Gateway) -> None:
    parent = gateway.agent(policy={"rules": [{"action_type": "ticket.close", "mode": "allow"}]})
    path = f"/v1/agents/{parent.id}"
    done(gateway.owner.patch(path, {"scopes": ["a", "b"]}), 200)
    narrowed: dict[str, object] = {"action_approval_policy": {"default_mode": "deny"}, "scopes": ["a"], "token_ttl_seconds": 300}
    with queue_blocked(gateway) as queued:
        changed = queued(gateway.owner.patch, path, narrowed)
        taken = queued(gateway.owner.post, f"{path}/children", {"name": "takes after"})
        own = queued(gateway.owner.post, f"{path}/children", {"name": "more", "scopes": ["b"]})
    assert (changed.result().status_code, own.result().status_code) == (200, 400)
    child = done(taken.result(), 201)["agent"]
    assert {name: child[name] for name in narrowed} == narrowed


def test_a_child_wider_than_its_parent_has_become_is_refused(gateway: Gateway) -> None:
    wide = {"rules": [{"action_type": "ticket.close", "mode": "allow"}]}
    parent = gateway.agent(policy=wide)
    done(gateway.owner.patch("/v1/org/settings", {"guardrail_changes_require_approval": "true"}), 200)
    path = f"/v1/agents/{parent.id}"
    with queue_blocked(gateway) as queued:
        changed = queued(gateway.owner.patch, path, {"action_approval_policy": {"default_mode": "deny"}})
        child = queued(gateway.owner.post, f"{path}/children", {"name": "wide", "action_approval_policy": wide})
    assert (changed.result().status_code, child.result().status_code) == (200, 409)
