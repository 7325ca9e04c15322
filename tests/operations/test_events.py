"""Recording events: once each, learned from when they are decisions, and taken back by the person."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import Gateway, done
from tests.operations.peer_acts import KEY, REFUND, decide, facts, learn, path, post, predict, proof


def stored(gateway: Gateway, peer: dict[str, Any], columns: str) -> list[tuple[Any, ...]]:
    sql = f"SELECT {columns} FROM events WHERE peer_id = $1 ORDER BY id"
    found: list[tuple[Any, ...]] = gateway.services.database.read_sync(lambda rows: rows.all(sql, peer["id"]))
    return found


def test_the_same_id_with_the_same_content_is_one_event(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    first = done(post(agent, peer, event_id="e-1"), 201)
    assert done(post(agent, peer, event_id="e-1"), 201) == first
    assert stored(gateway, peer, "id") == [(first["event_id"],)]
    assert post(agent, peer, "rejected", event_id="e-1").status_code == 409
    other_type = {"event_type": "message", "content": {"text": "x"}, "event_id": "e-1"}
    assert agent.post(path(peer, "/events"), other_type).status_code == 409
    assert stored(gateway, peer, "id, decision") == [(first["event_id"], "approved")]


def test_the_order_of_keys_is_no_difference_in_content(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    ids = {
        done(agent.post(path(peer, "/events"), {"event_type": "message", "content": content, "event_id": "e"}), 201)["event_id"]
        for content in ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1})
    }
    assert len(ids) == 1


def test_an_id_belongs_to_its_caller_and_peer(gateway: Gateway) -> None:
    a, b = gateway.agent("a"), gateway.agent("b")
    one, two = gateway.peer(observers=[a, b]), gateway.peer(gateway.auditor, observers=[a])
    ids = {
        done(post(client, peer, event_id="e"), 201)["event_id"]
        for client, peer in ((a, one), (b, one), (a, two), (gateway.owner, one))
    }
    assert len(ids) == 4


def test_fifty_posts_of_one_event_at_once_are_one_row_and_count_once(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: post(agent, peer, event_id="e-1"), range(50)))
    assert {answer.status_code for answer in answers} == {201}
    assert stored(gateway, peer, "id") == [(answer_id,) for answer_id in {answer.json()["event_id"] for answer in answers}]
    assert predict(agent, peer)["reasoning"] == "Only 1 comparable decision so far, too few for a tendency."


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("event_type", {"content": {}}),
        ("event_type", {"event_type": "thought", "content": {}}),
        ("content", {"event_type": "message"}),
        ("content", {"event_type": "message", "content": []}),
        ("content", {"event_type": "message", "content": {"x": "y" * 16384}}),
        ("event_id", {"event_type": "message", "content": {}, "event_id": "a b"}),
        ("event_id", {"event_type": "message", "content": {}, "event_id": "x" * 129}),
        ("event_id", {"event_type": "message", "content": {}, "event_id": 7}),
        ("content.action", {"event_type": "approval", "content": {"decision": "approved"}}),
        ("content.action", {"event_type": "approval", "content": {"action": "refund", "decision": "approved"}}),
        ("content.action", {"event_type": "approval", "content": {"action": "Refund.create", "decision": "approved"}}),
        ("content.decision", {"event_type": "approval", "content": {"action": "a.b"}}),
        ("content.decision", {"event_type": "approval", "content": {"action": "a.b", "decision": "maybe"}}),
        ("content.decision", {"event_type": "approval", "content": {"action": "a.b", "decision": {"$ne": ""}}}),
        ("content.payload", {"event_type": "approval", "content": {"action": "a.b", "decision": "approved", "payload": 5}}),
        (
            "content.payload",
            {"event_type": "approval", "content": {"action": "a.b", "decision": "approved", "payload": {"amount_usd": "-1"}}},
        ),
        (
            "content.payload",
            {"event_type": "approval", "content": {"action": "a.b", "decision": "approved", "payload": {"amount_usd": "1e3"}}},
        ),
        (
            "content.payload",
            {"event_type": "approval", "content": {"action": "a.b", "decision": "approved", "payload": {"currency": 1}}},
        ),
    ],
)
def test_an_event_that_cannot_be_read_is_refused_by_the_name_of_its_field(gateway: Gateway, field: str, body: object) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    refused = agent.post(path(peer, "/events"), body)
    assert (refused.status_code, f"`{field}`" in refused.json()["detail"]) == (400, True)
    assert stored(gateway, peer, "id") == []


def test_content_of_exactly_the_limit_is_taken(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    body = {"event_type": "message", "content": {"x": "y" * (16384 - len('{"x":""}'))}}
    done(agent.post(path(peer, "/events"), body), 201)


@pytest.mark.parametrize(
    ("word", "decision"), [("approve", "approved"), ("reject", "rejected"), ("deny", "rejected"), ("denied", "rejected")]
)
def test_each_word_for_a_decision_is_understood(gateway: Gateway, word: str, decision: str) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    done(post(agent, peer, word), 201)
    assert stored(gateway, peer, "decision, fact_key, source, learned") == [(decision, KEY, f"agent:{agent.id}", True)]


def test_one_dissent_retires_a_fact_at_once(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 5)
    learn(agent, peer, 1, "rejected")
    assert facts(agent, peer) == []
    assert predict(agent, peer)["reasoning"] == "Decided both ways so far (5 of 6 approved), no tendency."
    learn(agent, peer, 3)
    assert facts(agent, peer) == []


def test_two_decisions_are_a_coincidence(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 2)
    assert facts(agent, peer) == []


def test_a_band_and_a_recipient_each_have_a_bucket_of_their_own(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    for recipient in ("我喜欢健身", "我喜欢普洱茶", "e\u0301@b.co", "\u00e9@b.co"):
        learn(agent, peer, 2, payload={"recipient": recipient})
    learn(agent, peer, 2, payload={"amount_usd": "9.9999"})
    learn(agent, peer, 1, payload={"amount_usd": "10"})
    [fact] = facts(agent, peer)
    assert (fact["fact_value"]["recipient"], fact["fact_value"]["observations"]) == ("\u00e9@b.co", 4)


def test_what_an_agent_posts_never_makes_a_recipient_known(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 6)
    assert [fact["fact_key"] for fact in facts(agent, peer)] == [KEY]
    assert predict(agent, peer)["understood"]["recipient_kind"] == "new"


def test_the_gateways_own_decisions_are_evidence_by_the_id_of_the_approval(gateway: Gateway) -> None:
    agent = gateway.agent("a", by=gateway.member)
    peer = gateway.peer(observers=[agent])
    approvals = [decide(gateway, agent, "approve", {"note": n}, by=gateway.member) for n in range(3)]
    [fact] = facts(gateway.member, peer)
    assert fact["fact_key"] == "approval_tendency:ticket.close|none|none|none"
    assert sorted((entry["event_id"], entry["source"]) for entry in fact["provenance"]) == sorted(
        (id_, "gateway") for id_ in approvals
    )


def test_a_decision_is_evidence_about_who_decided_and_not_about_the_addressee(gateway: Gateway) -> None:
    agent = gateway.agent("a", by=gateway.member)
    member, owner = gateway.peer(observers=[agent]), gateway.peer(gateway.owner, observers=[agent])
    unobserved = gateway.peer(gateway.admin, observers=[])
    for _ in range(3):
        decide(gateway, agent, "reject", {}, by=gateway.owner)
        decide(gateway, agent, "reject", {}, by=gateway.admin)
    assert [len(facts(gateway.owner, peer)) for peer in (member, owner, unobserved)] == [0, 1, 0]
    assert facts(gateway.owner, owner)[0]["fact_value"]["decision"] == "rejected"


def test_the_first_approval_of_a_recipient_is_new_and_later_ones_are_known(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(gateway.owner, observers=[agent])
    for n in range(4):
        gateway.clock.advance(timedelta(seconds=1))
        asked = {"action": "refund.create", "target_type": "x", "target_id": "7", "summary": "s", "payload": {**REFUND, "n": n}}
        approval = done(agent.post("/v1/approvals/request", asked), 202)["id"]
        done(gateway.owner.post(f"/v1/approvals/{approval}/decide", {"decision": "approve"}, proof(gateway.owner)), 200)
    keys = sorted(row[0] for row in stored(gateway, peer, "fact_key"))
    known = KEY.replace("|new|", "|known|")
    assert keys == [known, known, known, KEY]
    assert [fact["fact_key"] for fact in facts(agent, peer)] == [known]


def test_an_organisation_may_learn_from_nothing_that_is_posted(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(gateway.owner, observers=[agent])
    done(gateway.owner.patch("/v1/org/settings", {"learn_from_posted_events": "false"}), 200)
    learn(agent, peer, 3)
    assert facts(agent, peer) == []
    assert [row[0] for row in stored(gateway, peer, "learned")] == [False] * 3
    for _ in range(3):
        decide(gateway, agent, "approve", {})
    assert len(facts(agent, peer)) == 1


def test_what_was_recorded_while_learning_was_paused_is_never_learned_from(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(gateway.owner, observers=[agent])
    done(gateway.owner.put(path(peer, "/pause"), {"reading": False, "learning": True}), 200)
    learn(agent, peer, 3)
    for _ in range(3):
        decide(gateway, agent, "approve", {})
    done(gateway.owner.put(path(peer, "/pause"), {"reading": False, "learning": False}), 200)
    learn(agent, peer, 2)
    done(gateway.owner.post("/v1/admin/derive", {}), 200)
    assert facts(agent, peer) == []
    assert sorted(row[0] for row in stored(gateway, peer, "learned")) == [False] * 6 + [True] * 2


def test_a_deleted_event_is_a_tombstone_at_once_and_the_counts_stay_right(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    [first, *_] = learn(agent, peer, 3)
    done(gateway.member.delete(path(peer, f"/events/{first}")), 204)
    [fact] = facts(gateway.member, peer)
    assert sorted(entry["type"] for entry in fact["provenance"]) == ["event", "event", "tombstone"]
    assert fact["fact_value"]["observations"] == 3
    assert gateway.member.delete(path(peer, f"/events/{first}")).status_code == 404


def test_a_deleted_event_of_a_bucket_without_a_fact_leaves_nothing(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    [first, _] = learn(agent, peer, 2)
    done(gateway.member.delete(path(peer, f"/events/{first}")), 204)
    learn(agent, peer, 1)
    assert facts(agent, peer) == []
    assert gateway.services.database.read_sync(lambda rows: rows.all("SELECT * FROM provenance")) == []


def test_an_event_that_was_deleted_does_not_come_back_under_its_id(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    event_id = done(post(agent, peer, event_id="e"), 201)["event_id"]
    done(gateway.member.delete(path(peer, f"/events/{event_id}")), 204)
    assert done(post(agent, peer, event_id="e"), 201) == {"event_id": event_id}
    assert facts(agent, peer)[0]["fact_value"]["observations"] == 4
    assert (event_id,) not in stored(gateway, peer, "id")


def test_only_the_person_and_those_who_act_for_them_delete_an_event(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    [event_id] = learn(agent, peer, 1)
    for client in (agent, gateway.security, gateway.auditor):
        assert client.delete(path(peer, f"/events/{event_id}")).status_code == 403
    assert gateway.owner.delete(path(peer, "/events/x")).status_code == 404
    done(gateway.admin.delete(path(peer, f"/events/{event_id}")), 204)


def test_an_event_becomes_a_tombstone_at_ninety_days_exactly(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    text = agent.get(path(peer, "/context")).json()
    gateway.clock.advance(timedelta(days=90) - timedelta(microseconds=1))
    assert [entry["type"] for entry in facts(agent, peer)[0]["provenance"]] == ["event"] * 3
    gateway.clock.advance(timedelta(microseconds=1))
    assert agent.get(path(peer, "/context")).json() == text
    tombstone = {"type": "tombstone", "event_type": "approval", "decision": "approved", "at": "2026-03-04T10:00:00Z"}
    assert facts(agent, peer)[0]["provenance"] == [tombstone] * 3
    assert stored(gateway, peer, "id") == []


def test_events_that_expired_before_there_was_a_fact_count_for_nothing(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 2)
    gateway.clock.advance(timedelta(days=90))
    learn(agent, peer, 1)
    assert facts(agent, peer) == []
    assert predict(agent, peer)["reasoning"] == "Only 1 comparable decision so far, too few for a tendency."


def test_an_old_approval_still_makes_a_bucket_mixed(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    learn(agent, peer, 1, "rejected")
    gateway.clock.advance(timedelta(days=90))
    learn(agent, peer, 3, "rejected")
    assert facts(agent, peer) == []
    assert predict(agent, peer)["reasoning"] == "Decided both ways so far (3 of 7 approved), no tendency."
