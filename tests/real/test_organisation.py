"""The published client on keys, members, settings and the audit trail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.real.world import World, data, error

ABSENT = "00000000-0000-4000-8000-000000000000"


def test_a_key_is_made_listed_and_ended(world: World) -> None:
    member = world.client(world.person("member").api_key)
    made = data(member.api_keys.create("laptop", expires_at="2099-01-01T00:00:00Z"))
    assert made["api_key"].startswith("1ck_")
    assert [key["name"] for key in data(member.api_keys.list())["keys"]] == ["tests", "laptop"]
    assert data(world.client(made["api_key"]).auth.me())["role"] == "member"
    assert member.api_keys.delete(made["key"]["id"]).meta.status == 204
    assert error(world.client(made["api_key"]).auth.me()) == (401, "auth_error")


def test_settings_are_read_and_changed_one_at_a_time(world: World) -> None:
    owner = world.client(world.owner.api_key)
    before = data(owner.org.settings())["settings"]
    assert data(owner.org.update_setting("learn_from_posted_events", "false"))["settings"] == {
        **before,
        "learn_from_posted_events": "false",
    }
    assert data(owner.org.update_setting("learn_from_posted_events", "true"))["settings"] == before
    assert error(owner.org.update_setting("no_such_setting", "true")) == (400, "validation_error")


def test_members_are_listed_promoted_and_removed(world: World) -> None:
    owner, member = world.client(world.owner.api_key), world.person("member")
    assert member.email in [each["email"] for each in data(owner.org.members())["members"]]
    assert data(owner.org.update_member_role(member.id, "auditor"))["member"]["role"] == "auditor"
    assert error(world.client(member.api_key).auth.me()) == (401, "auth_error")
    assert owner.org.remove_member(member.id).meta.status == 204
    assert member.email not in [each["email"] for each in data(owner.org.members())["members"]]


def test_the_last_owner_stays(world: World) -> None:
    assert error(world.client(world.owner.api_key).org.remove_member(world.owner.id)) == (409, "unknown")


def test_a_member_is_no_owner(world: World) -> None:
    member = world.person("member")
    assert error(world.client(member.api_key).org.update_member_role(member.id, "owner")) == (403, "auth_error")


def test_audit_events_are_found_by_what_happened(world: World) -> None:
    owner, agent = world.client(world.owner.api_key), world.agent()
    data(owner.agents.update(agent.id, description="changed"))
    found = data(owner.audit.list(action="agent.updated", resource_id=agent.id))
    assert found["count"] == 1
    event = found["events"][0]
    assert (event["actor_type"], event["actor_id"], event["resource_type"]) == ("human", world.owner.id, "agent")
    assert (event["details"], event["created_at"]) == (event["metadata"], event["timestamp"])


def test_audit_events_are_bounded_in_time_and_number(world: World) -> None:
    owner = world.client(world.owner.api_key)
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert data(owner.audit.list(from_time=later))["events"] == []
    assert len(data(owner.audit.list(to_time=later, limit=2))["events"]) == 2
    assert error(owner.audit.list(from_time="yesterday")) == (400, "validation_error")


def test_an_agent_sees_what_it_did_itself_only(world: World) -> None:
    agent = world.agent()
    client = world.client(agent.api_key)
    data(client.approvals.request(action="ticket.close", target_type="ticket", target_id="7", summary="close it"))
    assert {event["actor_id"] for event in data(client.audit.list())["events"]} == {agent.id}


def test_the_chain_holds(world: World) -> None:
    report = data(world.client(world.owner.api_key).audit.verify(limit=10_000))
    assert (report["chain_valid"], report["broken_at_event_id"]) == (True, None)
    assert report["events_verified"] == report["events_checked"] > 0


def test_what_is_not_there_is_not_found(world: World) -> None:
    owner = world.client(world.owner.api_key)
    assert error(owner.agents.get(ABSENT)) == (404, "not_found")
    assert error(owner.approvals.get("not-an-id")) == (404, "not_found")
    assert error(owner.vaults.list()) == (404, "not_found")
