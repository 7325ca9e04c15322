"""Whether an action may be automatic: one reason when it may not, and nothing of any history in the question."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.access.asked import AGENT, ALLOW, OWNER, entities_of
from tests.world import World, a_proposal, an_agent, session

REASONS: list[tuple[str, dict[str, Any], dict[str, Any], str | None]] = [
    ("agent.delete", {"rules": [{"action_type": "agent.delete", "mode": "approve"}]}, {}, "action_is_sensitive"),
    ("refund.create", {"default_mode": "allow"}, {"amount_usd": "900"}, "no_matching_rule"),
    (
        "refund.create",
        {"rules": [{"action_type": "refund.create", "mode": "approve"}]},
        {"amount_usd": "900"},
        "rule_requires_approval",
    ),
    ("refund.create", ALLOW, {"amount_usd": "20"}, "above_configured_threshold"),
    ("refund.create", ALLOW, {}, "above_configured_threshold"),
    (
        "refund.create",
        {"rules": [{"action_type": "refund.create", "mode": "allow"}]},
        {"amount_usd": "50"},
        "risk_tier_requires_step_up",
    ),
    ("refund.create", ALLOW, {"amount_usd": "19.9999"}, None),
]


@pytest.mark.parametrize(("action", "rules", "payload", "code"), REASONS)
def test_an_action_that_is_not_automatic_has_exactly_one_reason(
    world: World, action: str, rules: dict[str, Any], payload: dict[str, Any], code: str | None
) -> None:
    world.state.put_agent(an_agent("agent", policy=rules))
    proposal = a_proposal(action, rules=rules, **payload)
    ruling = world.access.ask_automatic(session(AGENT), proposal, principal=AGENT, person_paused=False)
    assert (ruling.allowed, ruling.reason.code if ruling.reason else None) == (code is None, code)


def test_a_pause_takes_a_yes_back_and_changes_no_other_answer(world: World) -> None:
    for action, rules, payload, code in REASONS:
        world.state.put_agent(an_agent("agent", policy=rules))
        ruling = world.access.ask_automatic(
            session(AGENT), a_proposal(action, rules=rules, **payload), principal=AGENT, person_paused=True
        )
        assert ruling.reason is not None
        assert ruling.reason.code == (code or "rule_requires_approval")


def test_nothing_from_any_history_is_in_the_question_whether_an_action_is_automatic(world: World) -> None:
    world.state.put_agent(an_agent("agent", policy=ALLOW))
    asked = session(OWNER)
    proposal = a_proposal(rules=ALLOW, amount_usd="19.99", recipient="canary@canary.example", reason="canary")
    ruling = world.access.ask_automatic(asked, proposal, principal=AGENT, person_paused=False)
    assert ruling.allowed
    org = {"__entity": {"type": "Org", "id": "home"}}
    entities = entities_of(ruling.row)
    assert {name: (entity["attrs"], entity["tags"]) for name, entity in entities.items()} == {
        "Org::home": ({}, {}),
        "Role::member": ({}, {}),
        "Human::member": ({"org": org}, {}),
        "Agent::agent": (
            {
                "org": org,
                "active": True,
                "registered_by": {"__entity": {"type": "Human", "id": "member"}},
                "approval": {"__entity": {"type": "ApprovalPolicy", "id": "agent"}},
            },
            {},
        ),
        "ApprovalPolicy::agent": (
            {"default_mode": "approve"},
            {"refund.create": {"__entity": {"type": "ApprovalRule", "id": "agent/refund.create"}}},
        ),
        "ApprovalRule::agent/refund.create": (
            {"mode": "allow", "require_for_amount_above_usd": {"__extn": {"fn": "decimal", "arg": "20.0000"}}},
            {},
        ),
        "ProposedAction::refund.create": (
            {
                "org": org,
                "action_type": "refund.create",
                "amount_usd": {"__extn": {"fn": "decimal", "arg": "19.9900"}},
                "risk_tier": 1,
                "sensitive": False,
                "platform_made": False,
                "asked_always": False,
                "person_paused": False,
            },
            {},
        ),
    }
    text = json.dumps([list(ruling.row.slice_bodies.values()), ruling.row.details])
    words = (
        "canary",
        "likelihood",
        "confidence",
        "fact",
        "histor",
        "approved",
        "rejected",
        "observ",
        "recipient",
        "known",
        "bucket",
    )
    assert [word for word in words if word in text] == []
    assert ruling.row.details == {
        "context": {"now": "2026-03-04T10:00:00Z", "clock": {"minute": 600, "weekday": 3, "date": "2026-03-04"}},
        "asked_by": 'Human::"owner"',
    }


def test_a_known_recipient_reaches_the_question_as_a_tier_and_as_nothing_else(world: World) -> None:
    rows = []
    for known in (True, False):
        proposal = a_proposal(known=known, declared=2, recipient="canary@canary.example")
        rows.append(world.access.ask_automatic(session(AGENT), proposal, principal=AGENT, person_paused=False).row)
    assert rows[0].slice_bodies == rows[1].slice_bodies
