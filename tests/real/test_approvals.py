"""The published client asks for approvals and decides them."""

from __future__ import annotations

import pytest

from tests.real.world import World, data, done, error

ORDER = {"action": "ticket.close", "target_type": "ticket", "target_id": "7", "summary": "close the ticket"}


def test_an_agent_asks_and_its_human_finds_it_in_the_queue(world: World) -> None:
    agent, owner = world.client(world.agent().api_key), world.client(world.owner.api_key)
    asked = agent.approvals.request(**ORDER, reason="it is solved")
    assert asked.meta.status == 202
    shown = data(asked)
    assert shown | {"status": "pending", "risk_tier": 1, "user_id": world.owner.id, "reason": "it is solved"} | ORDER == shown
    assert data(owner.approvals.get(shown["id"])) == shown
    assert shown in data(owner.approvals.list(status="pending"))["approvals"]
    assert data(agent.approvals.list()) == {"approvals": [shown], "total": 1}


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("approve", "approved"),
        ("approved", "approved"),
        ("reject", "rejected"),
        ("rejected", "rejected"),
        ("deny", "rejected"),
        ("denied", "rejected"),
    ],
)
def test_each_word_for_a_decision_is_understood(world: World, word: str, status: str) -> None:
    agent, owner = world.client(world.agent().api_key), world.client(world.owner.api_key)
    asked = data(agent.approvals.request(**ORDER))
    decided = data(owner.approvals.decide(asked["id"], word))
    assert (decided["status"], decided["decided_by"]) == (status, world.owner.id)
    assert data(agent.approvals.get(asked["id"]))["status"] == status


def test_an_approval_is_decided_once(world: World) -> None:
    agent, owner = world.client(world.agent().api_key), world.client(world.owner.api_key)
    asked = data(agent.approvals.request(**ORDER))
    data(owner.approvals.decide(asked["id"], "reject"))
    assert error(owner.approvals.decide(asked["id"], "approve")) == (409, "unknown")
    assert data(owner.approvals.get(asked["id"]))["status"] == "rejected"


@pytest.mark.parametrize("tier", [2, 3])
def test_this_client_decides_the_first_tier_only(world: World, tier: int) -> None:
    agent, owner = world.client(world.agent().api_key), world.client(world.owner.api_key)
    asked = data(agent.approvals.request(**ORDER, risk_tier=tier))
    assert (asked["risk_tier"], asked["declared_risk_tier"]) == (tier, tier)
    refused = owner.approvals.decide(asked["id"], "approve")
    assert error(refused) == (403, "auth_error")
    assert not any(words in refused.error.message for words in ("no scopes", "scopes do not cover", "token has been revoked"))
    assert data(owner.approvals.get(asked["id"]))["status"] == "pending"


def test_the_second_tier_is_decided_with_the_password(world: World) -> None:
    agent, owner = world.agent(), world.http(world.owner.api_key)
    asked = data(world.client(agent.api_key).approvals.request(**ORDER, risk_tier=2))
    decide = f"/v1/approvals/{asked['id']}/decide"
    proof = {"X-Auth-Confirm": world.owner.password}
    assert done(owner.post(decide, json={"decision": "approve"}, headers=proof), 200)["status"] == "approved"


def test_an_agent_withdraws_what_it_asked(world: World) -> None:
    agent = world.client(world.agent().api_key)
    asked = data(agent.approvals.request(**ORDER))
    assert data(agent.approvals.cancel(asked["id"], "not needed"))["status"] == "cancelled"
    assert data(agent.approvals.list(status="cancelled"))["total"] == 1


def test_withdrawing_what_is_decided_answers_the_decision(world: World) -> None:
    agent, owner = world.client(world.agent().api_key), world.client(world.owner.api_key)
    asked = data(agent.approvals.request(**ORDER))
    data(owner.approvals.decide(asked["id"], "approve"))
    assert data(agent.approvals.cancel(asked["id"]))["status"] == "approved"


def test_another_agent_finds_nothing(world: World) -> None:
    agent, other = world.client(world.agent().api_key), world.client(world.agent().api_key)
    asked = data(agent.approvals.request(**ORDER))
    assert error(other.approvals.get(asked["id"])) == (404, "not_found")
    assert data(other.approvals.list()) == {"approvals": [], "total": 0}


def test_a_human_does_not_ask(world: World) -> None:
    assert error(world.client(world.owner.api_key).approvals.request(**ORDER)) == (403, "auth_error")


@pytest.mark.parametrize("action", ["policy_change", "card_order", "agent_transaction", "agent_execution", "agent_sign_intent"])
def test_an_action_of_the_platform_is_not_asked_for(world: World, action: str) -> None:
    asked = {**ORDER, "action": action}
    assert error(world.client(world.agent().api_key).approvals.request(**asked)) == (403, "auth_error")


def test_an_action_without_a_namespace_is_a_validation_error(world: World) -> None:
    asked = {**ORDER, "action": "transaction"}
    assert error(world.client(world.agent().api_key).approvals.request(**asked)) == (400, "validation_error")
