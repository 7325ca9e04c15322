"""The observer list: nothing else lets an agent in."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from gateway import limits
from tests.builders import START, Client, Gateway, done
from tests.operations.peer_acts import context, learn, path

SOON = "2026-03-04T11:00:00Z"


def routes(agent: Client, peer: dict[str, str]) -> list[int]:
    """The status of each thing that an observer may do."""
    return [
        agent.get(path(peer)).status_code,
        agent.get(path(peer, "/context")).status_code,
        agent.post(path(peer, "/events"), {"event_type": "message", "content": {}}).status_code,
        agent.post(path(peer, "/predict-approval"), {"action_type": "a.b", "effective_risk_tier": 1}).status_code,
    ]


def test_an_empty_list_means_nobody(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[])
    assert routes(agent, peer) == [403, 403, 403, 403]


def test_a_removed_observer_reads_nothing_afterwards(gateway: Gateway) -> None:
    a, b = gateway.agent("a"), gateway.agent("b")
    peer = gateway.peer(observers=[a, b])
    learn(a, peer, 3)
    assert routes(a, peer) == [200, 200, 201, 200]
    done(gateway.member.put(path(peer, "/observers"), {"observers": [{"agent_id": b.id}]}), 200)
    assert routes(a, peer) == [403, 403, 403, 403]
    assert routes(b, peer) == [200, 200, 201, 200]
    assert a.get(f"/v1/agents/{a.id}/peer-context").status_code == 404


def test_a_lease_ends_at_its_exact_moment(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    lease = [{"agent_id": agent.id, "observer_expires_at": SOON}]
    done(gateway.member.put(path(peer, "/observers"), {"observers": lease}), 200)
    gateway.clock.advance(timedelta(hours=1) - timedelta(microseconds=1))
    assert routes(agent, peer) == [200, 200, 201, 200]
    gateway.clock.advance(timedelta(microseconds=1))
    assert routes(agent, peer) == [403, 403, 403, 403]
    assert done(gateway.member.get(path(peer, "/observers")), 200)["observers"] == []
    assert done(gateway.member.get(path(peer)), 200)["peer"]["observer_count"] == 0


def test_replacing_the_list_keeps_who_added_a_live_entry_and_when(gateway: Gateway) -> None:
    a, b = gateway.agent("a"), gateway.agent("b")
    peer = gateway.peer(observers=[a])
    gateway.clock.advance(timedelta(minutes=1))
    wanted = {"observers": [{"agent_id": b.id}, {"agent_id": a.id, "observer_expires_at": SOON}]}
    answer = done(gateway.member.put(path(peer, "/observers"), wanted), 200)
    first = {
        "agent_id": a.id,
        "agent_name": "a",
        "added_by": gateway.owner.id,
        "added_at": "2026-03-04T10:00:00Z",
        "observer_expires_at": SOON,
    }
    second = {
        "agent_id": b.id,
        "agent_name": "b",
        "added_by": gateway.member.id,
        "added_at": "2026-03-04T10:01:00Z",
        "observer_expires_at": None,
    }
    assert answer == {"peer": {**peer, "observer_count": 2}, "observers": [first, second]}
    assert done(gateway.owner.get(path(peer, "/observers")), 200) == answer


def test_creating_again_leaves_a_lease_as_it_is_and_lists_an_ended_one_anew_without_an_end(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    lease = [{"agent_id": agent.id, "observer_expires_at": SOON}]
    done(gateway.member.put(path(peer, "/observers"), {"observers": lease}), 200)

    def listed() -> list[tuple[str, str | None]]:
        gateway.peer(observers=[agent])
        found = done(gateway.member.get(path(peer, "/observers")), 200)["observers"]
        return [(entry["added_at"], entry["observer_expires_at"]) for entry in found]

    assert listed() == [("2026-03-04T10:00:00Z", SOON)]
    gateway.clock.now = START + timedelta(hours=1)
    assert listed() == [(SOON, None)]
    assert routes(agent, peer) == [200, 200, 201, 200]


def test_a_removal_is_remembered_until_a_human_lists_the_agent_again(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    done(gateway.member.put(path(peer, "/observers"), {"observers": []}), 200)
    assert gateway.services.state.removed_observers == {(peer["id"], agent.id)}
    gateway.peer(observers=[agent])
    assert gateway.services.state.removed_observers == set()
    assert gateway.services.database.read_sync(lambda rows: rows.all("SELECT * FROM removed_observers")) == []


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("observers", {}),
        ("observers", {"observers": None}),
        ("observers", {"observers": "nobody"}),
        ("observers[0]", {"observers": ["x"]}),
        ("observers[0].agent_id", {"observers": [{}]}),
        ("observers[0].observer_expires_at", {"observers": [{"agent_id": "{a}", "observer_expires_at": "2026-03-04T10:00:00Z"}]}),
        ("observers[0].observer_expires_at", {"observers": [{"agent_id": "{a}", "observer_expires_at": "tomorrow"}]}),
        ("observers[0].observer_expires_at", {"observers": [{"agent_id": "{a}", "observer_expires_at": "2026-03-05T10:00:00"}]}),
        ("observers[0].role", {"observers": [{"agent_id": "{a}", "role": "x"}]}),
        ("observers[1].agent_id", {"observers": [{"agent_id": "{a}"}, {"agent_id": "{a}"}]}),
        ("agents", {"observers": [], "agents": []}),
    ],
)
def test_a_list_that_cannot_be_read_changes_nothing(gateway: Gateway, field: str, body: object) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    filled = json.loads(json.dumps(body).replace("{a}", agent.id))
    refused = gateway.member.put(path(peer, "/observers"), filled)
    assert (refused.status_code, f"`{field}`" in refused.json()["detail"]) == (400, True)
    assert len(done(gateway.member.get(path(peer, "/observers")), 200)["observers"]) == 1


def test_a_foreign_agent_cannot_be_listed(gateway: Gateway) -> None:
    peer, foreign = gateway.peer(), gateway.agent("f", by=gateway.other_owner)
    unknown = "00000000-0000-4000-8000-000000000000"
    details = []
    for agent_id in (foreign.id, unknown):
        refused = gateway.member.put(path(peer, "/observers"), {"observers": [{"agent_id": agent_id}]})
        assert refused.status_code == 400
        details.append(refused.json()["detail"].replace(agent_id, "-"))
    assert details[0] == details[1]


def test_agents_and_other_members_neither_see_nor_set_the_list(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    for client in (agent, gateway.security, gateway.auditor, gateway.human("member")):
        assert client.get(path(peer, "/observers")).status_code == 403
        assert client.put(path(peer, "/observers"), {"observers": [{"agent_id": agent.id}]}).status_code == 403


def test_the_list_outlives_a_restart(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    peer = gateway.peer(observers=[agent])
    rows = gateway.services.database.read_sync(
        lambda rows: rows.all("SELECT peer_id, agent_id, added_by, expires_at FROM observers")
    )
    assert rows == [(peer["id"], agent.id, gateway.owner.id, None)]
    assert context(agent, peer)["facts_available"] == 0


def test_a_list_of_the_most_agents_there_may_be_is_read_and_one_more_is_refused(gateway: Gateway) -> None:
    peer = gateway.peer()
    ids = [f"00000000-0000-4000-8000-{number:012x}" for number in range(limits.OBSERVERS_PER_CALL + 1)]
    leases = [{"agent_id": agent_id, "observer_expires_at": SOON} for agent_id in ids]
    assert len(json.dumps({"observers": leases})) > 3 * limits.BODY_BYTES
    unknown = gateway.member.put(path(peer, "/observers"), {"observers": leases[:-1]})
    assert (unknown.status_code, "is not an agent" in unknown.json()["detail"]) == (400, True)
    over = gateway.member.put(path(peer, "/observers"), {"observers": leases})
    assert over.json()["detail"] == "`observers` must be a list of at most 10000 entries, got a list"
    body = {"peer_type": "external", "peer_ref": "x", "observer_agent_ids": ids}
    assert len(json.dumps(body)) > limits.BODY_BYTES
    assert gateway.owner.post("/v1/peers", body).json()["detail"] == (
        "`observer_agent_ids` must be a list of at most 10000 entries, got a list"
    )
    assert gateway.member.put(path(peer, "/observers"), {"observers": leases * 3}).status_code == 413
