"""Remote connections: made, listed, suspended, resumed, ended, and shown to nobody else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.builders import Client, Gateway, Response, done
from tests.operations.asking import ABSENT, actions, restart, stored
from tests.operations.connecting import DID, connect, converse
from tests.operations.memory_acts import shared

UNKNOWN = {"X-Request-Id": "the-same"}


def status_of(made: Response) -> tuple[int, bytes]:
    return made.status_code, made.content


def unauthenticated(gateway: Gateway) -> Response:
    return Client(gateway.http, "", "pgc_unknown").request("GET", "/v1/connections/conn-1", None, UNKNOWN)


def test_a_connection_is_made_with_a_credential_that_is_shown_once(gateway: Gateway) -> None:
    agent = gateway.agent()
    body = {"agent_id": agent.id, "peer_did": DID, "id": "conn-1", "name": "the partner"}
    made = done(gateway.owner.post("/v1/connections", body), 201)
    connection = made["connection"]
    assert connection == {
        "id": "conn-1",
        "agent_id": agent.id,
        "peer_did": DID,
        "name": "the partner",
        "status": "active",
        "replaces": None,
        "created_at": "2026-03-04T10:00:00Z",
    }
    assert made["credential"].startswith("pgc_")
    assert done(gateway.owner.get("/v1/connections/conn-1"), 200) == {"connection": connection}
    assert done(gateway.admin.get("/v1/connections", agent_id=agent.id), 200) == {"connections": [connection]}
    assert made["credential"] not in str(stored(gateway, "SELECT * FROM credentials"))


def test_a_connection_outlives_a_restart(gateway: Gateway) -> None:
    agent = gateway.agent()
    made = connect(gateway, agent, "conn-1")
    before = done(gateway.owner.get("/v1/connections/conn-1"), 200)
    restart(gateway)
    assert done(gateway.owner.get("/v1/connections/conn-1"), 200) == before
    assert done(Client(gateway.http, made.id, made.key).get("/v1/connections/conn-1"), 200) == before


def test_without_an_id_a_connection_gets_one(gateway: Gateway) -> None:
    agent = gateway.agent()
    first, second = connect(gateway, agent), connect(gateway, agent)
    assert first.id != second.id
    assert [c["id"] for c in done(gateway.owner.get("/v1/connections", agent_id=agent.id), 200)["connections"]] == sorted(
        [first.id, second.id]
    )


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"agent_id": None}, "agent_id"),
        ({"agent_id": "x"}, "agent_id"),
        ({"peer_did": None}, "peer_did"),
        ({"peer_did": "peer.example"}, "peer_did"),
        ({"peer_did": "did:web:"}, "peer_did"),
        ({"peer_did": "did:WEB:a"}, "peer_did"),
        ({"peer_did": "did:web:\u00e9.example"}, "peer_did"),
        ({"peer_did": "did:web:a b"}, "peer_did"),
        ({"peer_did": "did:web:" + "a" * 249}, "peer_did"),
        ({"id": None}, "id"),
        ({"id": "abc"}, "id"),
        ({"id": "-abcd"}, "id"),
        ({"id": "a" * 65}, "id"),
        ({"id": "a/b/c"}, "id"),
        ({"id": "conn-1\n"}, "id"),
        ({"id": 10_000}, "id"),
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": "n" * 101}, "name"),
        ({"replaces": None}, "replaces"),
        ({"replaces": "a"}, "replaces"),
        ({"status": "active"}, "status"),
    ],
)
def test_a_malformed_connection_is_400(gateway: Gateway, changes: dict[str, object], field: str) -> None:
    body = {"agent_id": gateway.agent().id, "peer_did": DID, **changes}
    refused = gateway.owner.post("/v1/connections", body)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


def test_a_parameter_that_is_not_read_or_given_twice_is_400(gateway: Gateway) -> None:
    agent = gateway.agent()
    connect(gateway, agent, "conn-1")
    for path in ("/v1/connections/conn-1/suspend", "/v1/connections/conn-1/credential", f"/v1/agents/{agent.id}/bridge-token"):
        assert gateway.owner.request("POST", path, {}, a=1).status_code == 400
    assert gateway.owner.get("/v1/connections/conn-1", a=1).status_code == 400
    assert gateway.owner.get("/v1/connections", agent_id=[agent.id, agent.id]).status_code == 400


def test_an_id_is_taken_in_one_organisation_and_free_in_the_next(gateway: Gateway) -> None:
    agent, foreign = gateway.agent(), gateway.agent(by=gateway.other_owner)
    connect(gateway, agent, "conn-1")
    body = {"agent_id": gateway.agent("second").id, "peer_did": DID, "id": "conn-1"}
    assert gateway.owner.post("/v1/connections", body).status_code == 409
    connect(gateway, foreign, "conn-1", by=gateway.other_owner)


def test_a_revoked_connection_keeps_its_id(gateway: Gateway) -> None:
    agent = gateway.agent()
    connect(gateway, agent, "conn-1")
    done(gateway.owner.post("/v1/connections/conn-1/revoke"), 200)
    assert gateway.owner.post("/v1/connections", {"agent_id": agent.id, "peer_did": DID, "id": "conn-1"}).status_code == 409


def test_of_two_that_want_one_id_at_once_one_gets_it(gateway: Gateway) -> None:
    body = {"agent_id": gateway.agent().id, "peer_did": DID, "id": "conn-1"}
    with ThreadPoolExecutor(4) as pool:
        made = [each.status_code for each in pool.map(lambda _: gateway.owner.post("/v1/connections", body), range(4))]
    assert sorted(made) == [201, 409, 409, 409]


# -- who may


def test_only_an_owner_or_admin_changes_connections(gateway: Gateway) -> None:
    agent, other = gateway.agent(), gateway.agent("other")
    remote = connect(gateway, agent, "conn-1")
    connect(gateway, agent, "conn-2")
    bridge = Client(gateway.http, agent.id, done(gateway.owner.post(f"/v1/agents/{agent.id}/bridge-token"), 201)["token"])
    expected = {
        "owner": (gateway.owner, 200, 201),
        "admin": (gateway.admin, 200, 201),
        "member": (gateway.member, 403, 403),
        "security": (gateway.security, 403, 403),
        "auditor": (gateway.auditor, 403, 403),
        "its agent": (agent, 403, 403),
        "another agent": (other, 404, 403),
        "the connection": (remote, 403, 403),
        "the bridge": (bridge, 403, 403),
        "another organisation": (gateway.other_owner, 404, 404),
    }
    for who, (client, change, create) in expected.items():
        answers = [client.post(f"/v1/connections/conn-1/{act}").status_code for act in ("suspend", "resume")]
        assert answers == [change, change], who
        made = client.post("/v1/connections", {"agent_id": agent.id, "peer_did": DID})
        assert made.status_code == create, who
        if change != 200:
            assert client.post("/v1/connections/conn-1/credential").status_code == change, who
            assert client.post("/v1/connections/conn-1/revoke").status_code == change, who
    assert done(gateway.owner.get("/v1/connections/conn-1"), 200)["connection"]["status"] == "active"


def test_a_connection_is_read_by_its_people_its_agent_and_itself(gateway: Gateway) -> None:
    agent, other = gateway.agent(), gateway.agent("other")
    remote, second = connect(gateway, agent, "conn-1"), connect(gateway, agent, "conn-2")
    statuses = {
        name: client.get("/v1/connections/conn-1").status_code
        for name, client in {
            "owner": gateway.owner,
            "admin": gateway.admin,
            "member": gateway.member,
            "its agent": agent,
            "another agent": other,
            "itself": remote,
            "another connection": second,
            "another organisation": gateway.other_owner,
        }.items()
    }
    assert statuses == {
        "owner": 200,
        "admin": 200,
        "member": 403,
        "its agent": 200,
        "another agent": 404,
        "itself": 200,
        "another connection": 404,
        "another organisation": 404,
    }


def test_a_connection_that_one_may_not_know_of_is_answered_as_an_unknown_one(gateway: Gateway) -> None:
    agent, other = gateway.agent(), gateway.agent("other")
    connect(gateway, agent, "conn-1")
    second = connect(gateway, other, "conn-2")
    for client in (other, second, gateway.other_owner):
        answers = {
            status_of(client.request("GET", f"/v1/connections/{found}", None, UNKNOWN)) for found in ("conn-1", "nothing", "x")
        }
        assert [status for status, _ in answers] == [404]


def test_a_list_names_its_agent(gateway: Gateway) -> None:
    agent, other = gateway.agent(), gateway.agent("other")
    remote = connect(gateway, agent, "conn-1")
    connect(gateway, other, "conn-2")

    def ids(client: Client, **query: object) -> list[str]:
        return [c["id"] for c in done(client.get("/v1/connections", **query), 200)["connections"]]

    assert ids(gateway.owner, agent_id=agent.id) == ids(agent) == ids(agent, agent_id=agent.id) == ["conn-1"]
    assert ids(gateway.owner, agent_id=other.id) == ["conn-2"]
    assert gateway.owner.get("/v1/connections").status_code == 400
    assert gateway.owner.get("/v1/connections", agent_id=ABSENT).status_code == 404
    assert gateway.other_owner.get("/v1/connections", agent_id=agent.id).status_code == 404
    assert agent.get("/v1/connections", agent_id=other.id).status_code == 404
    assert gateway.member.get("/v1/connections", agent_id=agent.id).status_code == 403
    assert remote.get("/v1/connections").status_code == 403


# -- suspended, resumed, revoked


def test_a_suspension_ends_the_credential_until_it_is_lifted_and_the_conversations_for_good(gateway: Gateway) -> None:
    agent = gateway.agent()
    remote = connect(gateway, agent, "conn-1")
    talking = converse(gateway, remote, by=agent)
    for client in (remote, talking):
        done(client.get("/v1/connections/conn-1"), 200)
    assert done(gateway.owner.post("/v1/connections/conn-1/suspend"), 200)["connection"]["status"] == "suspended"
    assert done(gateway.owner.post("/v1/connections/conn-1/suspend"), 200)["connection"]["status"] == "suspended"
    for client in (remote, talking):
        answer = client.request("GET", "/v1/connections/conn-1", None, UNKNOWN)
        assert status_of(answer) == status_of(unauthenticated(gateway))
    assert done(gateway.owner.post("/v1/connections/conn-1/resume"), 200)["connection"]["status"] == "active"
    done(remote.get("/v1/connections/conn-1"), 200)
    assert status_of(talking.request("GET", "/v1/connections/conn-1", None, UNKNOWN)) == status_of(unauthenticated(gateway))
    done(converse(gateway, remote).get("/v1/connections/conn-1"), 200)


def test_a_revoked_connection_is_over(gateway: Gateway) -> None:
    agent = gateway.agent()
    remote = connect(gateway, agent, "conn-1")
    talking = converse(gateway, remote)
    assert done(gateway.owner.post("/v1/connections/conn-1/revoke"), 200)["connection"]["status"] == "revoked"
    assert done(gateway.owner.post("/v1/connections/conn-1/revoke"), 200)["connection"]["status"] == "revoked"
    for act in ("suspend", "resume", "credential"):
        assert gateway.owner.post(f"/v1/connections/conn-1/{act}").status_code == 409
    assert gateway.owner.post("/v1/connections/conn-1/conversations").status_code == 403
    for client in (remote, talking):
        answer = client.request("GET", "/v1/connections/conn-1", None, UNKNOWN)
        assert status_of(answer) == status_of(unauthenticated(gateway))
    assert stored(gateway, "SELECT id FROM credentials WHERE principal_type = 'Connection'") == []
    restart(gateway)
    assert Client(gateway.http, remote.id, remote.key).get("/v1/connections/conn-1").status_code == 401


def test_what_is_done_to_a_connection_is_in_the_audit_log_without_its_did(gateway: Gateway) -> None:
    agent = gateway.agent()
    connect(gateway, agent, "conn-1", name="a telling name")
    for act in ("suspend", "suspend", "resume", "credential", "conversations", "revoke", "revoke"):
        gateway.owner.post(f"/v1/connections/conn-1/{act}")
    done(gateway.owner.post(f"/v1/agents/{agent.id}/bridge-token"), 201)
    assert [action for action in actions(gateway) if action.startswith(("remote_connection", "bridge"))] == [
        "remote_connection.created",
        "remote_connection.suspended",
        "remote_connection.resumed",
        "remote_connection.credential_rotated",
        "remote_connection.conversation_opened",
        "remote_connection.revoked",
        "bridge.token_rotated",
    ]
    logged = str(stored(gateway, "SELECT * FROM log")) + str(stored(gateway, "SELECT * FROM slices"))
    for hidden in (DID, "a telling name"):
        assert hidden not in logged


def test_a_new_credential_ends_the_one_before_it(gateway: Gateway) -> None:
    remote = connect(gateway, gateway.agent(), "conn-1")
    made = done(gateway.owner.post("/v1/connections/conn-1/credential"), 200)
    assert made["connection"] == done(gateway.owner.get("/v1/connections/conn-1"), 200)["connection"]
    assert remote.get("/v1/connections/conn-1").status_code == 401
    done(Client(gateway.http, "conn-1", made["credential"]).get("/v1/connections/conn-1"), 200)


# -- replaced


def test_a_connection_that_is_replaced_is_revoked_with_it(gateway: Gateway) -> None:
    agent = gateway.agent()
    older = connect(gateway, agent, "conn-1")
    newer = connect(gateway, agent, "conn-2", replaces="conn-1")
    assert older.get("/v1/connections/conn-1").status_code == 401
    assert done(newer.get("/v1/connections/conn-2"), 200)["connection"]["replaces"] == "conn-1"
    assert done(gateway.owner.get("/v1/connections/conn-1"), 200)["connection"]["status"] == "revoked"


def test_only_a_connection_of_the_same_agent_and_remote_agent_is_replaced(gateway: Gateway) -> None:
    agent, other = gateway.agent(), gateway.agent("other")
    connect(gateway, agent, "conn-1")
    foreign = gateway.agent(by=gateway.other_owner)
    connect(gateway, foreign, "far-1", by=gateway.other_owner)

    def replacing(replaced: str, agent_id: str = agent.id, did: str = DID) -> int:
        body = {"agent_id": agent_id, "peer_did": did, "id": "conn-2", "replaces": replaced}
        return gateway.owner.post("/v1/connections", body).status_code

    assert replacing("conn-1", agent_id=other.id) == 400
    assert replacing("conn-1", did="did:web:other.example") == 400
    assert replacing("nothing") == replacing("far-1") == replacing("conn-2") == 404
    assert done(gateway.owner.get("/v1/connections", agent_id=agent.id), 200)["connections"][0]["status"] == "active"
    assert gateway.owner.get("/v1/connections/conn-2").status_code == 404


# -- conversations


def test_a_conversation_is_opened_by_people_and_by_the_agent_of_the_connection(gateway: Gateway) -> None:
    agent, other = gateway.agent(), gateway.agent("other")
    remote = connect(gateway, agent, "conn-1")
    path = "/v1/connections/conn-1/conversations"
    made = done(agent.post(path), 201)
    assert made == {"token": made["token"], "expires_in": 3600, "connection_id": "conn-1"}
    statuses = [
        client.post(path).status_code
        for client in (gateway.owner, gateway.admin, gateway.member, other, remote, gateway.other_owner)
    ]
    assert statuses == [201, 201, 403, 404, 403, 404]
    done(gateway.owner.post("/v1/connections/conn-1/suspend"), 200)
    assert (agent.post(path).status_code, gateway.owner.post(path).status_code) == (403, 403)


def test_a_conversation_opens_no_other(gateway: Gateway) -> None:
    talking = converse(gateway, connect(gateway, gateway.agent(), "conn-1"))
    for act in ("conversations", "credential", "grants"):
        body = {"actions": ["search"], "project_id": "alpha"} if act == "grants" else {}
        assert talking.post(f"/v1/connections/conn-1/{act}", body).status_code == 403


def test_a_conversation_lasts_as_long_as_was_asked(gateway: Gateway) -> None:
    connect(gateway, gateway.agent(), "conn-1")
    path = "/v1/connections/conn-1/conversations"
    for refused in (119, 86_401, "600", 600.5, True, None):
        assert gateway.owner.post(path, {"ttl_seconds": refused}).status_code == 400
    made = done(gateway.owner.post(path, {"ttl_seconds": 120}), 201)
    assert made["expires_in"] == 120
    talking = Client(gateway.http, "conn-1", made["token"])
    done(talking.get("/v1/connections/conn-1"), 200)
    gateway.clock.advance(timedelta(seconds=120))
    assert talking.get("/v1/connections/conn-1").status_code == 401


def rotated(gateway: Gateway, agent: Client) -> None:
    done(gateway.owner.post(f"/v1/agents/{agent.id}/rotate-key"), 200)


def switched_off_and_on(gateway: Gateway, agent: Client) -> None:
    for is_active in (False, True):
        done(gateway.owner.patch(f"/v1/agents/{agent.id}", {"is_active": is_active}), 200)


def suspended_and_resumed(gateway: Gateway, _: Client) -> None:
    for act in ("suspend", "resume"):
        done(gateway.owner.post(f"/v1/connections/conn-1/{act}"), 200)


def new_credential(gateway: Gateway, _: Client) -> None:
    done(gateway.owner.post("/v1/connections/conn-1/credential"), 200)


@pytest.mark.parametrize("ending", [rotated, switched_off_and_on, suspended_and_resumed, new_credential])
def test_a_conversation_ends_with_the_credentials_of_its_agent_and_of_its_connection(
    gateway: Gateway, ending: Callable[[Gateway, Client], None]
) -> None:
    agent = gateway.agent()
    remote = connect(gateway, agent, "conn-1")
    talking = converse(gateway, remote)
    ending(gateway, agent)
    assert talking.get("/v1/connections/conn-1").status_code == 401
    # One that is opened afterwards outlives a restart, and the ended one stays ended.
    after = converse(gateway, remote)
    restart(gateway)
    statuses = [Client(gateway.http, "conn-1", each.key).get("/v1/connections/conn-1").status_code for each in (talking, after)]
    assert statuses == [401, 200]


def test_a_conversation_is_ended_by_whoever_holds_it_and_ends_no_other(gateway: Gateway) -> None:
    remote = connect(gateway, gateway.agent(), "conn-1")
    first, second = converse(gateway, remote), converse(gateway, remote)
    done(first.delete("/v1/auth/token"), 204)
    statuses = [client.get("/v1/connections/conn-1").status_code for client in (first, second, remote)]
    assert statuses == [401, 200, 200]


def test_the_credential_of_a_connection_is_no_session(gateway: Gateway) -> None:
    remote = connect(gateway, gateway.agent(), "conn-1")
    done(remote.delete("/v1/auth/token"), 204)
    done(remote.get("/v1/connections/conn-1"), 200)


# -- bridges


def test_a_bridge_token_is_for_people_to_make_and_ends_the_one_before_it(gateway: Gateway) -> None:
    agent, other = gateway.agent(), gateway.agent("other")
    path = f"/v1/agents/{agent.id}/bridge-token"
    first = done(gateway.owner.post(path), 201)
    assert first == {"token": first["token"], "agent_id": agent.id}
    assert first["token"].startswith("pgb_")
    second = done(gateway.admin.post(path), 201)["token"]
    statuses = [client.post(path).status_code for client in (gateway.member, agent, other, gateway.other_owner)]
    assert statuses == [403, 403, 403, 404]
    assert gateway.owner.post(f"/v1/agents/{ABSENT}/bridge-token").status_code == 404
    assert Client(gateway.http, agent.id, first["token"]).get("/v1/agents/me").status_code == 401
    # Known, and good for nothing here.
    for path in ("/v1/agents/me", f"/v1/agents/{agent.id}", "/v1/approvals", "/v1/connections"):
        assert Client(gateway.http, agent.id, second).get(path).status_code == 403, path
    assert gateway.http.post("/v1/auth/agent-token", json={"api_key": second}).status_code == 401


# -- the end of an agent


def test_a_deleted_agent_takes_its_connections_and_its_bridge_along_and_leaves_its_memory_to_people(gateway: Gateway) -> None:
    agent, kept = gateway.agent(), gateway.agent("kept")
    remote, other = connect(gateway, agent, "conn-1"), connect(gateway, kept, "conn-2")
    written = shared(agent, "left behind")
    talking = converse(gateway, remote)
    bridge = Client(gateway.http, agent.id, done(gateway.owner.post(f"/v1/agents/{agent.id}/bridge-token"), 201)["token"])
    done(gateway.owner.delete(f"/v1/agents/{agent.id}"), 204)
    for client in (remote, talking, bridge):
        assert client.get("/v1/connections/conn-1").status_code == 401
    assert done(gateway.owner.get("/v1/connections/conn-1"), 200)["connection"]["status"] == "revoked"
    assert stored(gateway, "SELECT id FROM credentials WHERE principal_type = 'Bridge'") == []
    for human, status in ((gateway.owner, 200), (gateway.admin, 200), (gateway.member, 403), (gateway.other_owner, 404)):
        assert human.get(f"/v1/memories/{written['id']}").status_code == status
        assert human.get("/v1/memories", agent_id=agent.id).status_code == status
    more = {"agent_id": agent.id, "text": "more"}
    assert gateway.owner.post("/v1/memories", more).status_code == 404
    done(gateway.owner.post("/v1/memories/forget", {"agent_id": agent.id, "id": written["id"]}), 200)
    assert done(gateway.owner.get("/v1/memories", agent_id=agent.id), 200)["items"] == []
    done(other.get("/v1/connections/conn-2"), 200)


def test_an_inactive_agent_has_no_connections_while_it_is_that(gateway: Gateway) -> None:
    agent = gateway.agent()
    remote = connect(gateway, agent, "conn-1")
    done(gateway.owner.patch(f"/v1/agents/{agent.id}", {"is_active": False}), 200)
    assert remote.get("/v1/connections/conn-1").status_code == 401
    done(gateway.owner.patch(f"/v1/agents/{agent.id}", {"is_active": True}), 200)
    done(remote.get("/v1/connections/conn-1"), 200)


# -- two organisations, one id


def test_two_connections_of_one_id_never_mix(gateway: Gateway) -> None:
    agent, foreign = gateway.agent(), gateway.agent(by=gateway.other_owner)
    own = connect(gateway, agent, "shared-id")
    other = connect(gateway, foreign, "shared-id", by=gateway.other_owner)
    talking = converse(gateway, own)
    for _ in range(2):
        for client, found in ((own, agent), (talking, agent), (other, foreign)):
            assert done(client.get("/v1/connections/shared-id"), 200)["connection"]["agent_id"] == found.id
    done(gateway.other_owner.post("/v1/connections/shared-id/revoke"), 200)
    assert other.get("/v1/connections/shared-id").status_code == 401
    for client in (own, talking):
        assert done(client.get("/v1/connections/shared-id"), 200)["connection"]["status"] == "active"
