"""The person's own rights: be asked, pause, see what an agent sees, take everything along, be erased."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.model.grant import Grant
from gateway.model.records import Peer
from gateway.store import erasure
from gateway.store.rows import Rows
from gateway.store.writer import Unit
from tests.builders import Gateway, done
from tests.operations.peer_acts import KEY, context, fact_path, facts, learn, path, post, predict, proof

SMALL = {"amount_usd": "5"}
SMALL_KEY = "approval_tendency:refund.create|0-10|none|none"
EMPTY = {"context": "", "characters": 0, "budget": 2000, "facts_available": 0}


def rows(gateway: Gateway, sql: str, *params: object) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = gateway.services.database.read_sync(lambda read: read.all(sql, *params))
    return found


# -- ask me every time


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, {"rules": [{"action_type": "refund.create", "mode": "approve"}]}),
        (
            {
                "rules": [
                    {
                        "action_type": "refund.create",
                        "mode": "allow",
                        "require_for_amount_above_usd": "10",
                        "summary_template": "s",
                    }
                ]
            },
            {
                "rules": [
                    {
                        "action_type": "refund.create",
                        "mode": "approve",
                        "require_for_amount_above_usd": "10",
                        "summary_template": "s",
                    }
                ]
            },
        ),
        (
            {"rules": [{"action_type": "refund.create", "mode": "deny"}]},
            {"rules": [{"action_type": "refund.create", "mode": "deny"}]},
        ),
        (
            {"default_mode": "allow", "rules": [{"action_type": "a.b", "mode": "allow"}]},
            {
                "default_mode": "allow",
                "rules": [{"action_type": "a.b", "mode": "allow"}, {"action_type": "refund.create", "mode": "approve"}],
            },
        ),
        ({"default_mode": "deny"}, {"default_mode": "deny"}),
    ],
)
def test_asking_every_time_writes_a_rule_and_only_ever_narrows(gateway: Gateway, policy: object, expected: object) -> None:
    agent = gateway.agent("a", policy=policy)
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3, payload=SMALL)
    asked = gateway.member.post(fact_path(peer, SMALL_KEY, "/ask-me"), {"agent_id": agent.id})
    assert done(asked, 200) == {"agent_id": agent.id, "action_approval_policy": expected}
    assert done(gateway.owner.get(f"/v1/agents/{agent.id}"), 200)["action_approval_policy"] in (
        expected,
        None if policy is None else expected,
    )


def test_asking_every_time_counts_from_the_next_request(gateway: Gateway) -> None:
    agent = gateway.agent("a", policy={"rules": [{"action_type": "refund.create", "mode": "allow"}]})
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3, payload=SMALL)
    assert predict(agent, peer, SMALL)["suggest_auto"] is True
    done(gateway.member.post(fact_path(peer, SMALL_KEY, "/ask-me"), {"agent_id": agent.id}), 200)
    assert predict(agent, peer, SMALL)["blocked_reason"] == "rule_requires_approval"


def test_asking_every_time_needs_room_and_an_agent_that_observes(gateway: Gateway) -> None:
    full = gateway.agent("a", policy={"rules": [{"action_type": f"a.b{n}", "mode": "allow"} for n in range(100)]})
    peer = gateway.peer(observers=[full])
    learn(full, peer, 3, payload=SMALL)
    other, foreign = gateway.agent("b"), gateway.agent("f", by=gateway.other_owner)
    for agent_id in (full.id, other.id, foreign.id, "x"):
        assert gateway.member.post(fact_path(peer, SMALL_KEY, "/ask-me"), {"agent_id": agent_id}).status_code == 400


# -- pause


def test_paused_reading_looks_like_a_person_without_a_history(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer, never = gateway.peer(observers=[agent]), gateway.peer(gateway.auditor, observers=[agent])
    learn(agent, peer, 3)
    before = context(agent, peer)
    pause = {"reading": True, "learning": False, "until": None}
    assert done(gateway.member.put(path(peer, "/pause"), pause), 200) == {"pause": pause}
    assert context(agent, peer) == context(agent, never) == EMPTY
    assert facts(agent, peer) == facts(agent, never) == []
    assert predict(agent, peer) == predict(agent, never)
    assert context(gateway.member, peer) == before
    done(gateway.member.put(path(peer, "/pause"), {"reading": False, "learning": False}), 200)
    assert context(agent, peer) == before


def test_a_pause_ends_at_its_exact_moment(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    pause = {"reading": True, "learning": True, "until": "2026-03-04T11:00:00Z"}
    done(gateway.member.put(path(peer, "/pause"), pause), 200)
    gateway.clock.advance(timedelta(hours=1) - timedelta(microseconds=1))
    learn(agent, peer, 1)
    assert (context(agent, peer), done(gateway.member.get(path(peer, "/pause")), 200)) == (EMPTY, {"pause": pause})
    gateway.clock.advance(timedelta(microseconds=1))
    assert context(agent, peer)["facts_available"] == 1
    learn(agent, peer, 1)
    assert facts(agent, peer)[0]["fact_value"]["observations"] == 4
    assert done(gateway.member.get(path(peer, "/pause")), 200) == {"pause": {"reading": False, "learning": False, "until": None}}


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("reading", {"learning": True}),
        ("reading", {"reading": "true", "learning": True}),
        ("learning", {"reading": True}),
        ("until", {"reading": True, "learning": True, "until": "2026-03-04T10:00:00Z"}),
        ("until", {"reading": True, "learning": True, "until": "31/01/2030"}),
        ("untill", {"reading": True, "learning": True, "untill": None}),
    ],
)
def test_a_pause_that_cannot_be_read_is_refused(gateway: Gateway, field: str, body: object) -> None:
    peer = gateway.peer()
    refused = gateway.member.put(path(peer, "/pause"), body)
    assert (refused.status_code, f"`{field}`" in refused.json()["detail"]) == (400, True)


# -- preview


def test_a_preview_is_the_bytes_that_the_agent_gets(gateway: Gateway) -> None:
    agent, other = gateway.agent("a"), gateway.agent("b")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    learn(agent, peer, 4, payload={"recipient": "c@b.co"})
    whole = context(agent, peer)
    shown = done(gateway.member.get(path(peer, "/preview"), agent_id=agent.id, budget=200), 200)
    same = context(agent, peer, budget=200)
    assert shown == {
        "agent_id": agent.id,
        "allowed": True,
        "context": same["context"],
        "characters": same["characters"],
        "budget": 200,
        "cut": [{"fact_key": KEY, "reason": "budget"}],
    }
    assert done(gateway.member.get(path(peer, "/preview"), agent_id=agent.id), 200)["context"] == whole["context"]
    nothing = {"context": "", "characters": 0, "budget": 2000, "cut": []}
    assert done(gateway.member.get(path(peer, "/preview"), agent_id=other.id), 200) == {
        "agent_id": other.id,
        "allowed": False,
        **nothing,
    }
    done(gateway.member.put(path(peer, "/pause"), {"reading": True, "learning": False}), 200)
    assert done(gateway.member.get(path(peer, "/preview"), agent_id=agent.id), 200) == {
        "agent_id": agent.id,
        "allowed": True,
        **nothing,
    }


def test_a_preview_needs_an_agent_of_the_organisation(gateway: Gateway) -> None:
    peer, foreign = gateway.peer(), gateway.agent("f", by=gateway.other_owner)
    for agent_id in (None, "x", foreign.id):
        assert gateway.member.get(path(peer, "/preview"), agent_id=agent_id).status_code == 400
    assert foreign.get(path(peer, "/preview"), agent_id=foreign.id).status_code == 404


# -- take everything along, be erased


def full(gateway: Gateway) -> tuple[Any, dict[str, Any]]:
    """A peer with a row of every shape."""
    agent, removed = gateway.agent("a"), gateway.agent("b")
    peer = gateway.peer(observers=[agent, removed])
    done(gateway.member.put(path(peer, "/observers"), {"observers": [{"agent_id": agent.id}]}), 200)
    learn(agent, peer, 3)
    [first, *_] = learn(agent, peer, 3, payload=SMALL)
    done(gateway.member.delete(path(peer, f"/events/{first}")), 204)
    learn(agent, peer, 1, "rejected", payload=SMALL)
    learn(agent, peer, 3, payload={"recipient": "gone@b.co"})
    gone = fact_path(peer, "approval_tendency:refund.create|none|new|gone@b.co")
    done(gateway.member.delete(gone, suppress="true"), 200)
    done(gateway.member.patch(path(peer, "/facts"), {"fact_key": KEY, "fact_value": {"text": "Ask me."}}), 200)
    done(gateway.member.post(fact_path(peer, rest="/dispute"), {"reason": "because"}), 200)
    done(agent.post(path(peer, "/events"), {"event_type": "message", "content": {"text": "hello", "n": 1.50}}), 201)
    return agent, peer


def test_an_export_holds_the_rows_that_erasure_deletes(gateway: Gateway) -> None:
    _, peer = full(gateway)
    exported = done(gateway.member.request("GET", path(peer, "/export"), headers=proof(gateway.member)), 200)
    counts = {
        table: rows(gateway, f"SELECT count(*) FROM {table} WHERE peer_id = $1", peer["id"])[0][0] for table in held(gateway)
    }
    why = [entry for fact in exported["facts"] for entry in fact["why_we_believe_this"]]
    assert counts == {
        "events": len(exported["raw_observations"]),
        "facts": len(exported["facts"]),
        "provenance": len([entry for entry in why if entry["type"] != "event"]),
        "suppressions": len(exported["suppressions"]),
        "observers": len(exported["observers"]),
        "removed_observers": len(exported["removed_observers"]),
        "pending_buckets": len(exported["pending_derivations"]),
    }
    assert 0 not in {name: count for name, count in counts.items() if name != "pending_buckets"}.values()
    erased = done(gateway.member.delete(path(peer, "/data"), proof(gateway.member)), 200)
    assert erased == {
        "deleted": True,
        "facts_deleted": len(exported["facts"]),
        "observations_deleted": len(exported["raw_observations"]),
    }


def held(gateway: Gateway) -> list[str]:
    """The tables with a column that says of whom a row is."""
    sql = "SELECT table_name FROM information_schema.columns WHERE column_name = 'peer_id' ORDER BY table_name"
    return [name for (name,) in rows(gateway, sql)]


def test_every_table_with_rows_of_a_person_is_in_the_map_of_erasure(gateway: Gateway) -> None:
    from gateway.store.erasure import ERASED

    assert sorted(ERASED) == sorted([*held(gateway), "peers"])


def test_after_an_erasure_nothing_of_the_person_is_left(gateway: Gateway) -> None:
    agent, peer = full(gateway)
    context(agent, peer)
    done(gateway.member.delete(path(peer, "/data"), proof(gateway.member)), 200)
    left = {table: rows(gateway, f"SELECT count(*) FROM {table} WHERE peer_id = $1", peer["id"])[0][0] for table in held(gateway)}
    assert set(left.values()) == {0}
    assert rows(gateway, "SELECT id FROM peers WHERE id = $1", peer["id"]) == []
    assert rows(gateway, "SELECT hash FROM slices WHERE strpos(body, $1) > 0", peer["id"]) == []
    assert [client.get(path(peer, "/context")).status_code for client in (agent, gateway.member, gateway.owner)] == [404] * 3
    assert agent.get(f"/v1/agents/{agent.id}/peer-context").status_code == 404
    [audit] = rows(gateway, "SELECT resource_id, details FROM log WHERE action = 'peer.deleted'")
    assert audit[0] == peer["id"]
    assert peer["peer_ref"] not in audit[1]
    again = gateway.peer(observers=[agent])
    assert again["id"] != peer["id"]
    assert context(agent, again) == EMPTY


def test_the_log_still_verifies_after_an_erasure(gateway: Gateway) -> None:
    _, peer = full(gateway)
    done(gateway.member.delete(path(peer, "/data"), proof(gateway.member)), 200)
    assert done(gateway.owner.get("/v1/audit/verify"), 200)["chain_valid"] is True


def test_export_and_erasure_want_to_know_who_asks(gateway: Gateway) -> None:
    agent, peer = full(gateway)
    for method, rest in (("GET", "/export"), ("DELETE", "/data")):
        for headers in ({}, {"X-Auth-Confirm": "wrong"}, {"X-Auth-Confirm": "rat_wrong"}):
            refused = gateway.member.request(method, path(peer, rest), headers=headers)
            assert (refused.status_code, refused.json()["title"]) == (403, "step-up required")
        for client in (agent, gateway.security, gateway.auditor):
            assert client.request(method, path(peer, rest)).json()["title"] == "forbidden"
    assert len(facts(gateway.member, peer)) == 1


def test_an_owner_exports_and_erases_with_their_own_password(gateway: Gateway) -> None:
    _, peer = full(gateway)
    done(gateway.owner.request("GET", path(peer, "/export"), headers=proof(gateway.owner)), 200)
    assert gateway.owner.delete(path(peer, "/data"), proof(gateway.member)).status_code == 403
    done(gateway.owner.delete(path(peer, "/data"), proof(gateway.owner)), 200)


def test_an_event_for_a_peer_that_is_gone_is_for_nobody(gateway: Gateway) -> None:
    agent, peer = full(gateway)
    done(gateway.member.delete(path(peer, "/data"), proof(gateway.member)), 200)
    assert post(agent, peer).status_code == 404


def test_the_record_of_asking_every_time_names_the_agent(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3, payload=SMALL)
    done(gateway.member.post(fact_path(peer, SMALL_KEY, "/ask-me"), {"agent_id": agent.id}), 200)
    [(details,)] = rows(gateway, "SELECT details FROM log WHERE action = 'peer.ask_me'")
    assert json.loads(details)["agent_id"] == agent.id


def test_an_export_is_read_beside_the_writer_and_recorded_once_with_its_answer(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, peer = full(gateway)
    threads: list[str] = []
    export = erasure.export_person

    def watched(held: Rows, grant: Grant[Peer]) -> erasure.PersonData:
        threads.append(threading.current_thread().name)
        # Something else that the decision rests on changes meanwhile, once.
        if len(threads) == 1:
            change = Unit(lambda tx: tx.after_commit(lambda: tx.state.put_peer(replace(grant.target, archived=True))), solo=True)
            gateway.services.database.write(change).result()
        return export(held, grant)

    monkeypatch.setattr(erasure, "export_person", watched)
    exported = done(gateway.member.request("GET", path(peer, "/export"), headers=proof(gateway.member)), 200)
    assert [name[:12] for name in threads] == ["store-reader"] * 2
    [(details,)] = rows(gateway, "SELECT details FROM log WHERE action = 'peer.exported'")
    counted = json.loads(details)
    assert (counted["facts"], counted["observations"]) == (len(exported["facts"]), len(exported["raw_observations"]))
    [(first,), (last,)] = rows(gateway, "SELECT id FROM log WHERE action = 'peer.export' ORDER BY seq")
    assert (counted["decision_id"] == last, first != last) == (True, True)
