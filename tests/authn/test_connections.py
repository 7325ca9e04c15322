"""Credentials of remote connections, of conversations over them, and of bridges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from gateway.authn.authenticator import Authenticator
from gateway.authn.claims import Claims, read_claims
from gateway.authn.signer import Signer
from gateway.errors import Unauthenticated
from gateway.model.caller import Caller
from tests.authn.builders import NOW, ORG, People, a_connection, an_agent

CONNECTION, AGENT = a_connection(), an_agent()
ELSEWHERE = str(UUID(int=50))


@pytest.fixture
def people() -> People:
    made = People()
    made.agents[AGENT.id] = AGENT
    made.remote_connections[ORG, CONNECTION.id] = CONNECTION
    return made


@pytest.fixture
def authenticator(tmp_path: Path, people: People) -> Authenticator:
    return Authenticator(Signer.create(tmp_path), people, rate_limit=0)


def refused(authenticator: Authenticator, bearer: str, *, seconds: float = 0) -> None:
    with pytest.raises(Unauthenticated) as error:
        authenticator.authenticate(bearer, NOW + timedelta(seconds=seconds))
    assert error.value.detail == "the credential is missing, unknown, expired or revoked"


def conversation(authenticator: Authenticator, lifetime: int = 3600) -> str:
    return authenticator.issue_conversation(CONNECTION, NOW, lifetime).access_token


def test_the_credential_of_a_connection_is_a_bearer(authenticator: Authenticator, people: People) -> None:
    secret, credential = people.key_for(CONNECTION)
    assert authenticator.authenticate(secret, NOW) == Caller("Connection", CONNECTION.id, ORG, credential.id)


def test_the_token_of_a_bridge_stands_for_the_bridge_and_not_for_its_agent(authenticator: Authenticator, people: People) -> None:
    secret, credential = people.bridge_key_for(AGENT)
    assert authenticator.authenticate(secret, NOW) == Caller("Bridge", AGENT.id, ORG, credential.id)
    with pytest.raises(Unauthenticated):
        authenticator.agent_of_key(secret, NOW)


def test_the_credential_of_a_connection_is_exchanged_for_nothing(authenticator: Authenticator, people: People) -> None:
    secret, _ = people.key_for(CONNECTION)
    for exchange in (authenticator.agent_of_key, authenticator.human_of_key):
        with pytest.raises(Unauthenticated):
            exchange(secret, NOW)


def test_a_conversation_is_the_connection_with_a_credential_of_its_own(authenticator: Authenticator) -> None:
    first, second = (authenticator.authenticate(conversation(authenticator), NOW) for _ in range(2))
    end = NOW + timedelta(seconds=3600)
    expected = Caller("Connection", CONNECTION.id, ORG, f"conversation/{first.token_id}", first.token_id, end)
    assert first == expected
    assert second.credential_id != first.credential_id


def test_a_conversation_ends_at_its_end(authenticator: Authenticator) -> None:
    token = authenticator.issue_conversation(CONNECTION, NOW, 120)
    assert token.expires_in == 120
    authenticator.authenticate(token.access_token, NOW + timedelta(seconds=119))
    refused(authenticator, token.access_token, seconds=120)


def suspended(people: People) -> None:
    people.remote_connections[ORG, CONNECTION.id] = replace(CONNECTION, status="suspended")


def revoked(people: People) -> None:
    people.remote_connections[ORG, CONNECTION.id] = replace(CONNECTION, status="revoked")


def gone(people: People) -> None:
    people.remote_connections.clear()


def moved(people: People) -> None:
    people.remote_connections = {(ELSEWHERE, CONNECTION.id): replace(CONNECTION, org_id=ELSEWHERE)}


def agent_inactive(people: People) -> None:
    people.agents[AGENT.id] = replace(AGENT, is_active=False)


def agent_gone(people: People) -> None:
    people.agents.clear()


@pytest.mark.parametrize("ending", [suspended, revoked, gone, moved, agent_inactive, agent_gone])
def test_whatever_ends_a_connection_ends_its_credential_and_its_conversations_at_once(
    authenticator: Authenticator, people: People, ending: Callable[[People], None]
) -> None:
    secret, _ = people.key_for(CONNECTION)
    token = conversation(authenticator)
    for bearer in (secret, token):
        authenticator.authenticate(bearer, NOW)
    ending(people)
    for bearer in (secret, token):
        refused(authenticator, bearer)


def test_a_resumed_connection_has_its_credential_again(authenticator: Authenticator, people: People) -> None:
    secret, _ = people.key_for(CONNECTION)
    suspended(people)
    refused(authenticator, secret)
    people.remote_connections[ORG, CONNECTION.id] = CONNECTION
    assert authenticator.authenticate(secret, NOW).id == CONNECTION.id


def connection_raised(people: People) -> None:
    people.remote_connections[ORG, CONNECTION.id] = replace(CONNECTION, generation=CONNECTION.generation + 1)


def agent_raised(people: People) -> None:
    people.agents[AGENT.id] = replace(AGENT, generation=AGENT.generation + 1)


@pytest.mark.parametrize("raised", [connection_raised, agent_raised])
def test_a_conversation_ends_with_the_generation_of_the_connection_and_with_that_of_its_agent(
    authenticator: Authenticator, people: People, raised: Callable[[People], None]
) -> None:
    secret, _ = people.key_for(CONNECTION)
    token = conversation(authenticator)
    raised(people)
    refused(authenticator, token)
    assert authenticator.authenticate(conversation_now(authenticator, people), NOW).id == CONNECTION.id
    assert authenticator.authenticate(secret, NOW).id == CONNECTION.id


def conversation_now(authenticator: Authenticator, people: People) -> str:
    """A conversation over the connection as it is now."""
    return authenticator.issue_conversation(people.remote_connections[ORG, CONNECTION.id], NOW, 3600).access_token


@pytest.mark.parametrize("ending", [agent_inactive, agent_gone])
def test_a_bridge_ends_with_its_agent(authenticator: Authenticator, people: People, ending: Callable[[People], None]) -> None:
    secret, _ = people.bridge_key_for(AGENT)
    ending(people)
    refused(authenticator, secret)


def test_a_connection_of_the_same_id_elsewhere_is_another(authenticator: Authenticator, people: People) -> None:
    agent = an_agent(51, org_id=ELSEWHERE)
    people.agents[agent.id] = agent
    own, _ = people.key_for(CONNECTION)
    other, _ = people.key_for(replace(CONNECTION, org_id=ELSEWHERE, agent_id=agent.id))
    token = conversation(authenticator)
    assert authenticator.authenticate(own, NOW).org_id == authenticator.authenticate(token, NOW).org_id == ORG
    assert authenticator.authenticate(other, NOW).org_id == ELSEWHERE
    suspended(people)
    refused(authenticator, own)
    refused(authenticator, token)
    assert authenticator.authenticate(other, NOW).org_id == ELSEWHERE


@pytest.mark.parametrize("subject", ["connection:a-b_C1", "connection:" + "a" * 64, f"connection:{UUID(int=1)}"])
def test_a_conversation_names_the_connection_by_the_networks_id(subject: str) -> None:
    claims = Claims("Connection", subject.removeprefix("connection:"), ORG, "", 0, 1, 2, "t")
    assert claims.written([])["sub"] == subject
    assert read_claims(claims.written([])) == claims


@pytest.mark.parametrize(
    "subject",
    [
        "connection:abc",
        "connection:-abcd",
        "connection:" + "a" * 65,
        "connection:ab/cd",
        "connection:",
        "agent:a-b_C1",
        "bridge:abcd",
    ],
)
def test_a_subject_of_no_known_form_is_refused(subject: str) -> None:
    written = Claims("Connection", "conn-1", ORG, "", 0, 1, 2, "t").written([])
    assert read_claims({**written, "sub": subject}) is None
