"""Simulation: what past requests would have come to under other rules, always as Cedar answers it in earnest."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gateway.model.rules import parse_rules
from tests.builders import Client, Gateway, done
from tests.operations.asking import ABSENT, ask, befriend, decide, stored
from tests.operations.peer_acts import predict

FRIEND = "a@canary.example"
ALLOWED = {"rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "50"}]}


def simulate(who: Client, agent: Client, policy: object = None, **body: object) -> Any:
    given = body if policy is None else {"action_approval_policy": policy, **body}
    return done(who.post(f"/v1/agents/{agent.id}/simulate-policy", given), 200)


def past(gateway: Gateway, agent: Client) -> dict[str, Any]:
    """Four requests to a known recipient, two of them rejected, and the one that made the recipient known."""
    befriend(agent, gateway.owner, FRIEND)
    gateway.clock.advance(timedelta(minutes=1))
    asked = {
        name: ask(agent, action=action, payload={"recipient": FRIEND, "amount_usd": amount})
        for name, action, amount in (
            ("small", "refund.create", "12"),
            ("large", "refund.create", "80"),
            ("other", "mail.send", "1"),
            ("sensitive", "key.rotate", "1"),
        )
    }
    decide(gateway.owner, asked["small"], "reject")
    decide(gateway.owner, asked["large"], "reject")
    return asked


def test_past_requests_are_counted_by_what_would_have_become_of_them(gateway: Gateway) -> None:
    agent = gateway.agent()
    asked = past(gateway, agent)
    assert simulate(gateway.owner, agent, ALLOWED) == {
        "agent_id": agent.id,
        "simulated": 5,
        "current": {"automatic": 0, "asked": 4, "sensitive": 1, "refused": 0},
        "proposed": {"automatic": 1, "asked": 3, "sensitive": 1, "refused": 0},
        "reasons": {
            "action_is_sensitive": 1,
            "no_matching_rule": 1,
            "above_configured_threshold": 2,
        },
        "newly_automatic": 1,
        "rejected_and_automatic": 1,
        "rejections": [
            {
                "approval_id": asked["small"]["id"],
                "action": "refund.create",
                "amount_usd": "12",
                "decided_at": "2026-03-04T10:01:00Z",
            }
        ],
        "auto_approve": False,
    }


def test_a_rule_that_denies_shows_what_could_not_have_been_asked(gateway: Gateway) -> None:
    agent = gateway.agent()
    past(gateway, agent)
    shown = simulate(gateway.owner, agent, {"rules": [{"action_type": "refund.create", "mode": "deny"}]})
    assert shown["proposed"] == {"automatic": 0, "asked": 1, "sensitive": 1, "refused": 3}
    assert simulate(gateway.owner, agent, {"default_mode": "deny"})["proposed"]["refused"] == 5


def test_without_a_proposal_the_standing_rules_are_tried(gateway: Gateway) -> None:
    agent = gateway.agent(policy=ALLOWED)
    past(gateway, agent)
    shown = simulate(gateway.owner, agent)
    assert shown["current"] == shown["proposed"] == {"automatic": 1, "asked": 3, "sensitive": 1, "refused": 0}
    assert (shown["newly_automatic"], shown["rejected_and_automatic"]) == (0, 1)


def test_a_recipient_counts_as_known_only_if_it_was_when_the_request_was_made(gateway: Gateway) -> None:
    agent = gateway.agent()
    ask(agent, payload={"recipient": FRIEND, "amount_usd": "1"})
    befriend(agent, gateway.owner, FRIEND)
    assert simulate(gateway.owner, agent, ALLOWED)["proposed"]["automatic"] == 0


def test_nothing_of_a_simulation_changes_the_agent_or_stands_in_the_log_as_a_decision_of_its_own(gateway: Gateway) -> None:
    agent = gateway.agent()
    past(gateway, agent)
    simulate(gateway.owner, agent, ALLOWED, action_type="refund.create", payload={"amount_usd": "12"})
    assert gateway.services.state.agents[agent.id].rules == parse_rules(None)
    assert stored(gateway, "SELECT action FROM log WHERE kind = 'decision' ORDER BY seq DESC LIMIT 2") == [
        ("approval.list",),
        ("agent.read",),
    ]
    assert stored(gateway, "SELECT count(*) FROM log WHERE action = 'suggest_auto'") == [(0,)]


def test_who_sees_the_agent_sees_only_the_approvals_that_are_theirs_to_list(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    ask(agent)
    assert [simulate(who, agent)["simulated"] for who in (gateway.owner, gateway.admin, gateway.member, agent)] == [1, 1, 1, 1]
    for who in (gateway.security, gateway.auditor, gateway.agent("other")):
        assert who.post(f"/v1/agents/{agent.id}/simulate-policy", {}).status_code == 403
    foreign = gateway.other_owner.post(f"/v1/agents/{agent.id}/simulate-policy", {}, {"X-Request-Id": "r"})
    unknown = gateway.other_owner.post(f"/v1/agents/{ABSENT}/simulate-policy", {}, {"X-Request-Id": "r"})
    assert (foreign.status_code, foreign.content) == (404, unknown.content)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (
            {"action_approval_policy": {"rules": [{"action_type": "a.b", "mode": "maybe"}]}},
            "action_approval_policy.rules[0].mode",
        ),
        ({"action_type": "nonsense"}, "action_type"),
        ({"payload": 1}, "payload"),
        ({"action_type": "a.b", "payload": {"amount_usd": "-1"}}, "payload"),
        ({"declared_risk_tier": 4}, "declared_risk_tier"),
        ({"rules": []}, "rules"),
    ],
    ids=str,
)
def test_what_is_malformed_is_refused_by_name(gateway: Gateway, body: dict[str, object], field: str) -> None:
    answer = gateway.owner.post(f"/v1/agents/{gateway.agent().id}/simulate-policy", body)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])


# -- what would change it

SENSITIVE = "no rule makes a sensitive action automatic: a human decides it every time"
RISK = "no rule lowers the risk: a human who proves who they are decides it"


def rule(mode: str = "allow", above: str | None = None, action: str = "refund.create") -> dict[str, str]:
    return {"action_type": action, "mode": mode, **({} if above is None else {"require_for_amount_above_usd": above})}


CHANGES: list[tuple[list[dict[str, str]], str | None, dict[str, str], dict[str, str] | None, str]] = [
    ([], "12", rule(above="12.01"), None, "no_matching_rule"),
    ([], None, rule(), None, "no_matching_rule"),
    ([], "80", rule(above="80.01"), None, "no_matching_rule"),
    ([rule(above="10")], "12", rule(above="12.01"), rule(above="10"), "above_configured_threshold"),
    ([rule(above="12")], "12", rule(above="12.01"), rule(above="12"), "above_configured_threshold"),
    ([rule(above="10")], None, rule(), rule(above="10"), "above_configured_threshold"),
    ([rule()], "80", rule(above="80.01"), rule(), "risk_tier_requires_step_up"),
    ([rule("approve")], "12", rule(), rule("approve"), "rule_requires_approval"),
    ([rule("approve", "20")], "12", rule(above="20"), rule("approve", "20"), "rule_requires_approval"),
    ([rule("approve", "10")], "12", rule(above="12.01"), rule("approve", "10"), "rule_requires_approval"),
    ([rule("deny")], "12", rule(), rule("deny"), "rule_requires_approval"),
]


@pytest.mark.parametrize(("rules", "amount", "change", "instead", "reason"), CHANGES, ids=range(len(CHANGES)))
def test_the_smallest_change_of_one_rule_is_named_and_makes_it_true(
    gateway: Gateway,
    rules: list[dict[str, str]],
    amount: str | None,
    change: dict[str, str],
    instead: dict[str, str] | None,
    reason: str,
) -> None:
    agent = gateway.agent(policy={"rules": rules})
    payload = {} if amount is None else {"amount_usd": amount}
    shown = simulate(gateway.owner, agent, action_type="refund.create", payload=payload)["what_would_change_it"]
    del shown["understood"]
    assert shown == {"suggest_auto": False, "blocked_reason": reason, "rule": change, "instead_of": instead}
    peer = gateway.peer(observers=[agent])
    assert predict(agent, peer, payload)["blocked_reason"] == reason
    done(gateway.owner.patch(f"/v1/agents/{agent.id}", {"action_approval_policy": {"rules": [change]}}), 200)
    assert predict(agent, peer, payload)["suggest_auto"] is True


@pytest.mark.parametrize(
    ("action", "payload", "declared", "because"),
    [
        ("key.rotate", {}, None, SENSITIVE),
        ("refund.create", {"recipient": "new@canary.example"}, None, RISK),
        ("refund.create", {"amount": "1", "currency": "EUR"}, None, RISK),
        ("refund.create", {}, 2, RISK),
        ("refund.create", {"amount_usd": "999999999999.99"}, None, "no change of one rule makes it automatic"),
    ],
)  # fmt: skip
def test_where_no_rule_could_make_it_true_the_answer_says_why(
    gateway: Gateway, action: str, payload: dict[str, str], declared: int | None, because: str
) -> None:
    agent = gateway.agent()
    body = {"action_type": action, "payload": payload, "declared_risk_tier": declared}
    shown = simulate(gateway.owner, agent, **body)["what_would_change_it"]
    assert (shown["suggest_auto"], shown["rule"], shown["because"]) == (False, None, because)


def test_what_is_automatic_already_needs_no_change(gateway: Gateway) -> None:
    agent = gateway.agent()
    befriend(agent, gateway.owner, FRIEND)
    body = {"action_type": "refund.create", "payload": {"amount_usd": "12", "recipient": FRIEND}}
    shown = simulate(gateway.owner, agent, ALLOWED, **body)["what_would_change_it"]
    assert (shown["suggest_auto"], shown.keys()) == (True, {"suggest_auto", "understood"})
