"""Signing in and out over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from gateway.authn.authenticator import Authenticator
from gateway.authn.keys import hash_secret, mint_key
from gateway.model.caller import ANONYMOUS
from gateway.model.grant import Session
from gateway.model.ids import new_id
from gateway.model.records import Human, PlatformConnection
from gateway.operations.registry import OPERATIONS
from gateway.store.credentials import redeem_claim
from gateway.store.humans import insert_human
from gateway.store.writer import Unit
from gateway.web.app import create_app
from tests.builders import Client, Gateway, done

PASSWORD = "correct horse battery"


def sign_in(gateway: Gateway, email: str, password: str) -> Any:
    return gateway.http.post("/v1/auth/token", json={"email": email, "password": password})


def as_token(gateway: Gateway, who: Client) -> Client:
    """The same human with a session token from their password in place of a key."""
    token = done(sign_in(gateway, who.email, who.password), 200)["access_token"]
    return Client(gateway.http, who.id, token, who.email, who.password)


def exchanged(gateway: Gateway, agent: Client) -> Client:
    answer = done(gateway.http.post("/v1/auth/agent-token", json={"api_key": agent.key}), 200)
    return Client(gateway.http, agent.id, answer["access_token"])


# -- getting a token


def test_a_password_is_exchanged_for_a_token_that_works(gateway: Gateway) -> None:
    answer = done(sign_in(gateway, gateway.member.email, gateway.member.password), 200)
    assert {name: answer[name] for name in ("token_type", "expires_in")} == {"token_type": "Bearer", "expires_in": 900}
    assert set(answer) == {"access_token", "token_type", "expires_in"}
    assert done(Client(gateway.http, "", answer["access_token"]).get("/v1/auth/me"), 200)["id"] == gateway.member.id


def test_an_address_is_one_account_however_it_is_spelled(gateway: Gateway) -> None:
    spelled = f" {gateway.member.email.upper()} "
    assert sign_in(gateway, spelled, gateway.member.password).status_code == 200


def test_a_wrong_password_and_an_unknown_account_are_the_same_bytes(gateway: Gateway) -> None:
    wrong = sign_in(gateway, gateway.member.email, "wrong")
    unknown = sign_in(gateway, "nobody@sample.example", "wrong")
    no_address = sign_in(gateway, "nobody", "wrong")
    assert wrong.status_code == 401
    assert wrong.content == unknown.content == no_address.content
    assert wrong.headers["content-type"] == unknown.headers["content-type"]
    assert set(wrong.headers) == set(unknown.headers)


@pytest.mark.parametrize("known", [True, False])
def test_the_eleventh_wrong_password_of_an_account_is_throttled(gateway: Gateway, known: bool) -> None:
    email = gateway.member.email if known else "nobody@sample.example"
    assert [sign_in(gateway, email, "wrong").status_code for _ in range(10)] == [401] * 10
    over = sign_in(gateway, email.upper(), gateway.member.password)
    assert (over.status_code, over.headers["retry-after"]) == (429, "60")
    assert sign_in(gateway, gateway.admin.email, gateway.admin.password).status_code == 200
    gateway.clock.advance(timedelta(seconds=60))
    assert sign_in(gateway, email, gateway.member.password).status_code == (200 if known else 401)


def test_a_wrong_key_or_bearer_is_a_401_however_often(gateway: Gateway) -> None:
    for _ in range(12):
        assert gateway.http.post("/v1/auth/agent-token", json={"api_key": "ocv_wrong"}).status_code == 401
        assert gateway.http.post("/v1/auth/api-key-token", json={"api_key": "1ck_wrong"}).status_code == 401
        assert Client(gateway.http, "", "wrong").get("/v1/auth/me").status_code == 401


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/auth/token", {}, "email"),
        ("/v1/auth/token", {"email": 7, "password": "x"}, "email"),
        ("/v1/auth/token", {"email": "a@b.c"}, "password"),
        ("/v1/auth/token", {"email": "a@b.c", "password": "x" * 257}, "password"),
        ("/v1/auth/token", {"email": {"$ne": ""}, "password": {"$ne": ""}}, "email"),
        ("/v1/auth/api-key-token", {}, "api_key"),
        ("/v1/auth/agent-token", {"api_key": ["ocv_"]}, "api_key"),
        ("/v1/auth/agent-token", {"api_key": "ocv_x", "agent_id": "not an id"}, "agent_id"),
        ("/v1/auth/claim", {"claim_token": "ct_x", "password": "short"}, "password"),
        ("/v1/auth/claim", {"claim_token": "ct_x", "password": PASSWORD, "email": "a@b.c"}, "email"),
    ],
)
def test_a_malformed_request_is_a_400_that_names_the_field(
    gateway: Gateway, path: str, body: dict[str, object], field: str
) -> None:
    answer = gateway.http.post(path, json=body)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])


def test_a_human_key_is_exchanged_for_a_token_that_works(gateway: Gateway) -> None:
    answer = done(gateway.http.post("/v1/auth/api-key-token", json={"api_key": gateway.owner.key}), 200)
    assert (answer["token_type"], answer["expires_in"]) == ("Bearer", 900)
    assert done(Client(gateway.http, "", answer["access_token"]).get("/v1/auth/me"), 200)["role"] == "owner"


def test_an_agent_key_is_exchanged_with_all_that_clients_read(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    answer = done(gateway.http.post("/v1/auth/agent-token", json={"api_key": agent.key, "agent_id": agent.id}), 200)
    del answer["access_token"]
    assert answer == {
        "token_type": "Bearer",
        "expires_in": 3600,
        "agent_id": agent.id,
        "vault_ids": [],
        "entitlements": {
            "intents_api": False,
            "execution_intents": False,
            "execution_require_tee": False,
            "intents_require_tee": False,
            "cards": False,
            "memory": False,
            "shroud": False,
            "discoverable": False,
            "treasury_signer": False,
            "has_delegations": False,
        },
    }


def test_an_agent_id_that_is_not_the_keys_is_refused(gateway: Gateway) -> None:
    one, other = gateway.agent("one"), gateway.agent("other")
    answer = gateway.http.post("/v1/auth/agent-token", json={"api_key": one.key, "agent_id": other.id})
    unknown = gateway.http.post("/v1/auth/agent-token", json={"api_key": "ocv_wrong"})
    assert (answer.status_code, answer.content) == (401, unknown.content)


def test_a_key_is_exchanged_on_its_own_route_only(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    assert gateway.http.post("/v1/auth/agent-token", json={"api_key": gateway.owner.key}).status_code == 401
    assert gateway.http.post("/v1/auth/api-key-token", json={"api_key": agent.key}).status_code == 401


def test_refreshing_is_always_a_400(gateway: Gateway) -> None:
    for sent in ({}, {"json": {}}, {"json": {"refresh_token": "x"}}):
        answer = gateway.http.post("/v1/auth/refresh", **sent)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["title"]) == (400, "invalid request")


# -- ending a session


def test_a_token_ends_with_its_session_and_no_other_does(gateway: Gateway) -> None:
    one, other = as_token(gateway, gateway.member), as_token(gateway, gateway.member)
    assert one.delete("/v1/auth/token").status_code == 204
    assert one.get("/v1/auth/me").status_code == 401
    assert other.get("/v1/auth/me").status_code == 200
    assert gateway.member.get("/v1/auth/me").status_code == 200


def test_an_agent_ends_its_own_session(gateway: Gateway) -> None:
    session = exchanged(gateway, gateway.agent("a"))
    assert session.delete("/v1/auth/token").status_code == 204
    assert session.get("/v1/agents/me").status_code == 401


def test_a_key_is_no_session_and_stays_good(gateway: Gateway) -> None:
    assert gateway.member.delete("/v1/auth/token").status_code == 204
    assert gateway.member.get("/v1/auth/me").status_code == 200


def test_an_ended_session_stays_ended_after_a_restart(gateway: Gateway) -> None:
    session = as_token(gateway, gateway.member)
    session.delete("/v1/auth/token")
    stored = gateway.services.database.read_sync(lambda rows: rows.all("SELECT jti, expires_at FROM revoked_tokens"))
    assert dict(stored) == gateway.services.state.revoked_tokens
    assert len(stored) == 1


def test_ended_sessions_are_forgotten_once_their_tokens_would_have_ended(gateway: Gateway) -> None:
    as_token(gateway, gateway.member).delete("/v1/auth/token")
    first = set(gateway.services.state.revoked_tokens)
    gateway.clock.advance(timedelta(seconds=900))
    as_token(gateway, gateway.member).delete("/v1/auth/token")
    stored = gateway.services.database.read_sync(lambda rows: rows.all("SELECT jti FROM revoked_tokens"))
    assert {jti for (jti,) in stored} == set(gateway.services.state.revoked_tokens)
    assert first.isdisjoint(gateway.services.state.revoked_tokens)


def test_a_token_ends_by_itself(gateway: Gateway) -> None:
    session = as_token(gateway, gateway.member)
    gateway.clock.advance(timedelta(seconds=899))
    assert session.get("/v1/auth/me").status_code == 200
    gateway.clock.advance(timedelta(seconds=1))
    assert session.get("/v1/auth/me").status_code == 401


# -- oneself


def test_a_human_reads_their_account(gateway: Gateway) -> None:
    assert done(gateway.admin.get("/v1/auth/me"), 200) == {
        "id": gateway.admin.id,
        "email": gateway.admin.email,
        "display_name": None,
        "org_id": gateway.services.state.humans[gateway.admin.id].org_id,
        "auth_method": "password",
        "role": "admin",
        "email_verified": False,
        "marketing_emails": False,
        "totp_enabled": False,
        "created_at": "2026-03-04T10:00:00Z",
    }


def test_an_agent_has_no_account(gateway: Gateway) -> None:
    assert gateway.agent("a").get("/v1/auth/me").status_code == 403


# -- claims


def connected(
    gateway: Gateway, *, password_hash: str | None = None, status: str = "active", seconds: int = 600
) -> tuple[str, Human]:
    """A person whom a platform brought, and their claim token."""
    state, now = gateway.services.state, gateway.clock.now
    org_id = state.humans[gateway.owner.id].org_id
    email = f"person-{len(state.humans)}@sample.example"
    human = Human(new_id(), org_id, email, None, "member", password_hash, None, False, None, 1, now)
    connection = PlatformConnection(new_id(), org_id, new_id(), human.id, status, None, None, now)  # type: ignore[arg-type]
    token, hashed = mint_key("ct_")
    c = connection

    def store(tx: Any) -> None:
        insert_human(tx, human)
        row = (c.id, c.org_id, c.app_id, c.user_id, c.status, None, None, now)
        tx.run("INSERT INTO platform_connections VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", *row)
        tx.run("INSERT INTO claims VALUES ($1, $2, $3, $4)", hashed, org_id, c.id, now + timedelta(seconds=seconds))
        tx.after_commit(lambda: state.put_connection(connection))

    gateway.services.database.write(Unit(store, solo=True)).result()
    return token, human


def connect_again(gateway: Gateway, human: Human) -> str:
    """Another claim token for the same person."""
    token, hashed = mint_key("ct_")
    state = gateway.services.state
    connection = next(c for c in state.connections.values() if c.user_id == human.id)
    row = (hashed, human.org_id, connection.id, gateway.clock.now + timedelta(seconds=600))
    gateway.services.database.write(Unit(lambda tx: tx.run("INSERT INTO claims VALUES ($1, $2, $3, $4)", *row))).result()
    return token


def claim(gateway: Gateway, token: str, password: str = PASSWORD) -> Any:
    return gateway.http.post("/v1/auth/claim", json={"claim_token": token, "password": password})


def test_a_claim_sets_the_first_password_and_signs_in(gateway: Gateway) -> None:
    token, human = connected(gateway)
    answer = done(claim(gateway, token), 200)
    assert done(Client(gateway.http, "", answer["access_token"]).get("/v1/auth/me"), 200)["email"] == human.email
    assert sign_in(gateway, human.email, PASSWORD).status_code == 200
    claimed = [c.claimed_at for c in gateway.services.state.connections.values() if c.user_id == human.id]
    assert claimed == [gateway.clock.now]


def test_a_claim_serves_once(gateway: Gateway) -> None:
    token, human = connected(gateway)
    assert claim(gateway, token).status_code == 200
    assert claim(gateway, token, "another long password").status_code == 401
    assert sign_in(gateway, human.email, PASSWORD).status_code == 200


def test_a_claim_ends_after_ten_minutes(gateway: Gateway) -> None:
    token, _ = connected(gateway)
    gateway.clock.advance(timedelta(seconds=600))
    assert claim(gateway, token).status_code == 401


def test_a_claim_on_a_connection_that_was_ended_is_refused(gateway: Gateway) -> None:
    token, _ = connected(gateway, status="disconnected")
    assert claim(gateway, token).content == claim(gateway, "ct_unknown").content


def test_a_claim_never_replaces_a_password(gateway: Gateway) -> None:
    stored = gateway.services.state.humans[gateway.member.id].password_hash
    token, human = connected(gateway, password_hash=stored)
    assert claim(gateway, token, "the password of a thief").status_code == 401
    assert gateway.services.state.humans[human.id].password_hash == stored
    assert claim(gateway, token, gateway.member.password).status_code == 200
    assert claim(gateway, token, gateway.member.password).status_code == 401


def test_a_claim_that_lost_a_race_sets_no_password(gateway: Gateway) -> None:
    token, human = connected(gateway)
    session = Session(ANONYMOUS, "request", gateway.clock.now)
    hashed, database = hash_secret(token), gateway.services.database
    assert claim(gateway, connect_again(gateway, human)).status_code == 200
    late = database.write(Unit(lambda tx: redeem_claim(tx, session, hashed, password_hash="of a thief"), solo=True))
    assert late.result() is None
    assert sign_in(gateway, human.email, PASSWORD).status_code == 200


def test_a_claim_is_recorded_without_its_secrets(gateway: Gateway) -> None:
    token, human = connected(gateway)
    claim(gateway, token)
    rows = gateway.services.database.read_sync(
        lambda rows: rows.all("SELECT principal_id, resource_type, details FROM log WHERE action = 'claim.redeemed'")
    )
    assert [(row[0], row[1]) for row in rows] == [(human.id, "PlatformConnection")]
    assert token not in str(rows)
    assert human.email not in str(rows)


# -- what is on record


def records(gateway: Gateway) -> list[tuple[Any, ...]]:
    shown = "action, org_id, principal_type, principal_id, resource_id, outcome"
    asked = f"SELECT {shown} FROM log WHERE action LIKE 'auth.%' ORDER BY seq"
    return gateway.services.database.read_sync(lambda rows: rows.all(asked))


def test_each_sign_in_is_on_record_right_or_wrong(gateway: Gateway) -> None:
    member, org_id = gateway.member, gateway.services.state.humans[gateway.member.id].org_id
    before = len(records(gateway))
    sign_in(gateway, member.email, member.password)
    sign_in(gateway, member.email, "wrong")
    sign_in(gateway, "nobody@sample.example", "wrong")
    assert records(gateway)[before:] == [
        ("auth.signed_in", org_id, "Human", member.id, org_id, None),
        ("auth.sign_in_failed", org_id, "Human", member.id, org_id, None),
        ("auth.sign_in_failed", "", "Human", "", "", None),
    ]
    stored = gateway.services.database.read_sync(lambda rows: str(rows.all("SELECT * FROM log")))
    assert "nobody@" not in stored
    assert member.email not in stored


def test_a_sign_in_that_is_throttled_leaves_no_record(gateway: Gateway) -> None:
    before = len(records(gateway))
    assert [sign_in(gateway, "nobody@sample.example", "wrong").status_code for _ in range(12)] == [401] * 10 + [429] * 2
    assert len(records(gateway)) == before + 10


def test_a_wrong_password_with_a_claim_is_on_record(gateway: Gateway) -> None:
    token, human = connected(gateway, password_hash=gateway.services.state.humans[gateway.member.id].password_hash)
    claim(gateway, token, "the password of a thief")
    assert records(gateway)[-1][:4] == ("auth.sign_in_failed", human.org_id, "Human", human.id)


def test_each_exchange_of_a_key_is_on_record_with_the_key(gateway: Gateway) -> None:
    agent, state = gateway.agent("a"), gateway.services.state
    org_id = state.agents[agent.id].org_id
    before = len(records(gateway))
    gateway.http.post("/v1/auth/agent-token", json={"api_key": agent.key})
    gateway.http.post("/v1/auth/api-key-token", json={"api_key": gateway.owner.key})
    gateway.http.post("/v1/auth/api-key-token", json={"api_key": "1ck_wrong"})
    assert records(gateway)[before:] == [
        ("auth.token_issued", org_id, "Agent", agent.id, org_id, None),
        ("auth.token_issued", org_id, "Human", gateway.owner.id, org_id, None),
    ]
    [held] = state.credentials_of("Agent", agent.id)
    asked = "SELECT details FROM log WHERE action = 'auth.token_issued' AND principal_id = $1"
    details = gateway.services.database.read_sync(lambda rows: json.loads(rows.value(asked, agent.id)))
    assert details["credential_id"] == held.id


def test_an_exchange_counts_as_a_request_of_its_key(gateway: Gateway) -> None:
    services = gateway.services
    limited = Authenticator(services.authenticator.signer, services.state, rate_limit=2)
    http = TestClient(create_app(replace(services, authenticator=limited), OPERATIONS))
    exchanges = [http.post("/v1/auth/api-key-token", json={"api_key": gateway.owner.key}).status_code for _ in range(3)]
    assert exchanges == [200, 200, 429]


# -- nothing shows


def test_no_secret_reaches_the_tables_or_the_log(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    session = as_token(gateway, gateway.member)
    session.delete("/v1/auth/token")
    secrets = [agent.key, gateway.owner.key, gateway.owner.password, gateway.member.key, gateway.member.password, session.key]
    tables = gateway.services.database.read_sync(
        lambda rows: [rows.all(f"SELECT * FROM {name}") for (name,) in rows.all("SELECT table_name FROM duckdb_tables()")]
    )
    stored = str(tables)
    assert gateway.owner.email in stored
    assert [secret for secret in secrets if secret in stored] == []
