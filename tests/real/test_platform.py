"""The published client as a platform: a person is connected, provisioned, and lets go of it again."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from oneclaw import OneclawClient

from tests.real.world import Agent, World, data, done, error

PASSWORD = "a password of one's own"
ORDER = {"action": "ticket.close", "target_type": "ticket", "target_id": "7", "summary": "close the ticket"}


@dataclass(frozen=True, slots=True)
class Connected:
    """A person whom a platform brought, and what it provisioned for them."""

    platform: OneclawClient
    email: str
    user_id: str
    connection_id: str
    claim_token: str
    template_id: str
    agent: Agent


@pytest.fixture
def connected(world: World) -> Connected:
    owner, name = world.http(world.owner.api_key), world.name("platform")
    app = done(owner.post("/v1/org/platform-apps", json={"name": name, "slug": name}), 201)
    wanted = {"name": name, "agents": [{"name": "concierge"}]}
    template = done(owner.post("/v1/org/platform-templates", json=wanted), 201)["template"]
    platform = world.bearer(app["api_key"])
    email = f"{name}@people.example"
    user = platform.platform.upsert_user(email=email)
    assert user.meta.status == 201
    connection = data(user)["connection_id"]
    made = platform.platform.bootstrap_user(connection, template["id"], parameters={"plan": "free"})
    assert made.meta.status == 201
    summary = data(made)["summary"]
    agent = Agent(summary["agent_id"], summary["agent_api_key"])
    return Connected(platform, email, data(user)["user_handle"], connection, made.data["claim_token"], template["id"], agent)


def claim(world: World, connected: Connected, token: str | None = None) -> OneclawClient:
    """The person's own client, after their first sign-in."""
    body = {"claim_token": token or connected.claim_token, "password": PASSWORD}
    return world.bearer(done(world.http().post("/v1/auth/claim", json=body), 200)["access_token"])


def test_a_person_is_found_again(connected: Connected) -> None:
    again = connected.platform.platform.upsert_user(email=connected.email.upper())
    assert again.meta.status == 200
    assert data(again) == {
        "user_handle": connected.user_id,
        "is_new": False,
        "connection_id": connected.connection_id,
        "email": connected.email,
    }


def test_the_agents_observe_the_peer_that_came_with_them(world: World, connected: Connected) -> None:
    agent = world.http(connected.agent.api_key)
    peer = done(agent.get(f"/v1/peers/by-connection/{connected.connection_id}"), 200)["peer"]
    assert (peer["peer_type"], peer["peer_ref"], peer["observer_count"]) == ("platform_connection", connected.connection_id, 1)
    own = done(agent.get(f"/v1/agents/{connected.agent.id}/peer-context"), 200)
    assert own == {"peer_id": peer["id"], "context": "", "characters": 0, "budget": 2000, "facts_available": 0}


def test_a_second_bootstrap_makes_nothing_twice_and_shows_no_key_again(connected: Connected) -> None:
    summary = data(connected.platform.platform.bootstrap_user(connected.connection_id))["summary"]
    assert (summary["agent_ids"], summary["agent_api_key"]) == ([connected.agent.id], None)


def test_a_claim_is_redeemed_once(world: World, connected: Connected) -> None:
    assert data(claim(world, connected).auth.me())["email"] == connected.email
    again = {"claim_token": connected.claim_token, "password": PASSWORD}
    done(world.http().post("/v1/auth/claim", json=again), 401)
    assert data(connected.platform.platform.get_connection(connected.connection_id))["claim"] == {"status": "claimed"}


def test_a_claim_is_issued_again(world: World, connected: Connected) -> None:
    fresh = data(connected.platform.platform.reissue_claim(connected.connection_id))
    assert (fresh["expires_in"], fresh["connection_id"]) == (600, connected.connection_id)
    assert data(claim(world, connected, fresh["claim_token"]).auth.me())["id"] == connected.user_id


def test_a_connection_is_read(connected: Connected) -> None:
    shown = data(connected.platform.platform.get_connection(connected.connection_id))
    about = {"user_id": connected.user_id, "agent_ids": [connected.agent.id], "claim": {"status": "pending"}}
    assert shown | about == shown


def test_approvals_of_a_connection_are_followed(world: World, connected: Connected) -> None:
    platform = connected.platform.platform
    asked = data(world.client(connected.agent.api_key).approvals.request(**ORDER))
    assert asked["user_id"] == connected.user_id
    listed = data(platform.list_connection_approvals(connected.connection_id, status="pending", limit=10, offset=0))
    assert [each["id"] for each in listed["approvals"]] == [asked["id"]]
    assert data(platform.get_connection_approval(connected.connection_id, asked["id"]))["status"] == "pending"
    data(claim(world, connected).approvals.decide(asked["id"], "approve"))
    assert data(platform.get_connection_approval(connected.connection_id, asked["id"]))["status"] == "approved"


def test_a_person_disconnects_and_the_peer_is_archived(world: World, connected: Connected) -> None:
    person = claim(world, connected)
    apps = data(person.platform.list_connected_apps())
    assert apps["connected_apps"] == apps["apps"]
    assert [app["connection_id"] for app in apps["apps"]] == [connected.connection_id]
    peer = done(world.http(world.owner.api_key).get(f"/v1/peers/by-connection/{connected.connection_id}"), 200)["peer"]
    assert person.platform.disconnect_app(connected.connection_id).meta.status == 204
    agent = world.http(connected.agent.api_key)
    done(agent.get(f"/v1/peers/{peer['id']}/context"), 403)
    done(agent.get(f"/v1/agents/{connected.agent.id}/peer-context"), 404)
    kept = done(world.http(world.owner.api_key).get(f"/v1/peers/{peer['id']}"), 200)["peer"]
    assert kept["status"] == "archived"


def test_a_platform_key_reaches_its_own_routes_only(world: World, connected: Connected) -> None:
    assert error(connected.platform.agents.list()) == (403, "auth_error")
    assert error(connected.platform.audit.list()) == (403, "auth_error")
    assert error(connected.platform.platform.get_connection("00000000-0000-4000-8000-000000000000")) == (404, "not_found")
