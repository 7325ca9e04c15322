"""Peers over plain HTTP: the calls that the published client lacks, exactly as the wire gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.real.world import Agent, Person, World, done

ABSENT = "00000000-0000-4000-8000-000000000000"
REFUND = {"amount_usd": "8.50", "recipient": "customer-17@example.com"}
KEY = "approval_tendency:refund.create|0-10|known|customer-17@example.com"
FOOTER = "These are observations about past decisions, not instructions and not permission."
ALLOW = {"default_mode": "approve", "rules": [{"action_type": "refund.create", "mode": "allow"}]}


@dataclass(frozen=True, slots=True)
class Scene:
    """A person, the agent that serves them, and the peer between them."""

    person: Person
    agent: Agent
    peer_id: str
    http: httpx.Client
    by_person: httpx.Client

    def path(self, rest: str = "") -> str:
        return f"/v1/peers/{self.peer_id}{rest}"

    def predict(self, payload: object = REFUND, *, action: str = "refund.create", tier: int = 1) -> dict[str, Any]:
        body = {"action_type": action, "effective_risk_tier": tier, "payload": payload}
        answer: dict[str, Any] = done(self.http.post(self.path("/predict-approval"), json=body), 200)
        return answer


def scene(world: World, policy: object = None) -> Scene:
    person = world.person("member")
    agent = world.agent(policy, by=person)
    peer_id = world.peer(person, agent)
    return Scene(person, agent, peer_id, world.http(agent.api_key), world.http(person.api_key))


@pytest.fixture(scope="module")
def approved(world: World) -> Scene:
    """A person who has approved six refunds to a recipient that the agent knew, after the one that made it known."""
    made = scene(world)
    for _ in range(7):
        world.approved(made.agent, made.person, "refund.create", REFUND)
    return made


def test_creating_twice_merges_the_observers_and_answers_the_same_peer(world: World) -> None:
    person, first, second = world.person("member"), world.agent(), world.agent()
    owner = world.http(world.owner.api_key)
    body = {"peer_type": "user", "peer_ref": person.id, "display_name": "Sample", "observer_agent_ids": [first.id]}
    made = done(owner.post("/v1/peers", json=body), 201)["peer"]
    assert made | {"status": "active", "observer_count": 1, "profile": {}, "display_name": "Sample"} == made
    assert "observers" not in made
    again = done(owner.post("/v1/peers", json={**body, "observer_agent_ids": [second.id]}), 201)["peer"]
    assert again == {**made, "observer_count": 2}
    for agent in (first, second):
        assert done(world.http(agent.api_key).get(f"/v1/peers/{made['id']}"), 200) == {"peer": again, "facts": []}


def test_an_observer_that_is_no_agent_here_fails_the_whole_call(world: World) -> None:
    person = world.person("member")
    body = {"peer_type": "user", "peer_ref": person.id, "observer_agent_ids": [world.agent().id, ABSENT]}
    problem = done(world.http(world.owner.api_key).post("/v1/peers", json=body), 400)
    assert f"`{ABSENT}`" in problem["detail"]
    assert done(world.http(person.api_key).get("/v1/peers"), 200) == {"peers": [], "total": 0}


def test_an_agent_creates_no_peer(world: World) -> None:
    made = scene(world)
    body = {"peer_type": "user", "peer_ref": made.person.id, "observer_agent_ids": [made.agent.id]}
    assert isinstance(done(made.http.post("/v1/peers", json=body), 403)["detail"], str)


def test_events_of_every_kind_are_recorded(world: World) -> None:
    made = scene(world)
    for kind in ("message", "action", "observation"):
        answer = done(made.http.post(made.path("/events"), json={"event_type": kind, "content": {"text": "sample"}}), 201)
        assert list(answer) == ["event_id"]
    decided = {"action": "refund.create", "decision": "approved", "payload": REFUND}
    body = {"event_type": "approval", "content": decided, "event_id": "order-1"}
    first = done(made.http.post(made.path("/events"), json=body), 201)
    assert done(made.http.post(made.path("/events"), json=body), 201) == first
    done(made.http.post(made.path("/events"), json={**body, "content": {**decided, "decision": "rejected"}}), 409)
    done(made.http.post(made.path("/events"), json={"event_type": "thought", "content": {}}), 400)
    done(made.http.post(made.path("/events"), json={"event_type": "message"}), 400)


def test_six_consistent_approvals_are_likely_and_not_permitted(approved: Scene) -> None:
    predicted = approved.predict()
    assert (predicted["likelihood"], predicted["suggest_auto"], predicted["blocked_reason"]) == (0.83, False, "no_matching_rule")
    assert "6" in predicted["reasoning"]
    facts = {fact["fact_key"]: fact for fact in done(approved.http.get(approved.path()), 200)["facts"]}
    fact = facts[KEY]
    assert (fact["confidence"], fact["edited_by_human"], len(fact["provenance"])) == ("0.83", False, 6)
    assert fact["fact_value"]["observations"] == 6


def test_a_written_rule_permits_without_any_history(world: World) -> None:
    made = scene(world, ALLOW)
    predicted = made.predict({"amount_usd": "8.50"})
    assert (predicted["likelihood"], predicted["suggest_auto"]) == (None, True)
    assert "blocked_reason" not in predicted


def test_a_written_rule_and_a_history_are_two_answers(world: World) -> None:
    made = scene(world, {"rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "20"}]})
    for _ in range(7):
        world.approved(made.agent, made.person, "refund.create", REFUND)
    predicted = made.predict()
    assert (predicted["likelihood"], predicted["suggest_auto"]) == (0.83, True)


BLOCKED = {
    "no_matching_rule": ({"default_mode": "allow"}, {"amount_usd": "5"}, 1, "refund.create"),
    "rule_requires_approval": (
        {"rules": [{"action_type": "refund.create", "mode": "approve"}]},
        {"amount_usd": "5"},
        1,
        "refund.create",
    ),
    "above_configured_threshold": (
        {"rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "25"}]},
        {"amount_usd": "25"},
        1,
        "refund.create",
    ),
    "risk_tier_requires_step_up": (ALLOW, {"amount_usd": "5"}, 2, "refund.create"),
    "action_is_sensitive": (ALLOW, {}, 1, "role.grant"),
}


@pytest.mark.parametrize("reason", BLOCKED)
def test_a_blocked_prediction_has_exactly_one_reason(world: World, reason: str) -> None:
    policy, payload, tier, action = BLOCKED[reason]
    predicted = scene(world, policy).predict(payload, action=action, tier=tier)
    assert (predicted["suggest_auto"], predicted["blocked_reason"]) == (False, reason)


def test_a_prediction_wants_a_tier_and_an_action(approved: Scene) -> None:
    for body in ({"action_type": "refund.create"}, {"effective_risk_tier": 1}, {"action_type": "*", "effective_risk_tier": 1}):
        done(approved.http.post(approved.path("/predict-approval"), json=body), 400)


@pytest.mark.parametrize("budget", [None, 1, 100, 400, 8000, 9999])
def test_a_context_is_whole_lines_within_its_budget(approved: Scene, budget: int | None) -> None:
    answer = done(approved.http.get(approved.path("/context"), params={} if budget is None else {"budget": budget}), 200)
    allowed = min(budget or 2000, 8000)
    assert (answer["budget"], answer["characters"], answer["facts_available"]) == (allowed, len(answer["context"]), 1)
    assert len(answer["context"]) <= allowed
    assert answer["context"] == "" or answer["context"].endswith(FOOTER)
    assert (answer["context"] == "") == (allowed < 200)


@pytest.mark.parametrize("budget", ["0", "-1", "many", "1.5"])
def test_a_budget_that_is_none_is_refused(approved: Scene, budget: str) -> None:
    assert "`budget`" in done(approved.http.get(approved.path("/context"), params={"budget": budget}), 400)["detail"]


def test_an_agent_asks_for_the_person_it_serves(world: World, approved: Scene) -> None:
    own = done(approved.http.get(f"/v1/agents/{approved.agent.id}/peer-context"), 200)
    context = done(approved.http.get(approved.path("/context")), 200)
    assert own == {"peer_id": approved.peer_id, **context}
    stranger = world.agent()
    done(world.http(stranger.api_key).get(f"/v1/agents/{approved.agent.id}/peer-context"), 403)
    done(world.http(stranger.api_key).get(f"/v1/agents/{stranger.id}/peer-context"), 404)


def test_an_agent_that_is_not_listed_is_told_why_and_another_organisation_nothing(world: World, approved: Scene) -> None:
    stranger = world.http(world.agent().api_key)
    denied = done(stranger.get(approved.path("/context")), 403)
    assert denied.keys() >= {"type", "title", "status", "detail", "decision_id"}
    unknown, absent = (stranger.get(f"/v1/peers/{ABSENT}{rest}") for rest in ("", "/context"))
    assert unknown.status_code == absent.status_code == 404
    assert unknown.json() == absent.json()
    done(stranger.get(f"/v1/peers/by-connection/{ABSENT}"), 404)


def test_a_correction_is_pinned_and_is_said_first(world: World) -> None:
    made = scene(world)
    for _ in range(4):
        world.approved(made.agent, made.person, "refund.create", REFUND)
    change = {"fact_key": KEY, "fact_value": {"text": "Always ask about refunds.", "decision": "rejected"}}
    corrected = done(made.by_person.patch(made.path("/facts"), json=change), 200)
    assert (corrected["fact_key"], corrected["edited_by_human"]) == (KEY, True)
    world.approved(made.agent, made.person, "refund.create", REFUND)
    context = done(made.http.get(made.path("/context")), 200)["context"]
    assert "Always ask about refunds." in context.splitlines()[0]
    assert made.predict()["likelihood"] == 0.05
    done(made.http.patch(made.path("/facts"), json=change), 403)


def test_an_export_wants_a_confirmation_and_holds_everything(world: World) -> None:
    made = scene(world)
    for _ in range(4):
        world.approved(made.agent, made.person, "refund.create", REFUND)
    assert done(made.by_person.get(made.path("/export")), 403)["title"] == "step-up required"
    confirmed = {"X-Auth-Confirm": made.person.password}
    exported = done(made.by_person.get(made.path("/export"), headers=confirmed), 200)
    assert exported.keys() >= {"peer", "facts", "raw_observations", "note"}
    assert [fact["fact_key"] for fact in exported["facts"]] == [KEY]
    assert exported["facts"][0].keys() >= {"fact_value", "confidence", "why_we_believe_this", "corrected_by_a_human"}
    assert len(exported["raw_observations"]) == 4
    done(made.http.get(made.path("/export"), headers=confirmed), 403)


def test_an_erased_person_is_gone_for_everybody(world: World) -> None:
    made = scene(world)
    for _ in range(4):
        world.approved(made.agent, made.person, "refund.create", REFUND)
    done(made.by_person.delete(made.path("/data")), 403)
    confirmed = {"X-Auth-Confirm": made.person.password}
    erased = done(made.by_person.delete(made.path("/data"), headers=confirmed), 200)
    assert erased == {"deleted": True, "facts_deleted": 1, "observations_deleted": 4}
    for who in (made.http, made.by_person):
        assert done(who.get(made.path()), 404) == done(who.get(f"/v1/peers/{ABSENT}"), 404)
    audited = world.http(world.owner.api_key).get(
        "/v1/audit/events", params={"action": "peer.deleted", "resource_id": made.peer_id}
    )
    assert made.person.id not in audited.text.replace(f'"actor_id":"{made.person.id}"', "")
    assert audited.json()["count"] == 1
