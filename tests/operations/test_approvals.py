"""Approvals: asked, listed, read, decided once, cancelled, and over when their time is."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import pytest

from gateway.store import approval_outcomes
from gateway.store.writer import Unit
from tests.builders import Gateway, done
from tests.operations.asking import ABSENT, ORDER, actions, ask, befriend, decide, stored

OVER = timedelta(days=7)


def test_a_request_is_answered_with_everything_that_was_understood(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    summary = {"title": "Refund", "body": "for a late parcel", "fields": [{"label": "order", "value": "1042"}]}
    payload = {"amount_usd": "12.50", "customer_email": " Ada@Shop.Example "}
    answer = agent.post(
        "/v1/approvals/request", {**ORDER, "summary": summary, "payload": payload, "reason": "late", "surplus": 1}
    )
    asked = done(answer, 202)
    assert answer.headers["location"] == f"/v1/approvals/{asked['id']}"
    canonical = json.dumps({"action": "refund.create", "payload": payload}, sort_keys=True, separators=(",", ":"))
    assert asked == {
        "id": asked["id"],
        "org_id": gateway.services.state.humans[gateway.owner.id].org_id,
        "user_id": gateway.member.id,
        "agent_id": agent.id,
        "connection_id": None,
        "action": "refund.create",
        "target_type": "order",
        "target_id": "1042",
        "risk_tier": 2,
        "declared_risk_tier": None,
        "declared_below_floor": False,
        "status": "pending",
        "summary": summary,
        "human_summary": None,
        "payload": payload,
        "payload_hash": hashlib.sha256(canonical.encode()).hexdigest(),
        "understood": {
            "action_type": "refund.create",
            "amount_usd": "12.50",
            "amount_band": "10-50",
            "currency": None,
            "recipient": "ada@shop.example",
            "recipient_kind": "new",
            "risk_tier": 2,
            "tier_reasons": ["the recipient is new to this agent"],
        },
        "reason": "late",
        "decision_reason": None,
        "decided_by": None,
        "decided_at": None,
        "created_at": "2026-03-04T10:00:00Z",
        "expires_at": "2026-03-11T10:00:00Z",
    }
    for reader in (agent, gateway.member, gateway.owner, gateway.admin):
        assert done(reader.get(f"/v1/approvals/{asked['id']}"), 200) == asked


def test_the_older_address_and_the_bare_minimum_are_accepted(gateway: Gateway) -> None:
    asked = done(gateway.agent().post("/v1/approvals", ORDER), 202)
    assert (asked["summary"], asked["payload"], asked["risk_tier"]) == ("a refund", {}, 1)


def test_numbers_of_a_payload_keep_their_digits_in_its_hash(gateway: Gateway) -> None:
    agent = gateway.agent()
    body = '{"action":"refund.create","target_type":"o","target_id":"1","summary":"s","payload":{"amount_usd":12.50,"n":0.1}}'
    headers = {"Authorization": f"Bearer {agent.key}", "Content-Type": "application/json"}
    asked = done(gateway.http.post("/v1/approvals/request", content=body, headers=headers), 202)
    text = '{"action":"refund.create","payload":{"amount_usd":12.50,"n":0.1}}'
    assert asked["payload_hash"] == hashlib.sha256(text.encode()).hexdigest()
    assert asked["understood"]["amount_usd"] == "12.50"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"action": None}, "action"),
        ({"action": "transaction"}, "action"),
        ({"action": "Refund.Create"}, "action"),
        ({"action": "refund.*"}, "action"),
        ({"action": f"a.{'b' * 63}"}, "action"),
        ({"target_type": None}, "target_type"),
        ({"target_type": 4}, "target_type"),
        ({"target_id": ""}, "target_id"),
        ({"target_id": "x" * 257}, "target_id"),
        ({"summary": None}, "summary"),
        ({"summary": ""}, "summary"),
        ({"summary": ["a"]}, "summary"),
        ({"summary": {"title": 4}}, "summary.title"),
        ({"summary": {"fields": ["a"]}}, "summary.fields"),
        ({"payload": "text"}, "payload"),
        ({"payload": []}, "payload"),
        ({"payload": {"amount_usd": "-1"}}, "payload"),
        ({"payload": {"amount_usd": "1e3"}}, "payload"),
        ({"payload": {"amount_usd": 1.00001}}, "payload"),
        ({"payload": {"amount_usd": True}}, "payload"),
        ({"payload": {"currency": 4}}, "payload"),
        ({"reason": "x" * 501}, "reason"),
        ({"declared_risk_tier": 0}, "declared_risk_tier"),
        ({"declared_risk_tier": 4}, "declared_risk_tier"),
        ({"declared_risk_tier": "2"}, "declared_risk_tier"),
        ({"risk_tier": True}, "risk_tier"),
    ],
)
def test_a_malformed_request_is_400_naming_the_field(gateway: Gateway, changes: dict[str, object], field: str) -> None:
    refused = gateway.agent().post("/v1/approvals/request", {**ORDER, **changes})
    assert refused.status_code == 400
    assert list(refused.json()["fields"]) == [field]
    assert done(gateway.owner.get("/v1/approvals", scope="org"), 200) == {"approvals": [], "total": 0}


def test_a_payload_over_the_limit_is_413(gateway: Gateway) -> None:
    refused = gateway.agent().post("/v1/approvals/request", {**ORDER, "payload": {"note": "x" * 16_384}})
    assert (refused.status_code, refused.json()["detail"]) == (413, "`payload` is 16395 bytes as JSON; at most 16384 are allowed")


@pytest.mark.parametrize("action", ["policy_change", "card_order", "agent_transaction", "agent_execution", "agent_sign_intent"])
def test_what_the_platform_asks_for_itself_is_refused(gateway: Gateway, action: str) -> None:
    refused = gateway.agent().post("/v1/approvals/request", {**ORDER, "action": action})
    assert (refused.status_code, refused.json()["detail"]) == (403, "The platform itself asks for this action; nobody else does.")


@pytest.mark.parametrize("action", ["access_request", "policy_request", "binding_request"])
def test_the_three_access_requests_are_asked_even_where_the_default_denies(gateway: Gateway, action: str) -> None:
    agent = gateway.agent(policy={"default_mode": "deny"})
    assert ask(agent, action=action)["risk_tier"] == 3


def test_only_an_agent_asks(gateway: Gateway) -> None:
    for human in (gateway.owner, gateway.member, gateway.security):
        refused = human.post("/v1/approvals/request", ORDER)
        assert (refused.status_code, refused.json()["detail"]) == (403, "Only an agent asks for an approval.")


def test_a_rule_that_denies_refuses_at_once_names_itself_and_is_audited(gateway: Gateway) -> None:
    agent = gateway.agent(policy={"default_mode": "allow", "rules": [{"action_type": "refund.create", "mode": "deny"}]})
    refused = agent.post("/v1/approvals/request", ORDER)
    problem = refused.json()
    assert refused.status_code == 403
    assert problem["detail"] == "A rule that is written for this agent denies this action. (rule `refund.create`: `deny`)"
    assert problem["next"] == "ask the human who registered this agent to change its `action_approval_policy`"
    assert done(agent.get("/v1/approvals"), 200)["total"] == 0
    event = done(gateway.owner.get("/v1/audit/events", action="approval.refused"), 200)["events"][0]
    assert (event["actor_id"], event["resource_id"]) == (agent.id, "refund.create")
    assert event["details"]["decision_id"] == problem["decision_id"]
    assert ask(agent, action="ticket.close")["status"] == "pending"


def test_a_default_of_deny_refuses_only_actions_without_a_rule(gateway: Gateway) -> None:
    agent = gateway.agent(policy={"default_mode": "deny", "rules": [{"action_type": "refund.create", "mode": "approve"}]})
    assert ask(agent)["status"] == "pending"
    refused = agent.post("/v1/approvals/request", {**ORDER, "action": "ticket.close"})
    assert refused.status_code == 403
    assert (
        refused.json()["detail"]
        == "No rule is written for this action, and this agent's default is to deny. (`default_mode`: `deny`)"
    )


def test_mode_allow_still_asks_a_human_while_automatic_approval_is_off(gateway: Gateway) -> None:
    agent = gateway.agent(policy={"rules": [{"action_type": "ticket.close", "mode": "allow"}]})
    assert ask(agent, action="ticket.close")["status"] == "pending"


def test_the_summary_for_the_human_is_made_from_the_payload_or_not_at_all(gateway: Gateway) -> None:
    rule = {"action_type": "refund.create", "mode": "approve", "summary_template": "refund {{amount_usd}} to {{recipient}}"}
    agent = gateway.agent(policy={"rules": [rule]})
    whole = ask(agent, payload={"amount_usd": 5, "recipient": "ada\n\u202eyes"})
    assert whole["human_summary"] == "refund 5 to adayes"
    assert ask(agent, payload={"amount_usd": 5})["human_summary"] is None


@pytest.mark.parametrize(
    ("word", "stored"),
    [
        ("approve", "approved"),
        ("approved", "approved"),
        ("reject", "rejected"),
        ("rejected", "rejected"),
        ("deny", "rejected"),
        ("denied", "rejected"),
    ],
)
def test_every_published_decision_word_decides(gateway: Gateway, word: str, stored: str) -> None:
    asked = ask(gateway.agent(by=gateway.member))
    gateway.clock.advance(timedelta(hours=1))
    body = {"decision": word, "reason": "because"}
    decided = done(gateway.member.post(f"/v1/approvals/{asked['id']}/decide", body), 200)
    expected = {
        "status": stored,
        "decision_reason": "because",
        "decided_by": gateway.member.id,
        "decided_at": "2026-03-04T11:00:00Z",
    }
    assert decided == {**asked, **expected}


@pytest.mark.parametrize("word", [None, "", "APPROVE", "cancel", "yes", 1, True, ["approve"], {"approve": 1}])
def test_another_word_decides_nothing(gateway: Gateway, word: object) -> None:
    asked = ask(gateway.agent(by=gateway.member))
    refused = gateway.member.post(f"/v1/approvals/{asked['id']}/decide", {"decision": word})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["decision"])
    assert done(gateway.member.get(f"/v1/approvals/{asked['id']}"), 200) == asked


def test_the_two_short_addresses_decide_as_well(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    assert done(gateway.member.post(f"/v1/approvals/{ask(agent)['id']}/approve"), 200)["status"] == "approved"
    assert done(gateway.member.post(f"/v1/approvals/{ask(agent)['id']}/deny", {"reason": "no"}), 200)["status"] == "rejected"


def test_a_decided_approval_is_decided_for_good(gateway: Gateway) -> None:
    asked = ask(gateway.agent(by=gateway.member))
    decided = decide(gateway.member, asked, "deny")
    again = gateway.owner.post(f"/v1/approvals/{asked['id']}/decide", {"decision": "approve"})
    assert (again.status_code, again.json()["detail"]) == (409, "this approval is `rejected`; only a pending one can be decided")
    assert done(gateway.member.get(f"/v1/approvals/{asked['id']}"), 200) == decided


def test_of_fifty_decisions_at_a_time_one_wins_and_is_evidence_once(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    peer = gateway.peer(observers=[agent])
    asked = ask(agent)

    def vote(number: int) -> int:
        word = "approve" if number % 2 else "reject"
        return gateway.member.post(f"/v1/approvals/{asked['id']}/decide", {"decision": word}).status_code

    with ThreadPoolExecutor(16) as pool:
        statuses = sorted(pool.map(vote, range(50)))
    assert statuses == [200] + [409] * 49
    assert actions(gateway).count("approval.decided") == 1
    rows = stored(gateway, "SELECT id FROM events WHERE peer_id = $1", peer["id"])
    assert rows == [(asked["id"],)]


def test_somebody_else_in_the_organisation_may_not_decide_or_know(gateway: Gateway) -> None:
    asked = ask(gateway.agent(by=gateway.member))
    unknown = gateway.security.post(f"/v1/approvals/{ABSENT}/decide", {"decision": "approve"})
    for human in (gateway.security, gateway.auditor, gateway.human("member")):
        refused = human.post(f"/v1/approvals/{asked['id']}/decide", {"decision": "approve"})
        assert (refused.status_code, refused.content) == (404, unknown.content)
        assert human.get(f"/v1/approvals/{asked['id']}").status_code == 404
        assert human.post(f"/v1/approvals/{asked['id']}/cancel").status_code == 404
        assert done(human.get("/v1/approvals"), 200) == {"approvals": [], "total": 0}
    assert done(gateway.member.get(f"/v1/approvals/{asked['id']}"), 200)["status"] == "pending"


def test_an_agent_decides_nothing_and_reaches_only_its_own(gateway: Gateway) -> None:
    agent, other = gateway.agent(), gateway.agent("other")
    asked = ask(agent)
    path = f"/v1/approvals/{asked['id']}"
    assert agent.post(f"{path}/decide", {"decision": "approve"}).status_code == 403
    assert other.post(f"{path}/decide", {"decision": "approve"}).status_code == 403
    assert other.get(path).status_code == 404
    assert other.get(f"{path}/status").status_code == 403
    assert other.post(f"{path}/cancel").status_code == 403
    assert done(other.get("/v1/approvals"), 200) == {"approvals": [], "total": 0}
    assert done(agent.get(f"{path}/status"), 200) == {"status": "pending", "expires_at": "2026-03-11T10:00:00Z"}
    unknown = gateway.owner.get(f"/v1/approvals/{ABSENT}/status")
    for human in (gateway.owner, gateway.auditor):
        refused = human.get(f"{path}/status")
        assert (refused.status_code, refused.content) == (404, unknown.content)


@pytest.mark.parametrize("suffix", ["", "/status", "/decide", "/approve", "/deny", "/cancel"])
def test_another_organisations_approval_is_byte_for_byte_an_unknown_one(gateway: Gateway, suffix: str) -> None:
    asked = ask(gateway.agent(by=gateway.member))
    foreign = gateway.agent("foreign", by=gateway.other_owner)
    for caller in (gateway.other_owner, foreign):
        answers = []
        for approval_id in (asked["id"], ABSENT, "no-id"):
            path = f"/v1/approvals/{approval_id}{suffix}"
            answer = caller.get(path) if suffix in ("", "/status") else caller.post(path, {"decision": "approve"})
            headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
            answers.append((answer.status_code, answer.content, headers))
        assert answers[0][0] == 404
        assert answers[0] == answers[1] == answers[2]
    assert done(gateway.member.get(f"/v1/approvals/{asked['id']}"), 200)["status"] == "pending"


def test_an_owner_decides_in_the_members_stead_which_tells_nothing_about_the_member(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    gateway.peer(observers=[agent])
    decided = decide(gateway.owner, ask(agent))
    assert decided["decided_by"] == gateway.owner.id
    assert stored(gateway, "SELECT id FROM events") == []


def test_a_decision_is_evidence_about_the_decider_on_every_peer_that_the_agent_observes(gateway: Gateway) -> None:
    agent, other = gateway.agent(by=gateway.member), gateway.agent("other", by=gateway.member)
    peer = gateway.peer(observers=[agent])
    seen, unseen = ask(agent), ask(other)
    decide(gateway.member, seen, "deny")
    decide(gateway.member, unseen)
    rows = stored(gateway, "SELECT peer_id, id, source, decision FROM events")
    assert rows == [(peer["id"], seen["id"], "gateway", "rejected")]


def test_a_recipient_is_new_at_the_first_decision_and_known_at_the_next(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    gateway.peer(observers=[agent])
    first, second = (ask(agent, payload={"recipient": "ada"}) for _ in range(2))
    decide(gateway.member, first)
    decide(gateway.member, second)
    rows = stored(gateway, "SELECT id, fact_key FROM events ORDER BY fact_key DESC")
    assert rows == [
        (first["id"], "approval_tendency:refund.create|none|new|ada"),
        (second["id"], "approval_tendency:refund.create|none|known|ada"),
    ]


def test_what_is_about_authority_is_decided_and_is_no_evidence(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    gateway.peer(observers=[agent])
    asked = ask(agent, action="access_request")
    assert asked["understood"]["tier_reasons"] == ["the action grants or destroys authority"]
    done(gateway.member.post(f"/v1/approvals/{asked['id']}/cancel"), 200)
    assert stored(gateway, "SELECT id FROM events") == []


def test_cancelling_always_answers_with_what_holds(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    by_agent, by_human, decided = (ask(agent) for _ in range(3))
    cancelled = done(agent.post(f"/v1/approvals/{by_agent['id']}/cancel", {"reason": "no need"}), 200)
    assert cancelled == {**by_agent, "status": "cancelled", "decision_reason": "no need"}
    bare = gateway.member.request("POST", f"/v1/approvals/{by_human['id']}/cancel")
    assert done(bare, 200) == {**by_human, "status": "cancelled"}
    outcome = decide(gateway.member, decided)
    assert done(agent.post(f"/v1/approvals/{decided['id']}/cancel"), 200) == outcome
    assert done(agent.post(f"/v1/approvals/{by_agent['id']}/cancel", {"reason": "other"}), 200) == cancelled
    assert agent.post(f"/v1/approvals/{by_agent['id']}/cancel", {"reason": "x" * 501}).status_code == 400
    assert gateway.member.post(f"/v1/approvals/{by_agent['id']}/approve").status_code == 409
    assert actions(gateway).count("approval.cancelled") == 2


def test_an_approval_ends_after_seven_days_before_any_sweep(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    asked = ask(agent)
    gateway.clock.advance(OVER - timedelta(microseconds=1))
    assert done(agent.get(f"/v1/approvals/{asked['id']}/status"), 200)["status"] == "pending"
    gateway.clock.advance(timedelta(microseconds=1))
    expired = {**asked, "status": "expired"}
    assert done(agent.get(f"/v1/approvals/{asked['id']}/status"), 200)["status"] == "expired"
    assert done(gateway.member.get(f"/v1/approvals/{asked['id']}"), 200) == expired
    assert done(gateway.member.get("/v1/approvals", status="pending"), 200)["total"] == 0
    assert done(gateway.member.get("/v1/approvals", status="expired"), 200) == {"approvals": [expired], "total": 1}
    refused = gateway.member.post(f"/v1/approvals/{asked['id']}/decide", {"decision": "approve"})
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "this approval is `expired`; only a pending one can be decided",
    )
    assert done(agent.post(f"/v1/approvals/{asked['id']}/cancel"), 200) == expired
    assert stored(gateway, "SELECT status FROM approvals") == [("pending",)]


def test_the_sweep_writes_down_what_has_ended_once(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    old = ask(agent)
    gateway.clock.advance(timedelta(days=1))
    young = ask(agent)
    gateway.clock.advance(OVER - timedelta(days=1))
    sweep = Unit(lambda tx: approval_outcomes.expire_due(tx, gateway.clock.now))
    assert [gateway.services.database.write(sweep).result() for _ in range(2)] == [1, 0]
    statuses = dict(stored(gateway, "SELECT id, status FROM approvals"))
    assert statuses == {old["id"]: "expired", young["id"]: "pending"}
    events = done(gateway.owner.get("/v1/audit/events", action="approval.expired"), 200)["events"]
    assert [event["resource_id"] for event in events] == [old["id"]]


def test_lists_are_ones_own_newest_first_and_whole(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    asked = []
    for _ in range(7):
        gateway.clock.advance(timedelta(seconds=1))
        asked.append(ask(agent))
    others = ask(gateway.agent("other"))
    newest_first = list(reversed(asked))
    for caller in (agent, gateway.member):
        assert done(caller.get("/v1/approvals"), 200) == {"approvals": newest_first, "total": 7}
        assert done(caller.get("/v1/approvals", scope="own"), 200)["total"] == 7
    pages = [done(gateway.member.get("/v1/approvals", limit=3, offset=n), 200)["approvals"] for n in (0, 3, 6, 9)]
    assert [one for page in pages for one in page] == newest_first
    assert [len(page) for page in pages] == [3, 3, 1, 0]
    for human in (gateway.owner, gateway.admin):
        everything = done(human.get("/v1/approvals", scope="org"), 200)
        assert everything["total"] == 8
        assert {one["id"] for one in everything["approvals"]} == {one["id"] for one in [*asked, others]}
    assert done(gateway.owner.get("/v1/approvals"), 200) == {"approvals": [others], "total": 1}
    assert done(gateway.admin.get("/v1/approvals"), 200) == {"approvals": [], "total": 0}
    for caller in (gateway.member, gateway.security, gateway.auditor, agent):
        assert caller.get("/v1/approvals", scope="org").status_code == 403
    assert done(gateway.other_owner.get("/v1/approvals", scope="org"), 200) == {"approvals": [], "total": 0}


def test_a_list_is_filtered_by_status_in_every_spelling(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    pending, approved, rejected, cancelled = (ask(agent) for _ in range(4))
    decide(gateway.member, approved)
    decide(gateway.member, rejected, "deny")
    done(agent.post(f"/v1/approvals/{cancelled['id']}/cancel"), 200)
    by_status = {"pending": pending, "approved": approved, "rejected": rejected, "denied": rejected, "cancelled": cancelled}
    for status, one in by_status.items():
        found = done(gateway.member.get("/v1/approvals", status=status), 200)
        assert ([each["id"] for each in found["approvals"]], found["total"]) == ([one["id"]], 1)


@pytest.mark.parametrize(
    "query",
    [{"status": "open"}, {"status": ""}, {"limit": "0"}, {"limit": "201"}, {"limit": "x"}, {"offset": "-1"}, {"scope": "all"}],
)
def test_a_list_refuses_what_it_does_not_understand(gateway: Gateway, query: dict[str, str]) -> None:
    refused = gateway.member.get("/v1/approvals", **query)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, list(query))


def test_an_approval_leaves_ids_in_the_audit_and_no_content(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    befriend(agent, gateway.member, "canary-recipient")
    events = done(gateway.owner.get("/v1/audit/events", limit=1000), 200)["events"]
    about = [event for event in events if event["action"].startswith("approval.")]
    assert [event["action"] for event in about] == ["approval.decided", "approval.requested"]
    assert "canary" not in json.dumps(events)
    log = stored(gateway, "SELECT details FROM log")
    assert "canary" not in str(log)
    newest, oldest = next(pairwise(about))
    assert newest["details"]["approval_id"] == oldest["details"]["approval_id"]
