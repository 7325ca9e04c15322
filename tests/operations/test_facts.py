"""Facts: shown with their basis, and corrected, disputed and deleted by the person."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from gateway.store.writer import Unit
from tests.builders import Gateway, done
from tests.operations.peer_acts import FOOTER, KEY, NO_HISTORY, context, decide, fact_path, facts, learn, path, predict


def correct(client: Any, peer: dict[str, Any], value: dict[str, object], key: str = KEY) -> Any:
    return client.patch(path(peer, "/facts"), {"fact_key": key, "fact_value": value})


def test_a_fact_is_shown_with_its_basis_and_what_would_change_it(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    shown = done(gateway.member.get(fact_path(peer)), 200)
    [fact] = facts(gateway.member, peer)
    assert shown == {
        "fact": fact,
        "sentence": 'This person approved all 3 requests for "refund.create" of 0 to under 10 USD to the new recipient "a@b.co".',
        "bucket": {"action_type": "refund.create", "amount_band": "0-10", "recipient_kind": "new", "recipient": "a@b.co"},
        "evidence": fact["provenance"],
        "what_would_change_it": [
            "One rejection of a comparable request retires it at once.",
            "Each further approval of a comparable request supports it more.",
            "Correcting it puts the person's own word in its place.",
            "Disputing it keeps it out of contexts and predictions.",
            "Deleting it forgets what it rests on; with `suppress` it is never learned again.",
        ],
        "replaced": None,
    }


def test_a_key_with_separators_in_its_recipient_is_one_segment_of_a_path(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3, payload={"recipient": "Ops / 50%|x?#"})
    [fact] = facts(agent, peer)
    assert fact["fact_key"] == "approval_tendency:refund.create|none|new|ops / 50%25%7Cx?#"
    shown = done(gateway.member.get(fact_path(peer, fact["fact_key"])), 200)
    assert shown["bucket"]["recipient"] == "ops / 50%|x?#"


@pytest.mark.parametrize("key", ["x", KEY.replace("a@b.co", "other"), KEY.upper(), "approval_tendency:a.b|none|none"])
def test_there_is_no_fact_under_another_key(gateway: Gateway, key: str) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    here = fact_path(peer, key)
    member = gateway.member
    answers = [
        member.get(here),
        member.delete(here),
        member.post(f"{here}/dispute", {}),
        member.delete(f"{here}/dispute"),
        member.post(f"{here}/ask-me", {"agent_id": agent.id}),
    ]
    assert [answer.status_code for answer in answers] == [404] * 5
    assert len({answer.content for answer in answers}) == 1


def test_a_correction_is_pinned_against_derivation_and_keeps_what_it_replaced(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    [inferred] = facts(gateway.member, peer)
    gateway.clock.advance(timedelta(minutes=1))
    value = {"decision": "rejected", "text": "Never without asking me."}
    assert done(correct(gateway.member, peer, value), 200) == {
        "fact_key": KEY,
        "edited_by_human": True,
        "note": "corrected by a human: derivation does not overwrite it",
    }
    learn(agent, peer, 4)
    learn(agent, peer, 1, "rejected")
    done(gateway.owner.post("/v1/admin/derive", {}), 200)
    shown = done(gateway.member.get(fact_path(peer)), 200)
    fact = {name: shown["fact"][name] for name in ("fact_value", "confidence", "edited_by_human", "updated_at")}
    assert fact == {"fact_value": value, "confidence": None, "edited_by_human": True, "updated_at": "2026-03-04T10:01:00Z"}
    assert shown["replaced"] == {name: inferred[name] for name in ("fact_value", "confidence", "updated_at")}
    assert shown["sentence"] == "Never without asking me."
    assert [entry["type"] for entry in shown["evidence"]].count("event") == 8
    assert {"type": "human", "user_id": gateway.member.id, "at": "2026-03-04T10:01:00Z"} in shown["evidence"]


def test_a_second_correction_replaces_the_first_and_still_shows_the_inference(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    done(correct(gateway.member, peer, {"decision": "rejected"}), 200)
    done(correct(gateway.owner, peer, {"decision": "approved"}), 200)
    shown = done(gateway.member.get(fact_path(peer)), 200)
    assert (shown["fact"]["fact_value"], shown["replaced"]["fact_value"]["observations"]) == ({"decision": "approved"}, 3)
    humans = [entry["user_id"] for entry in shown["evidence"] if entry["type"] == "human"]
    assert sorted(humans) == sorted([gateway.member.id, gateway.owner.id])


def test_a_correction_is_the_first_line_of_a_context_and_the_last_that_is_cut(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 9, payload={"recipient": "often@b.co"})
    learn(agent, peer, 3)
    done(correct(gateway.member, peer, {"text": "Ask me."}), 200)
    assert context(agent, peer)["context"].splitlines()[0] == "- Ask me."
    small = f"- Ask me.\n{FOOTER}"
    assert context(agent, peer, budget=len(small))["context"] == small
    assert facts(agent, peer)[0]["fact_key"] == KEY


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("fact_key", {"fact_value": {}}),
        ("fact_key", {"fact_key": "x", "fact_value": {}}),
        ("fact_key", {"fact_key": KEY.replace("0-10", "0-1x"), "fact_value": {}}),
        ("fact_key", {"fact_key": KEY.replace("a@b.co", "a|b"), "fact_value": {}}),
        ("fact_value", {"fact_key": KEY}),
        ("fact_value", {"fact_key": KEY, "fact_value": "approved"}),
        ("fact_value", {"fact_key": KEY, "fact_value": {"confidence": "0.99"}}),
        ("fact_value", {"fact_key": KEY, "fact_value": {"decision": "maybe"}}),
        ("fact_value", {"fact_key": KEY, "fact_value": {"text": "two\nlines"}}),
        ("fact_value", {"fact_key": KEY, "fact_value": {"text": "x" * 301}}),
        ("fact_value", {"fact_key": KEY, "fact_value": {"x": "y" * 16384}}),
    ],
)
def test_a_correction_that_cannot_be_taken_changes_nothing(gateway: Gateway, field: str, body: object) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    before = facts(gateway.member, peer)
    refused = gateway.member.patch(path(peer, "/facts"), body)
    assert (refused.status_code, f"`{field}`" in refused.json()["detail"]) == (400, True)
    assert facts(gateway.member, peer) == before


def test_only_a_fact_that_is_believed_can_be_corrected(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    assert correct(gateway.member, peer, {}).status_code == 404
    learn(agent, peer, 3)
    learn(agent, peer, 1, "rejected")
    assert correct(gateway.member, peer, {}).status_code == 404


def test_facts_are_changed_by_the_person_and_those_who_act_for_them_only(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    for client in (agent, gateway.security, gateway.auditor, gateway.human("member")):
        here = fact_path(peer)
        answers = [
            correct(client, peer, {}),
            client.get(here),
            client.delete(here),
            client.post(f"{here}/dispute", {}),
            client.post(f"{here}/ask-me", {"agent_id": agent.id}),
        ]
        assert [answer.status_code for answer in answers] == [403] * 5
    assert len(facts(agent, peer)) == 1


def test_a_disputed_fact_is_left_out_of_contexts(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    before = context(agent, peer)
    fact = done(gateway.member.post(fact_path(peer, rest="/dispute"), {"reason": "that was my brother"}), 200)["fact"]
    assert (fact["fact_key"], fact["disputed"]) == (KEY, True)
    assert context(agent, peer) == {"context": "", "characters": 0, "budget": 2000, "facts_available": 0}
    learn(agent, peer, 1)
    assert context(agent, peer)["facts_available"] == 0
    assert done(gateway.member.delete(fact_path(peer, rest="/dispute")), 200)["fact"]["disputed"] is False
    assert context(agent, peer)["context"] == before["context"].replace("all 3", "all 4")


def test_a_correction_settles_a_dispute(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    done(gateway.member.post(fact_path(peer, rest="/dispute"), {}), 200)
    done(correct(gateway.member, peer, {"text": "Ask me."}), 200)
    assert context(agent, peer)["context"] == f"- Ask me.\n{FOOTER}"


def test_a_deleted_fact_is_gone_everywhere_and_stays_gone(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 6)
    assert done(gateway.member.delete(fact_path(peer)), 200) == {"deleted": True, "suppressed": False}
    done(gateway.owner.post("/v1/admin/derive", {}), 200)
    learn(agent, peer, 2)
    assert facts(agent, peer) == []
    assert context(agent, peer)["context"] == ""
    assert predict(agent, peer)["reasoning"] == "Only 2 comparable decisions so far, too few for a tendency."
    assert gateway.member.get(fact_path(peer)).status_code == 404
    learn(agent, peer, 1)
    assert [fact["fact_value"]["observations"] for fact in facts(agent, peer)] == [3]


def test_a_suppressed_bucket_is_never_learned_again(gateway: Gateway) -> None:
    agent = gateway.agent("a", by=gateway.member)
    peer = gateway.peer(observers=[agent])
    for _ in range(3):
        decide(gateway, agent, "approve", {}, by=gateway.member)
    [fact] = facts(agent, peer)
    here = fact_path(peer, fact["fact_key"])
    assert done(gateway.member.delete(here, suppress="true"), 200) == {"deleted": True, "suppressed": True}
    for _ in range(4):
        decide(gateway, agent, "approve", {}, by=gateway.member)
    done(gateway.owner.post("/v1/admin/derive", {}), 200)
    assert facts(agent, peer) == []
    answer = predict(agent, peer, {}, action_type="ticket.close")
    assert (answer["likelihood"], answer["reasoning"]) == (None, NO_HISTORY)


def test_a_suppression_can_be_lifted_and_what_is_decided_then_counts(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    done(gateway.member.delete(fact_path(peer), suppress="true"), 200)
    learn(agent, peer, 3)
    listed = {"fact_key": KEY, "at": "2026-03-04T10:00:00Z", "by": gateway.member.id}
    assert done(gateway.member.get(path(peer, "/suppressions")), 200) == {"suppressions": [listed]}
    here = fact_path(peer).replace("/facts/", "/suppressions/")
    done(gateway.member.delete(here), 204)
    assert gateway.member.delete(here).status_code == 404
    assert done(gateway.member.get(path(peer, "/suppressions")), 200) == {"suppressions": []}
    learn(agent, peer, 2)
    assert facts(agent, peer) == []
    learn(agent, peer, 1)
    assert len(facts(agent, peer)) == 1


def test_suppress_is_true_or_false(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    assert gateway.member.delete(fact_path(peer), suppress="yes").status_code == 400
    assert len(facts(agent, peer)) == 1


def test_a_fact_of_an_earlier_table_of_bands_is_read_corrected_and_deleted_like_any_other(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    monkeypatch.setattr("derive.bands._EDGES", (Decimal(0), Decimal(7)))
    monkeypatch.setattr("derive.bands._RANGES", ("0-7", "7+"))
    monkeypatch.setattr("derive.bands.BANDS", ("0-7", "7+", "none", "unknown"))
    assert "of 0 to under 10 USD" in context(agent, peer)["context"]
    assert [fact["fact_key"] for fact in facts(agent, peer)] == [KEY]
    assert predict(agent, peer)["likelihood"] is None
    assert done(gateway.member.get(fact_path(peer)), 200)["bucket"]["amount_band"] == "0-10"
    done(gateway.member.patch(path(peer, "/facts"), {"fact_key": KEY, "fact_value": {}}), 200)
    done(gateway.member.delete(fact_path(peer)), 200)


def test_facts_are_listed_in_the_order_in_which_a_context_tells_them(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3, payload={"amount_usd": "5", "recipient": "older"})
    gateway.clock.advance(timedelta(hours=1))
    learn(agent, peer, 3, payload={"amount_usd": "5", "recipient": "newer"})
    # As when the derivation of the first was owed and done late: what counts is when the person last decided.
    late = "UPDATE facts SET updated_at = $1 WHERE fact_key LIKE '%|older'"
    gateway.services.database.write(Unit(lambda tx: tx.run(late, gateway.clock.now + timedelta(hours=1)))).result()
    assert [fact["fact_value"]["recipient"] for fact in facts(agent, peer)] == ["newer", "older"]
    assert [line.split('"')[3] for line in context(agent, peer)["context"].splitlines()[:-1]] == ["newer", "older"]
