"""Requests with an access token of an issuer: nothing behind authentication knows the difference."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.authn.issuer_keys import COOL_DOWN
from gateway.config import ConfigError
from gateway.store.writer import Unit
from tests.authn.issuing import AUDIENCE, ISSUER, KeyServer, claims, key, key_set, published, publishing, signed
from tests.builders import Client, Gateway, Response, done
from tests.operations.asking import restart
from tests.operations.test_stale import queued_event, stored_events

SENTENCE = "the credential is missing, unknown, expired or revoked"
UNKNOWN = f'Bearer error="invalid_token", error_description="{SENTENCE}"'
CLAIMS = {"oidc_org_claim": "org", "oidc_role_claim": "role", "oidc_agent_claim": "agent"}


@pytest.fixture(scope="module")
def server() -> Iterator[KeyServer]:
    with publishing(published("one")) as made:
        yield made


@pytest.fixture
def gateway(tmp_path: Path, server: KeyServer) -> Iterator[Gateway]:
    server.content, server.status = key_set(published("one")), 200
    server.asked.clear()
    made = Gateway(tmp_path / "data", oidc_issuer=ISSUER, oidc_audience=AUDIENCE, oidc_jwks=server.url, **CLAIMS)
    yield made
    made.close()


def org_of(gateway: Gateway, client: Client) -> str:
    return gateway.services.state.humans[client.id].org_id


def as_human(gateway: Gateway, client: Client, **changed: object) -> Client:
    """Somebody with a token in the place of their key."""
    human = gateway.services.state.humans[client.id]
    said = {"org": human.org_id, "role": human.role, "email": human.email, **changed}
    return replace(client, key=signed(claims(gateway.clock.now, **said)))


def as_agent(gateway: Gateway, agent: Client, **changed: object) -> Client:
    org = org_of(gateway, gateway.owner)
    return replace(agent, key=signed(claims(gateway.clock.now, **{"org": org, "agent": agent.id, "email": None, **changed})))


def refused(response: Response, header: str = UNKNOWN) -> None:
    assert (response.status_code, response.json()["detail"]) == (401, SENTENCE)
    assert response.headers["www-authenticate"] == header


def test_a_member_and_an_agent_are_who_they_are_with_a_key(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])["id"]
    for client, token in ((gateway.member, as_human(gateway, gateway.member)), (agent, as_agent(gateway, agent))):
        assert done(token.get(f"/v1/peers/{peer}"), 200) == done(client.get(f"/v1/peers/{peer}"), 200)
        assert token.get("/v1/org/members").status_code == client.get("/v1/org/members").status_code == 403
    assert done(as_human(gateway, gateway.owner).get("/v1/org/members"), 200)
    assert done(as_agent(gateway, agent).get("/v1/agents/me"), 200)["id"] == agent.id


def test_a_decision_names_the_member_and_nothing_of_the_token(gateway: Gateway) -> None:
    done(as_human(gateway, gateway.member, sub="a-subject-of-the-issuer").get("/v1/auth/me"), 200)
    shown = gateway.owner.get("/v1/decisions", principal=gateway.member.id, action="me.read")
    assert done(shown, 200)["total"] == 1
    assert "a-subject-of-the-issuer" not in shown.text


def test_nobody_can_tell_who_is_a_member(gateway: Gateway) -> None:
    member = gateway.member
    refusals = [
        as_human(gateway, member, email="nobody@sample.example"),
        as_human(gateway, member, email=gateway.other_owner.email),
        as_human(gateway, member, role="owner"),
        as_human(gateway, member, org=org_of(gateway, gateway.other_owner)),
        as_human(gateway, member, email_verified=False),
        as_agent(gateway, gateway.agent(by=gateway.other_owner)),
        replace(member, key=signed(claims(gateway.clock.now), by=key("P-256", 2))),
        replace(member, key="1ck_none"),
    ]
    answers = [client.request("GET", "/v1/auth/me", headers={"X-Request-Id": "r"}) for client in refusals]
    for answer in answers:
        refused(answer)
    assert len({(answer.content, tuple(answer.headers.items())) for answer in answers}) == 1


def test_a_token_that_expired_says_so(gateway: Gateway) -> None:
    token = as_human(gateway, gateway.member)
    gateway.clock.advance(timedelta(seconds=630))
    refused(token.get("/v1/auth/me"), 'Bearer error="invalid_token", error_description="the token has expired"')


def test_a_member_is_refused_from_the_moment_they_are_removed(gateway: Gateway) -> None:
    person = gateway.human("member")
    token = as_human(gateway, person)
    done(token.get("/v1/auth/me"), 200)
    done(gateway.owner.delete(f"/v1/org/members/{person.id}"), 204)
    refused(token.get("/v1/auth/me"))


def test_a_role_that_changes_ends_the_tokens_of_the_one_before(gateway: Gateway) -> None:
    person = gateway.human("member")
    used, unused = as_human(gateway, person), as_human(gateway, person, jti="unused")
    done(used.get("/v1/auth/me"), 200)
    done(gateway.owner.patch(f"/v1/org/members/{person.id}", {"role": "admin"}), 200)
    refused(used.get("/v1/auth/me"))
    refused(unused.get("/v1/auth/me"))
    assert done(as_human(gateway, person).get("/v1/auth/me"), 200)["role"] == "admin"


@pytest.mark.parametrize("how", ["inactive", "deleted", "rotated"])
def test_an_agent_is_refused_from_the_moment_it_ends(gateway: Gateway, how: str) -> None:
    agent = gateway.agent()
    token = as_agent(gateway, agent)
    done(token.get("/v1/agents/me"), 200)
    match how:
        case "inactive":
            done(gateway.owner.patch(f"/v1/agents/{agent.id}", {"is_active": False}), 200)
        case "deleted":
            done(gateway.owner.delete(f"/v1/agents/{agent.id}"), 204)
        case "rotated":
            done(gateway.owner.post(f"/v1/agents/{agent.id}/rotate-key"), 200)
    refused(token.get("/v1/agents/me"))


def test_a_session_that_is_ended_stays_so_after_a_restart(gateway: Gateway) -> None:
    token = as_human(gateway, gateway.member)
    done(token.delete("/v1/auth/token"), 204)
    refused(token.get("/v1/auth/me"))
    restart(gateway)
    refused(replace(token, http=gateway.http).get("/v1/auth/me"))


def test_a_change_that_waits_is_not_made_when_the_agent_of_its_token_ends(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])["id"]
    inactive = replace(gateway.services.state.agents[agent.id], is_active=False)

    def end() -> Future[None]:
        return gateway.services.database.write(Unit(lambda tx: tx.after_commit(lambda: tx.state.put_agent(inactive)), solo=True))

    refused(queued_event(gateway, as_agent(gateway, agent), peer, end))
    assert stored_events(gateway) == 0


# -- confirming who one is


def test_a_token_confirms_nothing_by_itself(gateway: Gateway) -> None:
    peer = gateway.peer(person=gateway.member)["id"]
    token = as_human(gateway, gateway.member)
    for proof in ({}, {"X-Auth-Confirm": token.key}, {"X-Auth-Confirm": gateway.owner.password}):
        answer = token.request("GET", f"/v1/peers/{peer}/export", headers=proof)
        assert (answer.status_code, answer.json()["title"]) == (403, "step-up required")
    done(token.request("GET", f"/v1/peers/{peer}/export", headers={"X-Auth-Confirm": gateway.member.password}), 200)


def test_who_has_no_password_here_cannot_confirm_and_is_told_how_to_get_one(gateway: Gateway) -> None:
    app = done(gateway.owner.post("/v1/org/platform-apps", {"name": "app", "slug": "app"}), 201)
    platform = Client(gateway.http, "platform", app["api_key"])
    email = "brought@sample.example"
    done(platform.post("/v1/platform/users/upsert", {"email": email}), 201)
    found = gateway.services.state.human_with_email(email)
    assert found is not None
    assert found.password_hash is None
    person = as_human(gateway, Client(gateway.http, found.id, "", email))
    done(person.get("/v1/auth/me"), 200)
    peer = gateway.peer(person=person)["id"]
    for proof in ({}, {"X-Auth-Confirm": ""}, {"X-Auth-Confirm": person.key}):
        answer = person.request("DELETE", f"/v1/peers/{peer}/data", headers=proof)
        assert (answer.status_code, answer.json()["title"]) == (403, "step-up required")
    answer = person.post("/v1/auth/totp", {}, {"X-Auth-Confirm": "anything at all"})
    assert (answer.status_code, answer.json()["title"]) == (403, "step-up required")
    assert "claim the account first" in answer.json()["detail"]
    answer = person.post("/v1/auth/reauth/complete", {"method": "password", "purpose": "peer.erase", "password": "x"})
    assert answer.status_code == 403


# -- keys of the issuer


def test_a_key_that_the_issuer_brings_and_one_that_it_takes_back(gateway: Gateway, server: KeyServer) -> None:
    old = as_human(gateway, gateway.member)
    done(old.get("/v1/auth/me"), 200)
    server.content = key_set(published("two", key("P-256", 2)))
    said = claims(gateway.clock.now, org=org_of(gateway, gateway.member), role="member", email=gateway.member.email)
    new = replace(gateway.member, key=signed(said, kid="two", by=key("P-256", 2)))
    refused(new.get("/v1/auth/me"))
    gateway.clock.advance(COOL_DOWN)
    done(new.get("/v1/auth/me"), 200)
    refused(old.get("/v1/auth/me"))


def test_without_keys_a_token_is_a_503_and_a_key_of_ours_is_as_before(gateway: Gateway, server: KeyServer) -> None:
    server.status = 500
    answer = as_human(gateway, gateway.member).get("/v1/auth/me")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
    done(gateway.member.get("/v1/auth/me"), 200)
    assert len(server.asked) == 1


def test_what_is_no_token_of_the_issuer_fetches_nothing(gateway: Gateway, server: KeyServer) -> None:
    said = claims(gateway.clock.now)
    own = done(gateway.http.post("/v1/auth/api-key-token", json={"api_key": gateway.member.key}), 200)["access_token"]
    foreign = signed({**said, "iss": "https://other.example"}, kid="x")
    for bearer in ("none", gateway.member.key, own, foreign, signed(said, header={"jku": server.url}), signed(said, kid=None)):
        replace(gateway.member, key=bearer).get("/v1/auth/me")
    assert server.asked == []


# -- settings


def test_two_organisations_need_a_claim_that_tells_them_apart(gateway: Gateway, server: KeyServer) -> None:
    data = gateway.services.settings.data
    gateway.services.database.close()
    with pytest.raises(ConfigError, match=r"^`oidc_org_claim` is required, for there are 2 organisations here"):
        gateway._open(data, oidc_issuer=ISSUER, oidc_audience=AUDIENCE, oidc_jwks=server.url)


def test_a_file_that_is_no_key_set_keeps_the_gateway_from_starting(gateway: Gateway, tmp_path: Path) -> None:
    data, file = gateway.services.settings.data, tmp_path / "keys.json"
    file.write_text("{}")
    gateway.services.database.close()
    with pytest.raises(ConfigError, match=r"^`oidc_jwks` must be an https address or a file with a JWK set: it is no JWK set$"):
        gateway._open(data, oidc_issuer=ISSUER, oidc_audience=AUDIENCE, oidc_jwks=str(file), **CLAIMS)
    file.write_bytes(key_set(published("one")))
    gateway._open(data, oidc_issuer=ISSUER, oidc_audience=AUDIENCE, oidc_jwks=str(file), **CLAIMS)
    done(as_human(gateway, replace(gateway.member, http=gateway.http)).get("/v1/auth/me"), 200)
