"""The published client signs in: keys against tokens, and what it does when a key is no good."""

from __future__ import annotations

import time

import pytest
from oneclaw import OneclawError

from tests.real.world import World, data, done, error


def test_a_user_key_is_exchanged_for_a_token_when_the_client_is_made(world: World) -> None:
    client = world.client(world.owner.api_key)
    token = client._http.get_token()
    assert token is not None
    assert len(token.split(".")) == 3
    assert client._http._token_expires_at - time.time() > 60
    assert data(client.auth.me())["email"] == world.owner.email


def test_a_password_signs_in(world: World) -> None:
    client = world.bearer("none")
    assert data(client.auth.login(world.owner.email, world.owner.password))["token_type"] == "Bearer"
    assert data(client.auth.me())["id"] == world.owner.id


def test_a_wrong_password_is_an_auth_error(world: World) -> None:
    assert error(world.bearer("none").auth.login(world.person("member").email, "wrong")) == (401, "auth_error")


def test_a_user_key_that_is_no_good_shows_at_the_first_call(world: World) -> None:
    assert error(world.client("1ck_nobody").auth.me()) == (401, "auth_error")


def test_an_agent_key_is_exchanged_and_names_its_agent(world: World) -> None:
    agent = world.agent()
    client = world.client(agent.api_key)
    assert client.resolved_agent_id is None
    assert data(client.agents.me())["id"] == agent.id
    assert client.resolved_agent_id == agent.id


def test_an_agent_token_is_kept_until_a_minute_before_its_end(world: World) -> None:
    client = world.client(world.agent(token_ttl_seconds=86_400).api_key)
    before = time.time()
    data(client.agents.me())
    first = client._http.get_token()
    assert before + 86_400 <= client._http._token_expires_at <= time.time() + 86_400
    data(client.agents.me())
    assert client._http.get_token() == first
    client._http._token_expires_at = time.time() + 59
    data(client.agents.me())
    assert client._http.get_token() != first


def test_an_agent_key_with_its_id_is_exchanged(world: World) -> None:
    agent = world.agent()
    assert data(world.client(agent.api_key, agent_id=agent.id).agents.me())["id"] == agent.id


@pytest.mark.parametrize("case", ["unknown", "of another agent", "rotated out"])
def test_an_agent_key_that_cannot_be_exchanged_raises(world: World, case: str) -> None:
    agent, other = world.agent(), world.agent()
    named = {"agent_id": other.id} if case == "of another agent" else {}
    key = "ocv_nobody" if case == "unknown" else agent.api_key
    if case == "rotated out":
        data(world.client(world.owner.api_key).agents.rotate_key(agent.id))
    with pytest.raises(OneclawError, match="HTTP 401") as raised:
        world.client(key, **named).agents.me()
    assert (raised.value.status, raised.value.error_type) == (401, "auth_error")


def test_a_key_is_a_bearer_without_an_exchange(world: World) -> None:
    agent = world.agent()
    assert done(world.http(agent.api_key).get("/v1/agents/me"), 200)["id"] == agent.id
    assert done(world.http(world.owner.api_key).get("/v1/auth/me"), 200)["id"] == world.owner.id


def test_a_revoked_token_is_no_good_any_more(world: World) -> None:
    client = world.client(world.owner.api_key)
    assert client.auth.revoke_token().meta.status == 204
    assert error(client.auth.me()) == (401, "auth_error")


def test_a_refresh_says_that_there_is_none(world: World) -> None:
    assert error(world.client(world.owner.api_key).auth.refresh()) == (400, "validation_error")
