"""Audit events as they are read, and the check of the chain they stand in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.builders import START, Client, Gateway, done
from tests.operations.asking import stored
from tests.operations.evidence_rows import craft, org_of, tamper

EVENT: dict[str, Any] = {"kind": "audit", "outcome": None, "action": "peer.created", "policies": ()}


def listed(client: Client, **query: object) -> tuple[list[str], int, int]:
    body = done(client.get("/v1/audit/events", **query), 200)
    return [event["id"] for event in body["events"]], body["count"], body["total"]


def verified(client: Client, **query: object) -> dict[str, Any]:
    body: dict[str, Any] = done(client.get("/v1/audit/verify", **query), 200)
    assert body.pop("scheme")["algorithm"] == "SHA-256"
    return body


def stamp(minutes: int) -> str:
    return (START + timedelta(minutes=minutes)).isoformat()


def test_an_event_has_both_pairs_of_names(gateway: Gateway) -> None:
    peer = gateway.peer()
    [event] = done(gateway.owner.get("/v1/audit/events", action="peer.created"), 200)["events"]
    details = {
        "peer_id": peer["id"],
        "decision_id": event["details"]["decision_id"],
        "request_id": event["details"]["request_id"],
    }
    assert event == {
        "id": event["id"],
        "action": "peer.created",
        "actor_id": gateway.owner.id,
        "actor_type": "human",
        "resource_type": "peer",
        "resource_id": peer["id"],
        "org_id": org_of(gateway),
        "details": details,
        "metadata": details,
        "created_at": "2026-03-04T10:00:00Z",
        "timestamp": "2026-03-04T10:00:00Z",
        "seq": event["seq"],
        "hash": event["hash"],
    }
    assert stored(gateway, "SELECT seq, hash FROM log WHERE id = $1", event["id"]) == [(event["seq"], event["hash"])]
    assert done(gateway.auditor.get(f"/v1/decisions/{details['decision_id']}"), 200)["decision"]["action"] == "peer.create"


# -- who


def test_who_sees_every_event_and_who_sees_their_own(gateway: Gateway) -> None:
    agent, other = gateway.agent(), gateway.agent()
    actors = {"agent": agent, "other": other, "member": gateway.member, "owner": gateway.owner}
    ids = {name: craft(gateway, 1, first=n, **EVENT, principal_id=who.id)[0] for n, (name, who) in enumerate(actors.items(), 1)}
    window = {"from": stamp(1), "to": stamp(9)}
    everything = list(ids.values())[::-1]
    for client in (gateway.owner, gateway.admin, gateway.auditor):
        assert listed(client, **window) == (everything, 4, 4)
    assert listed(gateway.security, **window) == ([], 0, 0)
    for name in ("agent", "other", "member"):
        assert listed(actors[name], **window) == ([ids[name]], 1, 1)
        assert listed(actors[name], **window, actor_id=gateway.owner.id) == ([], 0, 0)
        assert listed(actors[name], **window, actor_id=actors[name].id) == ([ids[name]], 1, 1)
    assert listed(gateway.owner, **window, actor_id=agent.id) == ([ids["agent"]], 1, 1)


def test_an_agent_never_sees_a_decision_among_its_events(gateway: Gateway) -> None:
    agent = gateway.agent()
    done(agent.get("/v1/agents/me"), 200)
    assert listed(agent) == ([], 0, 0)


def test_events_of_another_organisation_are_never_listed(gateway: Gateway) -> None:
    craft(gateway, 2, other=True, **EVENT, principal_id=gateway.member.id)
    for client in (gateway.owner, gateway.member):
        assert listed(client, actor_id=gateway.member.id, resource_id="peer") == ([], 0, 0)
    assert listed(gateway.other_owner, actor_id=gateway.member.id)[2] == 2


def test_the_key_of_a_platform_reads_no_events(gateway: Gateway) -> None:
    made = done(gateway.owner.post("/v1/org/platform-apps", {"name": "app", "slug": "app"}), 201)
    app = Client(gateway.http, "", made["api_key"])
    assert [app.get(f"/v1/audit/{path}").status_code for path in ("events", "verify")] == [403, 403]


# -- which


def test_every_filter_narrows(gateway: Gateway) -> None:
    shapes: list[dict[str, Any]] = [{}, {"principal_id": "other"}, {"action": "peer.deleted"}, {"resource_id": "elsewhere"}]
    ids = [craft(gateway, 1, first=n + 1, **{**EVENT, **shape})[0] for n, shape in enumerate(shapes)]
    cases: list[tuple[dict[str, object], list[int]]] = [
        ({}, [0, 1, 2, 3]),
        ({"actor_id": "crafted"}, [0, 2, 3]),
        ({"actor_id": "craft_d"}, []),
        ({"action": "peer.created"}, [0, 1, 3]),
        ({"resource_id": "elsewhere"}, [3]),
        ({"from": stamp(2)}, [1, 2, 3]),
        ({"to": stamp(2)}, [0]),
        ({"actor_id": "crafted", "action": "peer.deleted"}, [2]),
        ({"resource_type": "nothing", "unknown": "x"}, [0, 1, 2, 3]),
    ]
    for query, positions in cases:
        expected = [ids[position] for position in reversed(positions)]
        assert listed(gateway.owner, **{"from": stamp(1), "to": stamp(9), **query}) == (expected, len(expected), len(expected)), (
            query
        )


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "1001"}, {"offset": "x"}, {"from": "yesterday"}, {"actor_id": "x" * 257}], ids=str
)
def test_a_filter_that_cannot_be_read_is_refused_by_name(gateway: Gateway, query: dict[str, object]) -> None:
    answer = gateway.owner.get("/v1/audit/events", **query)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, list(query))


@pytest.mark.parametrize("count", [0, 1, 100, 101, 1000, 1001])
def test_every_page_is_reached_and_the_total_is_the_whole(gateway: Gateway, count: int) -> None:
    ids = craft(gateway, count, **EVENT)[::-1]
    assert listed(gateway.owner, actor_id="crafted") == (ids[:100], min(count, 100), count)
    assert listed(gateway.owner, actor_id="crafted", limit=1000) == (ids[:1000], min(count, 1000), count)
    found: list[str] = []
    while page := listed(gateway.owner, actor_id="crafted", limit=334, offset=len(found))[0]:
        found += page
    assert found == ids


# -- the chain


def test_a_whole_chain_is_valid_and_counts_the_rows_of_the_organisation(gateway: Gateway) -> None:
    craft(gateway, 5, other=True)
    own = gateway.services.database.read_sync(
        lambda rows: rows.value("SELECT count(*) FROM log WHERE org_id = $1", org_of(gateway))
    )
    for client in (gateway.owner, gateway.admin, gateway.security, gateway.auditor):
        answer = verified(client)
        assert answer == {"chain_valid": True, "events_verified": own, "events_checked": own, "broken_at_event_id": None}
        own += 1  # the check itself
    assert [client.get("/v1/audit/verify").status_code for client in (gateway.member, gateway.agent())] == [403, 403]


@pytest.mark.parametrize(
    "change",
    ["action = 'forged'", "details = '{}'", "org_id = 'x'", "outcome = 'deny'", '"at" = "at" + INTERVAL 1 SECOND', "hash = 'x'"],
)
def test_a_row_that_was_changed_is_named(gateway: Gateway, change: str) -> None:
    ids = craft(gateway, 3, details={"served": 1})
    tamper(gateway, ids[1], change)
    answer = verified(gateway.auditor)
    assert answer["chain_valid"] is False
    assert answer["broken_at_event_id"] == (None if change.startswith("org_id") else ids[1])
    assert answer["events_checked"] == answer["events_verified"] + (0 if change.startswith("org_id") else 1)


def test_a_row_that_was_removed_shows_at_the_next_one(gateway: Gateway) -> None:
    ids = craft(gateway, 3)
    gateway.services.database.exclusive(lambda connection: connection.execute(f"DELETE FROM log WHERE id = '{ids[1]}'")).result()
    answer = verified(gateway.auditor)
    assert (answer["chain_valid"], answer["broken_at_event_id"]) == (False, ids[2])


def test_a_broken_row_of_another_organisation_breaks_the_chain_without_being_named(gateway: Gateway) -> None:
    ids = craft(gateway, 1, other=True)
    tamper(gateway, ids[0])
    answer = verified(gateway.auditor)
    assert (answer["chain_valid"], answer["broken_at_event_id"]) == (False, None)
    assert answer["events_checked"] == answer["events_verified"]
    assert verified(gateway.other_owner)["broken_at_event_id"] == ids[0]


def test_a_window_is_verified_from_its_first_row_to_its_last(gateway: Gateway) -> None:
    ids = craft(gateway, 10)
    gateway.clock.advance(timedelta(hours=1))
    assert verified(gateway.auditor, **{"from": stamp(3), "to": stamp(6)})["events_verified"] == 3
    assert verified(gateway.auditor, **{"from": stamp(3), "to": stamp(3)}) == {
        "chain_valid": True,
        "events_verified": 0,
        "events_checked": 0,
        "broken_at_event_id": None,
    }
    assert verified(gateway.auditor, **{"from": "2031-01-01T00:00:00Z"})["events_checked"] == 0
    assert verified(gateway.auditor, to="2001-01-01T00:00:00Z")["events_checked"] == 0
    assert verified(gateway.auditor, **{"from": stamp(1), "limit": 4})["events_verified"] == 4
    tamper(gateway, ids[5])
    assert verified(gateway.auditor, **{"from": stamp(1), "to": stamp(6)})["chain_valid"]
    assert verified(gateway.auditor, **{"from": stamp(1), "limit": 6})["broken_at_event_id"] == ids[5]


def test_without_a_start_the_newest_rows_are_verified(gateway: Gateway) -> None:
    ids = craft(gateway, 10)
    tamper(gateway, ids[0])
    assert verified(gateway.auditor, limit=5)["chain_valid"]
    assert not verified(gateway.auditor, limit=100)["chain_valid"]


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "10001"}, {"from": "x"}, {"to": "2026-03-04T10:00:00"}], ids=str)
def test_a_window_that_cannot_be_read_is_refused_by_name(gateway: Gateway, query: dict[str, object]) -> None:
    answer = gateway.auditor.get("/v1/audit/verify", **query)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, list(query))


def test_an_agent_is_not_told_whether_its_events_were_learned_from(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    path = f"/v1/peers/{peer['id']}"
    done(gateway.member.put(f"{path}/pause", {"reading": False, "learning": True}), 200)
    content = {"action": "ticket.close", "decision": "approved"}
    done(agent.post(f"{path}/events", {"event_type": "approval", "content": content}), 201)
    [event] = done(agent.get("/v1/audit/events", action="peer.event_recorded"), 200)["events"]
    assert event["details"].keys() == {"peer_id", "event_id", "event_type", "decision_id", "request_id"}
