"""What a person sees of those who observe them."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

from gateway.store.reads import KINDS
from tests.builders import Gateway, done
from tests.operations.peer_acts import KEY, context, fact_path, learn, path, predict, proof

AT = "2026-03-04T10:00:00Z"
#: The owner opened the peer with observers, which the person sees too.
LISTED = (None, "observers", "allow", None, 0)


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
        ("a", "preview", "allow", None, 1),
        ("b", "context", "deny", "forbidden", 0),
        ("a", "predict", "allow", None, 1),
        ("a", "peer", "allow", None, 1),
        ("a", "context", "allow", None, 1),
        ("a", "event", "allow", None, 0),
        ("a", "event", "allow", None, 0),
        ("a", "event", "allow", None, 0),
        LISTED,
    ]


def test_a_read_has_the_documented_shape_and_its_id_finds_the_decision(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    done(agent.get(f"/v1/agents/{agent.id}/peer-context"), 200)
    [read] = reads(gateway, agent_id=agent.id)
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


def test_a_preview_names_the_human_who_looked_the_agent_and_what_was_served(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    done(gateway.admin.get(path(peer, "/preview"), agent_id=agent.id), 200)
    assert gateway.security.get(path(peer, "/preview"), agent_id=agent.id).status_code == 403
    denied, previewed = reads(gateway)[:2]
    seen = [
        (read["user_id"], read["agent_id"], read["kind"], read["decision"], read["facts_served"]) for read in (denied, previewed)
    ]
    assert seen == [
        (gateway.security.id, None, "preview", "deny", 0),
        (gateway.admin.id, agent.id, "preview", "allow", 1),
    ]
    assert previewed["id"] in [read["id"] for read in reads(gateway, agent_id=agent.id)]
    assert done(gateway.member.get("/v1/me/readers"), 200)["readers"][0]["reads"] == 3


def test_every_use_of_the_persons_rights_by_another_is_shown_to_the_person(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent], by=gateway.member)
    ids = learn(agent, peer, 3)
    admin, before = gateway.admin, len(reads(gateway))
    done(admin.get(fact_path(peer)), 200)
    done(admin.get(path(peer, "/observers")), 200)
    done(admin.put(path(peer, "/observers"), {"observers": [{"agent_id": agent.id}]}), 200)
    done(admin.get(path(peer, "/suppressions")), 200)
    assert admin.delete(path(peer, "/suppressions/x")).status_code == 404
    done(admin.get(path(peer, "/pause")), 200)
    done(admin.put(path(peer, "/pause"), {"reading": False, "learning": False}), 200)
    done(admin.post(fact_path(peer, rest="/dispute")), 200)
    done(admin.delete(fact_path(peer, rest="/dispute")), 200)
    done(admin.post(fact_path(peer, rest="/ask-me"), {"agent_id": agent.id}), 200)
    done(admin.patch(path(peer, "/facts"), {"fact_key": KEY, "fact_value": {}}), 200)
    done(admin.delete(path(peer, f"/events/{ids[0]}")), 204)
    done(admin.request("GET", path(peer, "/export"), headers=proof(admin)), 200)
    done(admin.delete(fact_path(peer)), 200)
    shown = reads(gateway)[: -before or None]
    assert {read["user_id"] for read in shown} == {admin.id}
    assert [(read["kind"], read["facts_served"]) for read in reversed(shown)] == [
        ("fact", 1),
        ("observers", 0),
        ("observers", 0),
        ("suppressions", 0),
        ("suppressions", 0),
        ("pause", 0),
        ("pause", 0),
        ("dispute", 1),
        ("dispute", 1),
        ("ask_me", 0),
        ("correction", 0),
        ("deletion", 0),
        ("export", 1),
        ("deletion", 0),
    ]


def test_no_action_on_a_peer_is_left_out_of_what_the_person_sees() -> None:
    schema = (Path(__file__).parents[2] / "schema.cedarschema").read_text("utf-8")
    actions = set(re.findall(r'action "(peer\.\w+)"', schema))
    about_no_peer = {"peer.list", "peer.list_own"}
    assert actions - about_no_peer - set(KINDS) == {"peer.create", "peer.see_content"}


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
    assert ([read["agent_name"] for read in page["reads"]], page["total"]) == (["b"], 4)
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


def test_the_owner_who_asks_an_agent_to_ask_is_a_read_without_an_agent(gateway: Gateway) -> None:
    a = gateway.agent("a")
    peer = gateway.peer(observers=[a])
    learn(a, peer, 3)
    done(gateway.owner.post(fact_path(peer, rest="/ask-me"), {"agent_id": a.id}), 200)
    [asked] = [read for read in reads(gateway) if read["kind"] == "ask_me"]
    assert (asked["user_id"], asked["agent_id"]) == (gateway.owner.id, None)


def test_a_guess_from_another_organisation_is_not_among_the_reads(gateway: Gateway) -> None:
    peer = gateway.peer()
    before = done(gateway.member.get("/v1/me/reads"), 200)["total"]
    stranger = gateway.agent(by=gateway.other_owner)
    for client in (gateway.other_owner, stranger):
        assert client.get(f"/v1/peers/{peer['id']}/context").status_code == 404
    assert done(gateway.member.get("/v1/me/reads"), 200)["total"] == before
