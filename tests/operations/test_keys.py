"""A human's own keys over HTTP."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.model.grant import Session
from gateway.model.ids import new_id
from gateway.model.records import Credential
from gateway.store.credentials import create_key
from gateway.store.writer import Unit
from tests.builders import Client, Gateway, done


def test_a_key_is_shown_once_and_listed_without_its_secret(gateway: Gateway) -> None:
    made = done(gateway.member.post("/v1/auth/api-keys", {"name": "laptop", "expires_at": "2026-03-05T10:00:00+01:00"}), 201)
    assert made["api_key"].startswith("1ck_")
    assert made["key"] == {
        "id": made["key"]["id"],
        "name": "laptop",
        "created_at": "2026-03-04T10:00:00Z",
        "expires_at": "2026-03-05T09:00:00Z",
    }
    listed = gateway.member.get("/v1/auth/api-keys")
    assert made["key"] in done(listed, 200)["keys"]
    assert made["api_key"] not in listed.text
    assert done(Client(gateway.http, "", made["api_key"]).get("/v1/auth/me"), 200)["id"] == gateway.member.id


def test_a_human_lists_their_own_keys_only(gateway: Gateway) -> None:
    done(gateway.admin.post("/v1/auth/api-keys", {"name": "of the admin"}), 201)
    assert [key["name"] for key in done(gateway.member.get("/v1/auth/api-keys"), 200)["keys"]] == ["test"]


def test_a_revoked_key_ends_at_once_with_the_tokens_exchanged_from_it(gateway: Gateway) -> None:
    made = done(gateway.member.post("/v1/auth/api-keys", {"name": "laptop"}), 201)
    token = done(gateway.http.post("/v1/auth/api-key-token", json={"api_key": made["api_key"]}), 200)["access_token"]
    clients = [Client(gateway.http, "", made["api_key"]), Client(gateway.http, "", token)]
    assert [client.get("/v1/auth/me").status_code for client in clients] == [200, 200]
    assert gateway.member.delete(f"/v1/auth/api-keys/{made['key']['id']}").status_code == 204
    assert [client.get("/v1/auth/me").status_code for client in clients] == [401, 401]
    assert gateway.http.post("/v1/auth/api-key-token", json={"api_key": made["api_key"]}).status_code == 401
    assert gateway.member.get("/v1/auth/me").status_code == 200


def test_a_key_asked_for_before_all_were_ended_is_not_made_after(gateway: Gateway) -> None:
    services, now = gateway.services, gateway.clock.now
    session = Session(services.authenticator.authenticate(gateway.member.key, now), "request", now)
    grant = services.access.authorize(session, "key.create", services.state.orgs[session.caller.org_id])
    generation = services.state.humans[gateway.member.id].generation
    done(gateway.owner.patch(f"/v1/org/members/{gateway.member.id}", {"role": "admin"}), 200)
    key = Credential(new_id(), session.caller.org_id, "Human", gateway.member.id, "late", "hash", now, None)
    late = services.database.write(Unit(lambda tx: create_key(tx, grant, key, generation=generation), solo=True))
    assert late.result() is False
    assert services.state.credentials_of("Human", gateway.member.id) == []


def test_a_key_ends_at_its_end(gateway: Gateway) -> None:
    made = done(gateway.member.post("/v1/auth/api-keys", {"name": "short", "expires_at": "2026-03-04T10:00:10Z"}), 201)
    token = done(gateway.http.post("/v1/auth/api-key-token", json={"api_key": made["api_key"]}), 200)
    assert token["expires_in"] > 60
    gateway.clock.advance(timedelta(seconds=10))
    assert Client(gateway.http, "", made["api_key"]).get("/v1/auth/me").status_code == 401
    assert Client(gateway.http, "", token["access_token"]).get("/v1/auth/me").status_code == 401


def test_the_key_of_anybody_else_is_as_unknown_as_none(gateway: Gateway) -> None:
    state = gateway.services.state
    of_admin = state.credentials_of("Human", gateway.admin.id)[0].id
    foreign = state.credentials_of("Human", gateway.other_owner.id)[0].id
    of_agent = state.credentials_of("Agent", gateway.agent("a").id)[0].id
    answers = [gateway.owner.delete(f"/v1/auth/api-keys/{key}") for key in (of_admin, foreign, of_agent, new_id(), "no-id")]
    assert [answer.status_code for answer in answers] == [404] * 5
    assert len({answer.content for answer in answers}) == 1
    assert all(key in state.credentials for key in (of_admin, foreign, of_agent))


def test_agents_have_no_keys_of_this_kind(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    own = gateway.services.state.credentials_of("Agent", agent.id)[0].id
    assert agent.get("/v1/auth/api-keys").status_code == 403
    assert agent.post("/v1/auth/api-keys", {"name": "more"}).status_code == 403
    assert agent.delete(f"/v1/auth/api-keys/{own}").status_code in (403, 404)
    assert agent.get("/v1/agents/me").status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "x", "expires_at": "tomorrow"}, "expires_at"),
        ({"name": "x", "expires_at": "2026-03-04T10:00:00Z"}, "expires_at"),
        ({"name": "x", "expires_at": "2026-03-05T10:00:00"}, "expires_at"),
        ({"name": "x", "scopes": ["read"]}, "scopes"),
        ({"name": "x", "human_id": "y"}, "human_id"),
    ],
)
def test_a_malformed_key_is_a_400_that_names_the_field(gateway: Gateway, body: dict[str, object], field: str) -> None:
    answer = gateway.member.post("/v1/auth/api-keys", body)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])
    assert len(done(gateway.member.get("/v1/auth/api-keys"), 200)["keys"]) == 1


def test_making_and_revoking_are_audited_by_id(gateway: Gateway) -> None:
    key = done(gateway.member.post("/v1/auth/api-keys", {"name": "laptop"}), 201)["key"]["id"]
    gateway.member.delete(f"/v1/auth/api-keys/{key}")
    for action in ("key.created", "key.revoked"):
        events = done(gateway.member.get("/v1/audit/events", action=action), 200)["events"]
        assert [event["actor_id"] for event in events if event["details"].get("key_id") == key] == [gateway.member.id]
        assert "laptop" not in str(events)
