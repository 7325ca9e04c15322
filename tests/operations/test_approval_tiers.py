"""Risk tiers: derived from the payload, raised by a declaration, and what a human must show to decide."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.builders import Gateway, done
from tests.operations.asking import ask, befriend, decide, proof, second_factor, stored

KNOWN = {"recipient": "ada"}


@pytest.mark.parametrize(
    ("payload", "tier", "reasons"),
    [
        ({}, 1, []),
        (KNOWN, 1, []),
        ({**KNOWN, "amount_usd": "49.9999"}, 1, []),
        ({**KNOWN, "amount_usd": "50"}, 2, ["the amount is at or above 50 US dollars"]),
        ({**KNOWN, "amount_usd": 50}, 2, ["the amount is at or above 50 US dollars"]),
        ({**KNOWN, "amount_eur": "1"}, 2, ["the amount is not in US dollars"]),
        ({**KNOWN, "amount_usd": "1", "currency": "eur"}, 2, ["the amount is not in US dollars"]),
        ({"recipient": "bob"}, 2, ["the recipient is new to this agent"]),
        ({"recipient": " ADA "}, 1, []),
        ({"to": "bob", "amount_usd": "60"}, 2, ["the amount is at or above 50 US dollars", "the recipient is new to this agent"]),
    ],
)
def test_the_tier_comes_from_the_payload(gateway: Gateway, payload: dict[str, Any], tier: int, reasons: list[str]) -> None:
    agent = gateway.agent(by=gateway.member)
    befriend(agent, gateway.member, "ada")
    asked = ask(agent, payload=payload, summary="a harmless 1 dollar to ada")
    assert (asked["risk_tier"], asked["understood"]["tier_reasons"]) == (tier, reasons)


@pytest.mark.parametrize("action", ["agent.delete", "policy.write", "key.rotate", "role.grant", "peer.share", "credential.issue"])
def test_an_action_about_authority_is_tier_three(gateway: Gateway, action: str) -> None:
    assert ask(gateway.agent(), action=action)["risk_tier"] == 3


def test_an_organisation_adds_actions_to_tier_three(gateway: Gateway) -> None:
    done(gateway.owner.patch("/v1/org/settings", {"sensitive_actions": ["payout.", "refund.create"]}), 200)
    agent = gateway.agent()
    tiers = {
        action: ask(agent, action=action)["risk_tier"]
        for action in ("payout.send", "refund.create", "refund.list", "payouts.send")
    }
    assert tiers == {"payout.send": 3, "refund.create": 3, "refund.list": 1, "payouts.send": 1}


@pytest.mark.parametrize(
    ("declared", "tier", "below"),
    [({}, 2, False), ({"declared_risk_tier": 1}, 2, True), ({"risk_tier": 1}, 2, True), ({"declared_risk_tier": 2}, 2, False),
     ({"risk_tier": 3}, 3, False), ({"declared_risk_tier": 1, "risk_tier": 3}, 3, False)],
)  # fmt: skip
def test_a_declaration_only_raises(gateway: Gateway, declared: dict[str, int], tier: int, below: bool) -> None:
    asked = ask(gateway.agent(), payload={"amount_usd": "50"}, **declared)
    assert (asked["risk_tier"], asked["declared_below_floor"]) == (tier, below)
    assert asked["declared_risk_tier"] == max(declared.values(), default=None)


def test_a_rules_threshold_replaces_the_default_both_ways(gateway: Gateway) -> None:
    rules = [
        {"action_type": "refund.create", "mode": "approve", "require_for_amount_above_usd": "100"},
        {"action_type": "tip.give", "mode": "approve", "require_for_amount_above_usd": "2"},
    ]
    agent = gateway.agent(policy={"rules": rules})
    cases = (("refund.create", "99.99"), ("refund.create", "100"), ("tip.give", "1.99"), ("tip.give", "2"))
    assert [ask(agent, action=action, payload={"amount_usd": amount})["risk_tier"] for action, amount in cases] == [1, 2, 1, 2]


def test_a_recipient_is_known_to_the_agent_that_has_an_approval_and_to_no_other(gateway: Gateway) -> None:
    agent, other = gateway.agent(by=gateway.member), gateway.agent("other", by=gateway.member)
    rejected = ask(agent, payload=KNOWN)
    decide(gateway.member, rejected, "deny")
    cancelled = ask(agent, payload=KNOWN)
    done(agent.post(f"/v1/approvals/{cancelled['id']}/cancel"), 200)
    assert ask(agent, payload=KNOWN)["understood"]["recipient_kind"] == "new"
    befriend(agent, gateway.member, "ada")
    assert ask(agent, payload=KNOWN)["understood"]["recipient_kind"] == "known"
    assert ask(other, payload=KNOWN)["understood"]["recipient_kind"] == "new"
    assert ask(agent, payload={"recipient": "аda"})["understood"]["recipient_kind"] == "new"  # noqa: RUF001  # a Cyrillic a


def test_tier_one_is_decided_with_a_tap(gateway: Gateway) -> None:
    asked = ask(gateway.agent(by=gateway.member))
    assert done(gateway.member.post(f"/v1/approvals/{asked['id']}/decide", {"decision": "approve"}), 200)["status"] == "approved"


@pytest.mark.parametrize("header", ["X-Auth-Confirm", "X-MFA-Token"])
def test_tier_two_is_decided_with_the_password_and_not_without(gateway: Gateway, header: str) -> None:
    member = gateway.member
    asked = ask(gateway.agent(by=member), declared_risk_tier=2)
    path = f"/v1/approvals/{asked['id']}/decide"
    for headers in ({}, {header: "not the password"}, {header: "rat_unknown"}):
        refused = member.post(path, {"decision": "approve"}, headers)
        assert (refused.status_code, refused.json()["title"]) == (403, "step-up required")
    assert done(member.get(f"/v1/approvals/{asked['id']}"), 200)["status"] == "pending"
    assert done(member.post(path, {"decision": "approve"}, {header: member.password}), 200)["status"] == "approved"


def test_a_proof_is_bound_to_its_purpose_and_good_once(gateway: Gateway) -> None:
    member, agent = gateway.member, gateway.agent(by=gateway.member)
    asked, other = (ask(agent, declared_risk_tier=2) for _ in range(2))

    def token(purpose: str) -> dict[str, str]:
        body = {"method": "password", "purpose": purpose, "password": member.password}
        return {"X-Auth-Confirm": done(member.post("/v1/auth/reauth/complete", body), 200)["token"]}

    assert member.post(f"/v1/approvals/{asked['id']}/approve", {}, token("peer.export")).status_code == 403
    once = token("approval.decide")
    assert member.post(f"/v1/approvals/{asked['id']}/approve", {}, once).status_code == 200
    assert member.post(f"/v1/approvals/{other['id']}/approve", {}, once).status_code == 403


def test_a_proof_is_not_spent_on_what_cannot_be_decided_any_more(gateway: Gateway) -> None:
    member, agent = gateway.member, gateway.agent(by=gateway.member)
    gone, asked = (ask(agent, declared_risk_tier=2) for _ in range(2))
    done(agent.post(f"/v1/approvals/{gone['id']}/cancel"), 200)
    body = {"method": "password", "purpose": "approval.decide", "password": member.password}
    header = {"X-Auth-Confirm": done(member.post("/v1/auth/reauth/complete", body), 200)["token"]}
    assert member.post(f"/v1/approvals/{gone['id']}/approve", {}, header).status_code == 409
    assert member.post(f"/v1/approvals/{asked['id']}/approve", {}, header).status_code == 200


def test_tier_three_needs_the_second_factor_and_says_how_to_get_one(gateway: Gateway) -> None:
    member = gateway.member
    asked = ask(gateway.agent(by=member), declared_risk_tier=3)
    path = f"/v1/approvals/{asked['id']}/decide"
    refused = member.post(path, {"decision": "approve"}, {"X-Auth-Confirm": member.password})
    assert (refused.status_code, refused.json()["title"]) == (403, "step-up required")
    assert "/v1/auth/totp" in refused.json()["next"]
    secret = second_factor(gateway, member)
    assert member.post(path, {"decision": "approve"}, {"X-Auth-Confirm": member.password}).status_code == 403
    decided = done(member.post(path, {"decision": "approve"}, proof(gateway, member, secret)), 200)
    assert (decided["status"], decided["decided_by"]) == ("approved", member.id)


def test_an_automatic_approval_is_off_until_the_organisation_turns_it_on(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member, policy={"rules": [{"action_type": "ticket.close", "mode": "allow"}]})
    assert ask(agent, action="ticket.close")["status"] == "pending"
    done(gateway.owner.patch("/v1/org/settings", {"auto_approve": "true"}), 200)
    asked = ask(agent, action="ticket.close")
    assert (asked["status"], asked["decided_by"], asked["decided_at"]) == ("approved", None, "2026-03-04T10:00:00Z")
    assert asked["decision_reason"] == "approved without a human: a written rule of this agent allows it"
    assert gateway.member.post(f"/v1/approvals/{asked['id']}/decide", {"decision": "reject"}).status_code == 409


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ({"mode": "approve"}, {}),
        ({"mode": "allow", "require_for_amount_above_usd": "10"}, {"payload": {"amount_usd": "10"}}),
        ({"mode": "allow", "require_for_amount_above_usd": "10"}, {"payload": {}}),
        ({"mode": "allow"}, {"payload": {"recipient": "new"}}),
        ({"mode": "allow"}, {"payload": {"amount_usd": "50"}}),
        ({"mode": "allow"}, {"declared_risk_tier": 2}),
        ({"mode": "allow", "action_type": "agent.rename"}, {"action": "agent.rename"}),
        ({"mode": "allow", "action_type": "other.action"}, {}),
    ],
)
def test_what_a_written_rule_does_not_allow_is_never_automatic(
    gateway: Gateway, rule: dict[str, str], changes: dict[str, Any]
) -> None:
    done(gateway.owner.patch("/v1/org/settings", {"auto_approve": "true"}), 200)
    agent = gateway.agent(policy={"default_mode": "allow", "rules": [{"action_type": "refund.create", **rule}]})
    assert ask(agent, **changes)["status"] == "pending"


@pytest.mark.parametrize(("reading", "learning"), [(True, False), (False, True)])
def test_nothing_is_automatic_while_the_person_has_paused(gateway: Gateway, reading: bool, learning: bool) -> None:
    done(gateway.owner.patch("/v1/org/settings", {"auto_approve": "true"}), 200)
    agent = gateway.agent(by=gateway.member, policy={"rules": [{"action_type": "ticket.close", "mode": "allow"}]})
    peer = gateway.peer(observers=[agent])
    pause = {"reading": reading, "learning": learning, "until": "2026-03-04T11:00:00Z"}
    done(gateway.member.put(f"/v1/peers/{peer['id']}/pause", pause), 200)
    assert ask(agent, action="ticket.close")["status"] == "pending"
    gateway.clock.advance(timedelta(hours=1))
    assert ask(agent, action="ticket.close")["status"] == "approved"


def test_an_automatic_approval_is_no_evidence_about_anybody(gateway: Gateway) -> None:
    done(gateway.owner.patch("/v1/org/settings", {"auto_approve": "true"}), 200)
    agent = gateway.agent(by=gateway.member, policy={"rules": [{"action_type": "ticket.close", "mode": "allow"}]})
    gateway.peer(observers=[agent])
    for _ in range(4):
        ask(agent, action="ticket.close")
    assert stored(gateway, "SELECT id FROM events") == []
    assert stored(gateway, "SELECT fact_key FROM facts") == []
