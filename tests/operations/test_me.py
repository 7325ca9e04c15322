"""What a person sees of those who observe them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.builders import Gateway, done
from tests.operations.peer_acts import context, learn, path, predict

AT = "2026-03-04T10:00:00Z"


def reads(gateway: Gateway, **query: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done(gateway.member.get("/v1/me/reads", **query), 200)["reads"]
    return found


def brief(found: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return [(read["agent_name"], read["kind"], read["decision"], read["deny_kind"], read["facts_served"]) for read in found]


def test_each_kind_of_read_is_listed_newest_first(gateway: Gateway) -> None:
    a, b = gateway.agent("a"), gateway.agent("b")
    peer = gateway.peer(observers=[a])
    learn(a, peer, 3)
    context(a, peer)
    a.get(path(peer))
    predict(a, peer)
    b.get(path(peer, "/context"))
    done(gateway.member.get(path(peer, "/preview"), agent_id=a.id), 200)
    assert brief(reads(gateway)) == [
        ("a", "preview", "allow", None, 0),
        ("b", "context", "deny", "forbidden", 0),
        ("a", "predict", "allow", None, 1),
        ("a", "peer", "allow", None, 1),
        ("a", "context", "allow", None, 1),
        ("a", "event", "allow", None, 0),
        ("a", "event", "allow", None, 0),
        ("a", "event", "allow", None, 0),
    ]


def test_a_read_has_the_documented_shape_and_its_id_finds_the_decision(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    done(agent.get(f"/v1/agents/{agent.id}/peer-context"), 200)
    [read] = reads(gateway)
    assert read == {
        "id": read["decision_id"],
        "at": AT,
        "peer_id": peer["id"],
        "agent_id": agent.id,
        "agent_name": "a",
        "user_id": None,
        "kind": "context",
        "decision": "allow",
        "deny_kind": None,
        "facts_served": 0,
        "decision_id": read["id"],
    }
    decision = done(gateway.auditor.get(f"/v1/decisions/{read['id']}"), 200)["decision"]
    assert (decision["action"], decision["resource"]["id"]) == ("peer.read_context", peer["id"])


def test_a_read_during_a_pause_is_listed_as_paused(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    done(gateway.member.put(path(peer, "/pause"), {"reading": True, "learning": False}), 200)
    context(agent, peer)
    predict(agent, peer)
    assert brief(reads(gateway))[:2] == [("a", "predict", "deny", "paused", 0), ("a", "context", "deny", "paused", 0)]


def test_the_acts_of_those_who_act_for_the_person_are_shown_to_the_person(gateway: Gateway) -> None:
    peer = gateway.peer()
    context(gateway.owner, peer)
    context(gateway.member, peer)
    [read] = reads(gateway)
    assert (read["user_id"], read["agent_id"], read["kind"]) == (gateway.owner.id, None, "context")


def test_reads_are_filtered_and_paged(gateway: Gateway) -> None:
    a, b = gateway.agent("a"), gateway.agent("b")
    peer = gateway.peer(observers=[a, b])
    for agent in (a, b, a):
        context(agent, peer)
        gateway.clock.advance(timedelta(minutes=1))
    assert [read["agent_name"] for read in reads(gateway, agent_id=a.id)] == ["a", "a"]
    assert [read["at"] for read in reads(gateway, **{"from": "2026-03-04T10:01:00Z", "to": "2026-03-04T10:02:00Z"})] == [
        "2026-03-04T10:01:00Z"
    ]
    page = done(gateway.member.get("/v1/me/reads", limit=1, offset=1), 200)
    assert ([read["agent_name"] for read in page["reads"]], page["total"]) == (["b"], 3)
    for query in ({"from": "yesterday"}, {"limit": 0}, {"agent_id": "x"}, {"agent": a.id}):
        assert gateway.member.get("/v1/me/reads", **query).status_code == 400


def test_readers_are_those_on_the_list_now_with_their_counts(gateway: Gateway) -> None:
    a, b = gateway.agent("a"), gateway.agent("b")
    peer = gateway.peer(observers=[a])
    context(a, peer)
    gateway.clock.advance(timedelta(days=31))
    context(a, peer)
    done(gateway.member.put(path(peer, "/pause"), {"reading": True, "learning": False}), 200)
    context(a, peer)
    lease = {"agent_id": b.id, "observer_expires_at": "2026-04-05T10:00:00Z"}
    done(gateway.member.put(path(peer, "/observers"), {"observers": [{"agent_id": a.id}, lease]}), 200)
    first = {"peer_id": peer["id"], "agent_id": a.id, "agent_name": "a", "added_by": gateway.owner.id, "added_at": AT}
    second = {
        "peer_id": peer["id"],
        "agent_id": b.id,
        "agent_name": "b",
        "added_by": gateway.member.id,
        "added_at": "2026-04-04T10:00:00Z",
    }
    assert done(gateway.member.get("/v1/me/readers"), 200) == {
        "readers": [
            {**first, "observer_expires_at": None, "last_read_at": "2026-04-04T10:00:00Z", "reads": 1, "denials": 1},
            {**second, "observer_expires_at": "2026-04-05T10:00:00Z", "last_read_at": None, "reads": 0, "denials": 0},
        ]
    }
    gateway.clock.advance(timedelta(days=1))
    assert [reader["agent_id"] for reader in done(gateway.member.get("/v1/me/readers"), 200)["readers"]] == [a.id]


def test_nobody_sees_the_reads_of_another(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    context(agent, peer)
    for client in (gateway.owner, gateway.auditor, gateway.other_owner):
        assert done(client.get("/v1/me/reads"), 200) == {"reads": [], "total": 0}
        assert done(client.get("/v1/me/readers"), 200) == {"readers": []}
    assert agent.get("/v1/me/reads").status_code == 403
    assert agent.get("/v1/me/readers").status_code == 403
