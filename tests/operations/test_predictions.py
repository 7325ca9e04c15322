"""Predictions: the likelihood is about the person, the suggestion about the agent's own written rules."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from gateway.model.grant import Session
from tests.builders import Gateway, done
from tests.operations.peer_acts import KEY, NO_HISTORY, REFUND, decide, fact_path, learn, path, predict

SMALL = {"amount_usd": "5"}


def allow(**more: object) -> dict[str, object]:
    return {"rules": [{"action_type": "refund.create", "mode": "allow", **more}]}


def told(answer: dict[str, Any]) -> tuple[object, object, object, object]:
    return answer["likelihood"], answer["reasoning"], answer["suggest_auto"], answer.get("blocked_reason")


@pytest.mark.parametrize(
    ("approved", "rejected", "likelihood", "reasoning"),
    [
        (0, 0, None, NO_HISTORY),
        (1, 0, None, "Only 1 comparable decision so far, too few for a tendency."),
        (1, 1, None, "Only 2 comparable decisions so far, too few for a tendency."),
        (3, 0, 0.76, "All comparable requests were approved so far (3)."),
        (6, 0, 0.83, "All comparable requests were approved so far (6)."),
        (0, 3, 0.19, "All comparable requests were rejected so far (3)."),
        (4, 2, None, "Decided both ways so far (4 of 6 approved), no tendency."),
    ],
)
def test_the_likelihood_reads_tendencies_only(
    gateway: Gateway, approved: int, rejected: int, likelihood: float | None, reasoning: str
) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, approved)
    learn(agent, peer, rejected, "rejected")
    assert told(predict(agent, peer)) == (likelihood, reasoning, False, "no_matching_rule")


def test_the_whole_answer(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 6)
    assert predict(agent, peer) == {
        "likelihood": 0.83,
        "reasoning": "All comparable requests were approved so far (6).",
        "suggest_auto": False,
        "blocked_reason": "no_matching_rule",
        "next": "ask a human with request_approval (POST /v1/approvals/request)",
        "understood": {
            "action_type": "refund.create",
            "amount_usd": "5",
            "amount_band": "0-10",
            "currency": None,
            "recipient": "a@b.co",
            "recipient_kind": "new",
            "risk_tier": 2,
            "tier_reasons": ["the recipient is new to this agent"],
        },
    }


@pytest.mark.parametrize(
    ("policy", "payload", "tier", "reason"),
    [
        (allow(), SMALL, 1, None),
        (allow(require_for_amount_above_usd="10"), {"amount_usd": "9.9999"}, 1, None),
        (allow(require_for_amount_above_usd="10"), {"amount_usd": "10"}, 1, "above_configured_threshold"),
        (allow(require_for_amount_above_usd="10"), {}, 1, "above_configured_threshold"),
        (allow(), {"amount_usd": "50"}, 1, "risk_tier_requires_step_up"),
        (allow(), SMALL, 2, "risk_tier_requires_step_up"),
        (allow(), REFUND, 1, "risk_tier_requires_step_up"),
        ({"rules": [{"action_type": "refund.create", "mode": "approve"}]}, SMALL, 1, "rule_requires_approval"),
        ({"rules": [{"action_type": "refund.create", "mode": "deny"}]}, SMALL, 1, "rule_requires_approval"),
        ({"default_mode": "allow"}, SMALL, 1, "no_matching_rule"),
        (None, SMALL, 1, "no_matching_rule"),
    ],
)
def test_the_suggestion_follows_from_the_agents_own_rules(
    gateway: Gateway, policy: object, payload: dict[str, object], tier: int, reason: str | None
) -> None:
    agent = gateway.agent("a", policy=policy)
    peer = gateway.peer(observers=[agent])
    answer = predict(agent, peer, payload, effective_risk_tier=tier)
    assert (answer["suggest_auto"], answer.get("blocked_reason")) == (reason is None, reason)
    assert ("next" in answer) == (reason is not None)


def test_a_sensitive_action_comes_before_every_other_reason(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    for action in ("access_request", "key.rotate", "peer.erase"):
        answer = predict(agent, peer, {}, action_type=action)
        assert told(answer) == (None, NO_HISTORY, False, "action_is_sensitive")


def test_a_sure_history_does_not_make_anything_automatic_and_none_does_not_prevent_it(gateway: Gateway) -> None:
    strict, free = gateway.agent("s"), gateway.agent("f", policy=allow())
    peer = gateway.peer(observers=[strict, free])
    learn(strict, peer, 20, payload=SMALL)
    assert told(predict(strict, peer, SMALL))[2:] == (False, "no_matching_rule")
    learn(strict, peer, 1, "rejected", payload=SMALL)
    assert told(predict(free, peer, SMALL)) == (None, "Decided both ways so far (20 of 21 approved), no tendency.", True, None)


def test_a_human_asks_for_an_agent_by_its_id_and_else_about_nobody(gateway: Gateway) -> None:
    agent = gateway.agent("a", policy=allow())
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3, payload=SMALL)
    assert told(predict(gateway.member, peer, SMALL)) == (
        0.76,
        "All comparable requests were approved so far (3).",
        False,
        "no_matching_rule",
    )
    assert told(predict(gateway.member, peer, SMALL, agent_id=agent.id))[2:] == (True, None)
    foreign = gateway.agent("f", by=gateway.other_owner)
    for agent_id in (foreign.id, "x"):
        body = {"action_type": "refund.create", "effective_risk_tier": 1, "agent_id": agent_id}
        assert gateway.member.post(path(peer, "/predict-approval"), body).status_code == 400
    other = gateway.agent("b")
    body = {"action_type": "refund.create", "effective_risk_tier": 1, "agent_id": other.id}
    assert agent.post(path(peer, "/predict-approval"), body).status_code == 400


def test_the_agents_known_recipients_count_for_the_human_who_asks_for_it(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(gateway.owner, observers=[agent])
    payload = {"to": "A@b.co"}
    asked = {"action": "ticket.close", "target_type": "t", "target_id": "7", "summary": "s", "payload": payload}
    approval = done(agent.post("/v1/approvals/request", asked), 202)["id"]
    done(
        gateway.owner.post(
            f"/v1/approvals/{approval}/decide", {"decision": "approve"}, {"X-Auth-Confirm": gateway.owner.password}
        ),
        200,
    )
    kinds = [
        predict(gateway.owner, peer, payload)["understood"]["recipient_kind"],
        predict(gateway.owner, peer, payload, agent_id=agent.id)["understood"]["recipient_kind"],
        predict(agent, peer, payload)["understood"]["recipient_kind"],
    ]
    assert kinds == ["new", "known", "known"]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("action_type", {"action_type": None}),
        ("action_type", {"action_type": "refund"}),
        ("action_type", {"action_type": "*"}),
        ("effective_risk_tier", {"effective_risk_tier": None}),
        ("effective_risk_tier", {"effective_risk_tier": 0}),
        ("effective_risk_tier", {"effective_risk_tier": 4}),
        ("effective_risk_tier", {"effective_risk_tier": "1"}),
        ("effective_risk_tier", {"effective_risk_tier": True}),
        ("payload", {"payload": []}),
        ("payload", {"payload": {"amount_usd": "-5"}}),
        ("payload", {"payload": {"amount_usd": "NaN"}}),
        ("payload", {"payload": {"amount_usd": "0.00001"}}),
        ("payload", {"payload": {"amount_usd": "922337203685477.5808"}}),
        ("payload", {"payload": {"currency": 840}}),
        ("agent_id", {"agent_id": "x"}),
    ],
)
def test_a_question_that_cannot_be_read_is_refused_by_the_name_of_its_field(
    gateway: Gateway, field: str, change: dict[str, object]
) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    body = {"action_type": "refund.create", "effective_risk_tier": 1, **change}
    refused = agent.post(path(peer, "/predict-approval"), body)
    assert (refused.status_code, f"`{field}`" in refused.json()["detail"]) == (400, True)


def test_a_corrected_fact_speaks_with_the_persons_word(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    expected: list[tuple[dict[str, object], object, str]] = [
        ({"decision": "approved"}, 0.95, "Corrected by the person: comparable requests are approved."),
        ({"decision": "rejected"}, 0.05, "Corrected by the person: comparable requests are rejected."),
        ({"text": "Ask me on Mondays."}, None, "Corrected by the person: Ask me on Mondays."),
        ({}, None, "Corrected by the person: no decision is given."),
    ]
    for value, likelihood, reasoning in expected:
        done(gateway.member.patch(path(peer, "/facts"), {"fact_key": KEY, "fact_value": value}), 200)
        assert told(predict(agent, peer))[:2] == (likelihood, reasoning)


def test_a_disputed_fact_gives_no_likelihood(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    done(gateway.member.post(fact_path(peer, rest="/dispute"), {}), 200)
    assert told(predict(agent, peer))[:2] == (None, "The person disputes what comparable decisions say (3).")
    done(gateway.member.delete(fact_path(peer, rest="/dispute")), 200)
    assert predict(agent, peer)["likelihood"] == 0.76


def test_a_paused_person_reads_like_one_without_a_history_and_is_asked(gateway: Gateway) -> None:
    free, strict = gateway.agent("f", policy=allow()), gateway.agent("s")
    peer = gateway.peer(observers=[free, strict])
    learn(free, peer, 3, payload=SMALL)
    never = gateway.peer(gateway.auditor, observers=[free, strict])
    done(gateway.member.put(path(peer, "/pause"), {"reading": True, "learning": False}), 200)
    assert told(predict(free, peer, SMALL)) == (None, NO_HISTORY, False, "rule_requires_approval")
    assert predict(strict, peer, SMALL) == predict(strict, never, SMALL)
    assert predict(free, peer, SMALL, effective_risk_tier=2) == predict(free, never, SMALL, effective_risk_tier=2)
    assert told(predict(gateway.member, peer, SMALL, agent_id=free.id)) == (
        0.76,
        "All comparable requests were approved so far (3).",
        False,
        "rule_requires_approval",
    )


def test_each_prediction_leaves_its_decisions_and_nothing_of_the_payload(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(gateway.owner, observers=[agent])
    decide(gateway, agent, "approve", {})
    predict(agent, peer)
    sql = "SELECT action, resource_type, outcome, details FROM log WHERE principal_id = $1 ORDER BY seq DESC LIMIT 3"
    found = gateway.services.database.read_sync(lambda rows: rows.all(sql, agent.id))
    assert [row[:3] for row in reversed(found)] == [
        ("peer.predict", "Peer", "allow"),
        ("suggest_auto", "ProposedAction", "deny"),
        ("peer.predicted", "Peer", None),
    ]
    assert not [row for row in found if "a@b.co" in row[3]]


def test_a_person_learns_nothing_of_an_agent_that_neither_observes_them_nor_is_theirs(gateway: Gateway) -> None:
    peer = gateway.peer()
    rules = {"rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "20"}]}
    strange, listed, own = (
        gateway.agent(policy=rules),
        gateway.agent(policy=rules),
        gateway.agent(policy=rules, by=gateway.member),
    )
    done(gateway.owner.put(f"/v1/peers/{peer['id']}/observers", {"observers": [{"agent_id": listed.id}]}), 200)
    body = {"action_type": "refund.create", "effective_risk_tier": 1, "payload": {"amount_usd": "5"}}

    def ask(agent_id: str) -> tuple[int, object]:
        answer = gateway.member.post(f"/v1/peers/{peer['id']}/predict-approval", {**body, "agent_id": agent_id})
        return answer.status_code, answer.json().get("suggest_auto")

    assert [ask(agent.id) for agent in (listed, own, strange)] == [(200, True), (200, True), (400, None)]
    unknown = gateway.member.post(f"/v1/peers/{peer['id']}/predict-approval", {**body, "agent_id": gateway.other_owner.id})
    assert unknown.status_code == 400


@pytest.mark.parametrize("audit", ["durable", "relaxed"])
def test_a_prediction_that_is_run_again_is_recorded_once_and_each_decision_of_it(
    gateway: Gateway, audit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    object.__setattr__(gateway.services.settings, "audit", audit)
    access = gateway.services.access
    inner, asked = access.stands, []

    def stands_the_second_time(session: Session, now: datetime) -> bool:
        asked.append(now)
        return len(asked) > 1 and inner(session, now)

    monkeypatch.setattr(access, "stands", stands_the_second_time)
    predict(agent, peer)
    monkeypatch.undo()
    done(gateway.owner.post("/v1/agents", {"name": "another"}), 201)  # what was only handed over is written before this
    sql = "SELECT action FROM log WHERE principal_id = $1 AND action IN ('peer.predict', 'peer.predicted') ORDER BY seq"
    found = gateway.services.database.read_sync(lambda rows: rows.all(sql, agent.id))
    assert found == [("peer.predict",), ("peer.predict",), ("peer.predicted",)]
