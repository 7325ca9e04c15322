"""Grants on memory: what may be granted, by whom, and how it ends."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Client, Gateway, done
from tests.operations.asking import ABSENT, actions, restart, stored
from tests.operations.connecting import DID, allow, connect, converse
from tests.operations.memory_acts import NO_HEALTH, shared
from tests.world import ROOT

Standing = tuple[Gateway, Client]
UNLIMITED: dict[str, int | None] = dict.fromkeys(("max_results", "max_chars", "requests_per_minute", "max_tokens", "max_per_day"))
HOSTILE = 'a" ) ; permit(principal,action,resource);//'


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """A gateway and a connection that many refusals leave as they are."""
    made = Gateway(tmp_path_factory.mktemp("standing") / "data")
    yield made, connect(made, made.agent(), "conn-1")
    made.close()


def listed(gateway: Gateway, connection: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done(gateway.owner.get(f"/v1/connections/{connection.id}/grants"), 200)["grants"]
    return found


def sees(remote: Client) -> list[str]:
    """The texts that a connection gets when it lists what it may."""
    return [item["text"] for item in done(remote.get("/v1/memories"), 200)["items"]]


def test_a_grant_is_answered_as_it_is_kept(gateway: Gateway, remote: Client) -> None:
    made = allow(gateway, remote)
    assert made == {
        "id": made["id"],
        "connection_id": "conn-1",
        "actions": ["search", "read"],
        "project_id": "alpha",
        "tags": [],
        "tags_match": "any",
        "classifications": ["public", "internal"],
        "provenance": "any",
        "expires_at": None,
        "limits": UNLIMITED,
        "template_version": 1,
        "created_at": "2026-03-04T10:00:00Z",
        "revoked_at": None,
    }
    assert listed(gateway, remote) == [made]


def test_everything_that_may_be_said_is_kept_in_its_normal_form(gateway: Gateway, remote: Client) -> None:
    said = {
        "actions": ["remember", "query", "query"],
        "project_id": "ALPHA.2",
        "tags": [" Beta ", "a%", "a%"],
        "tags_match": "all",
        "classifications": ["pii", "public"],
        "provenance": "own_connection",
        "expires_at": "2026-03-04T13:00:00+02:00",
        "limits": {"max_results": 5, "max_chars": 100, "requests_per_minute": 1, "max_tokens": 100, "max_per_day": 2},
    }
    made = allow(gateway, remote, **said)
    expected = {
        **said,
        "actions": ["query", "remember"],
        "project_id": "alpha.2",
        "tags": ["Beta", "a%"],
        "classifications": ["public", "pii"],
        "expires_at": "2026-03-04T11:00:00Z",
    }
    assert {name: made[name] for name in said} == expected
    restart(gateway)
    assert listed(gateway, remote) == [made]


@pytest.mark.parametrize(
    ("scope", "actions", "limits"),
    [
        ({"id": "notes.search", "params": {"collection_id": "Alpha"}}, ["search"], {}),
        ({"id": "notes.read", "params": {"collection_id": "alpha"}}, ["search", "read"], {}),
        ({"id": "notes.write", "params": {"collection_id": "alpha"}}, ["search", "read", "remember"], {"max_per_day": 100}),
        (
            {"id": "notes.write", "params": {"collection_id": "alpha", "max_per_day": 1000}},
            ["search", "read", "remember"],
            {"max_per_day": 1000},
        ),
        ({"id": "knowledge.query", "params": {"kb_id": "alpha"}}, ["query"], {"max_tokens": 8000}),
        ({"id": "knowledge.query", "params": {"kb_id": "alpha", "max_tokens": 100}}, ["query"], {"max_tokens": 100}),
    ],
)
def test_a_scope_of_the_network_is_a_grant(
    gateway: Gateway, remote: Client, scope: dict[str, object], actions: list[str], limits: dict[str, int]
) -> None:
    made = allow(gateway, remote, scope=scope)
    assert (made["actions"], made["project_id"], made["limits"]) == (actions, "alpha", UNLIMITED | limits)
    again = allow(gateway, remote, scope=scope, project_id="ALPHA")
    assert (again["actions"], again["project_id"], again["limits"]) == (actions, "alpha", UNLIMITED | limits)


def test_the_smaller_of_a_limit_and_that_of_the_scope_holds(gateway: Gateway, remote: Client) -> None:
    scope = {"id": "notes.write", "params": {"collection_id": "alpha", "max_per_day": 50}}
    for given, expected in ((10, 10), (500, 50)):
        assert allow(gateway, remote, scope=scope, limits={"max_per_day": given})["limits"]["max_per_day"] == expected


WRITE = {"collection_id": "alpha"}
QUERY = {"kb_id": "alpha"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"actions": []}, "actions"),
        ({"actions": None}, "actions"),
        ({"actions": "search"}, "actions"),
        ({"actions": ["delete"]}, "actions"),
        ({"actions": ["search", None]}, "actions"),
        ({"project_id": None}, "project_id"),
        ({"project_id": ""}, "project_id"),
        ({"project_id": " "}, "project_id"),
        ({"project_id": "*"}, "project_id"),
        ({"project_id": "%"}, "project_id"),
        ({"project_id": ["alpha"]}, "project_id"),
        ({"project_id": {"id": "alpha"}}, "project_id"),
        ({"project_id": "a" * 65}, "project_id"),
        ({"project_id": "\u017flug"}, "project_id"),
        ({"project_id": HOSTILE}, "project_id"),
        ({"tags": []}, "tags"),
        ({"tags": None}, "tags"),
        ({"tags": [""]}, "tags"),
        ({"tags": ["a" * 65]}, "tags"),
        ({"tags": [str(number) for number in range(33)]}, "tags"),
        ({"tags_match": None}, "tags_match"),
        ({"tags_match": "some"}, "tags_match"),
        ({"classifications": []}, "classifications"),
        ({"classifications": None}, "classifications"),
        ({"classifications": ["Public"]}, "classifications"),
        ({"provenance": None}, "provenance"),
        ({"provenance": "owner"}, "provenance"),
        ({"expires_at": None}, "expires_at"),
        ({"expires_at": "2026-03-04T10:00:00Z"}, "expires_at"),
        ({"expires_at": "2027-03-04"}, "expires_at"),
        ({"limits": None}, "limits"),
        ({"limits": []}, "limits"),
        ({"limits": {"max_results": 0}}, "limits.max_results"),
        ({"limits": {"max_results": None}}, "limits.max_results"),
        ({"limits": {"max_results": "10"}}, "limits.max_results"),
        ({"limits": {"max_chars": True}}, "limits.max_chars"),
        ({"limits": {"max_chars": 10.5}}, "limits.max_chars"),
        ({"limits": {"max_calls": 1}}, "limits.max_calls"),
        ({"resource": "alpha"}, "resource"),
        ({"scope": {"id": "notes.search", "params": {"collection_id": "alpha"}}}, "actions"),
    ],
)
def test_a_malformed_grant_is_refused_whole(standing: Standing, changes: dict[str, object], field: str) -> None:
    gateway, remote = standing
    body = {"actions": ["search"], "project_id": "alpha", **changes}
    refused = gateway.owner.post("/v1/connections/conn-1/grants", body)
    assert refused.status_code == 400
    assert [name.partition("[")[0] for name in refused.json()["fields"]] == [field]
    assert listed(gateway, remote) == []


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        (None, "scope"),
        ([], "scope"),
        ("notes.search", "scope"),
        ({}, "scope.id"),
        ({"id": "notes.delete", "params": WRITE}, "scope.id"),
        ({"id": ["notes.search"], "params": WRITE}, "scope.id"),
        ({"id": "notes.search"}, "scope.params"),
        ({"id": "notes.search", "params": []}, "scope.params"),
        ({"id": "notes.search", "params": {}}, "scope.params.collection_id"),
        ({"id": "notes.search", "params": QUERY}, "scope.params.kb_id"),
        ({"id": "notes.search", "params": WRITE, "more": 1}, "scope.more"),
        ({"id": "notes.search", "params": {**WRITE, "max_per_day": 1}}, "scope.params.max_per_day"),
        ({"id": "notes.write", "params": {**WRITE, "max_per_day": 0}}, "scope.params.max_per_day"),
        ({"id": "notes.write", "params": {**WRITE, "max_per_day": 1001}}, "scope.params.max_per_day"),
        ({"id": "notes.write", "params": {**WRITE, "max_per_day": None}}, "scope.params.max_per_day"),
        ({"id": "knowledge.query", "params": {**QUERY, "max_tokens": 99}}, "scope.params.max_tokens"),
        ({"id": "knowledge.query", "params": {**QUERY, "max_tokens": "8000"}}, "scope.params.max_tokens"),
        ({"id": "knowledge.query", "params": {"kb_id": HOSTILE}}, "scope.params.kb_id"),
    ],
)
def test_a_malformed_scope_is_refused_whole(standing: Standing, scope: object, field: str) -> None:
    gateway, remote = standing
    refused = gateway.owner.post("/v1/connections/conn-1/grants", {"scope": scope})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])
    assert listed(gateway, remote) == []


def test_a_scope_and_a_project_that_disagree_are_400(gateway: Gateway, remote: Client) -> None:
    body = {"scope": {"id": "notes.search", "params": {"collection_id": "alpha"}}, "project_id": "beta"}
    refused = gateway.owner.post("/v1/connections/conn-1/grants", body)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["project_id"])


def test_a_grant_of_nothing_in_particular_is_400(gateway: Gateway, remote: Client) -> None:
    for body in ({}, {"project_id": "alpha"}, {"actions": ["search"]}):
        assert gateway.owner.post("/v1/connections/conn-1/grants", body).status_code == 400


def test_hostile_tags_are_text(gateway: Gateway, agent: Client, remote: Client) -> None:
    tags = [HOSTILE, "\\", '"', "\U0001f600", "a%_"]
    assert allow(gateway, remote, tags=tags)["tags"] == sorted(tags)
    shared(agent, "hidden", tags=["b"])
    shared(agent, "shown", tags=[HOSTILE])
    assert sees(remote) == ["shown"]


# -- who may


def test_only_people_grant_and_revoke(gateway: Gateway, agent: Client, remote: Client) -> None:
    other = gateway.agent("other")
    kept = allow(gateway, remote)
    expected = {
        "admin": (gateway.admin, 201, 200, 204),
        "member": (gateway.member, 403, 403, 403),
        "its agent": (agent, 403, 200, 403),
        "another agent": (other, 404, 404, 404),
        "the connection": (remote, 403, 403, 403),
        "a conversation": (converse(gateway, remote), 403, 403, 403),
        "another organisation": (gateway.other_owner, 404, 404, 404),
    }
    path = "/v1/connections/conn-1/grants"
    for who, (client, create, listing, revoke) in expected.items():
        made = client.post(path, {"actions": ["search"], "project_id": "alpha"})
        ended = client.delete(f"{path}/{made.json()['grant']['id'] if create == 201 else kept['id']}")
        assert (made.status_code, client.get(path).status_code, ended.status_code) == (create, listing, revoke), who
    assert kept in listed(gateway, remote)


def test_a_grant_of_another_connection_is_not_found(gateway: Gateway, agent: Client, remote: Client) -> None:
    second = connect(gateway, agent, "conn-2")
    made = allow(gateway, second)
    for grant_id in (made["id"], ABSENT, "not-an-id"):
        assert gateway.owner.delete(f"/v1/connections/conn-1/grants/{grant_id}").status_code == 404
    assert listed(gateway, second) == [made]


# -- the end of a grant


def test_a_revoked_grant_shows_nothing(gateway: Gateway, agent: Client, remote: Client) -> None:
    shared(agent, "shown")
    made = allow(gateway, remote)
    talking = converse(gateway, remote)
    assert sees(remote) == sees(talking) == ["shown"]
    for _ in range(2):
        done(gateway.owner.delete(f"/v1/connections/conn-1/grants/{made['id']}"), 204)
    assert sees(remote) == sees(talking) == []
    assert listed(gateway, remote) == [{**made, "revoked_at": "2026-03-04T10:00:00Z"}]
    restart(gateway)
    assert sees(Client(gateway.http, remote.id, remote.key)) == []


def test_a_grant_ends_at_its_end(gateway: Gateway, agent: Client, remote: Client) -> None:
    shared(agent, "shown")
    made = allow(gateway, remote, expires_at="2026-03-04T10:00:10Z")
    gateway.clock.advance(timedelta(seconds=9, milliseconds=999))
    assert sees(remote) == ["shown"]
    gateway.clock.advance(timedelta(milliseconds=1))
    assert sees(remote) == []
    assert listed(gateway, remote) == [made]


def test_grants_of_one_connection_are_a_union(gateway: Gateway, agent: Client, remote: Client) -> None:
    for project in ("alpha", "beta", "gamma"):
        shared(agent, project, project_id=project)
    kept = [allow(gateway, remote, actions=["search"], project_id=project) for project in ("alpha", "beta")]
    assert sorted(sees(remote)) == ["alpha", "beta"]
    done(gateway.owner.delete(f"/v1/connections/conn-1/grants/{kept[0]['id']}"), 204)
    assert sees(remote) == ["beta"]


def test_a_suspended_connection_sees_nothing_and_may_be_granted_something(
    gateway: Gateway, agent: Client, remote: Client
) -> None:
    shared(agent, "shown")
    done(gateway.owner.post("/v1/connections/conn-1/suspend"), 200)
    allow(gateway, remote)
    assert remote.get("/v1/memories").status_code == 401
    done(gateway.owner.post("/v1/connections/conn-1/resume"), 200)
    assert sees(remote) == ["shown"]


def test_a_revoked_connection_is_granted_nothing(gateway: Gateway, remote: Client) -> None:
    done(gateway.owner.post("/v1/connections/conn-1/revoke"), 200)
    refused = gateway.owner.post("/v1/connections/conn-1/grants", {"actions": ["search"], "project_id": "alpha"})
    assert refused.status_code == 409


def test_a_connection_that_replaces_another_does_not_inherit_its_grants(gateway: Gateway, agent: Client, remote: Client) -> None:
    shared(agent, "shown")
    allow(gateway, remote)
    newer = connect(gateway, agent, "conn-2", replaces="conn-1")
    assert sees(newer) == []


def test_a_grant_that_the_policies_forbid_is_refused_by_what_it_would_not_allow(tmp_path: Path) -> None:
    policies = tmp_path / "policies"
    shutil.copytree(ROOT / "policies", policies)
    (policies / "guardrails" / "health.cedar").write_text(NO_HEALTH)
    gateway = Gateway(tmp_path / "data", policies=policies)
    remote = connect(gateway, gateway.agent(), "conn-1")
    for asked, refused in ((["search", "read"], "read"), (["read"], "read"), (["search"], None)):
        body = {"actions": asked, "project_id": "alpha", "tags": ["health"]}
        answer = gateway.owner.post("/v1/connections/conn-1/grants", body)
        if refused is None:
            assert answer.status_code == 201
            continue
        said = f"this grant is refused: it does not allow `{refused}` on a row that fits it"
        assert (answer.status_code, answer.json()["detail"]) == (400, said)
    assert [made["actions"] for made in listed(gateway, remote)] == [["search"]]
    gateway.close()


def test_a_connection_has_only_so_many_live_grants(gateway: Gateway, agent: Client, remote: Client) -> None:
    shared(agent, "shown", project_id="project-49")
    made = [allow(gateway, remote, project_id=f"project-{number}") for number in range(50)]
    body = {"actions": ["search"], "project_id": "one-more"}
    assert gateway.owner.post("/v1/connections/conn-1/grants", body).status_code == 409
    assert sees(remote) == ["shown"]
    done(gateway.owner.delete(f"/v1/connections/conn-1/grants/{made[0]['id']}"), 204)
    done(gateway.owner.post("/v1/connections/conn-1/grants", body), 201)


def test_grants_are_in_the_audit_log_by_their_ids(gateway: Gateway, remote: Client) -> None:
    made = allow(gateway, remote, tags=["a telling tag"])
    done(gateway.owner.delete(f"/v1/connections/conn-1/grants/{made['id']}"), 204)
    assert [action for action in actions(gateway) if action.startswith("grant.")] == ["grant.created", "grant.revoked"]
    audited = str(stored(gateway, "SELECT * FROM log WHERE kind = 'audit'"))
    assert made["id"] in audited
    for hidden in ("a telling tag", DID):
        assert hidden not in audited


def test_grants_of_two_connections_of_one_id_never_mix(gateway: Gateway, agent: Client) -> None:
    foreign = gateway.agent(by=gateway.other_owner)
    own, other = connect(gateway, agent, "shared-id"), connect(gateway, foreign, "shared-id", by=gateway.other_owner)
    shared(agent, "ours")
    shared(foreign, "theirs")
    made = allow(gateway, own)
    assert (sees(own), sees(other)) == (["ours"], [])
    allow(gateway, other, by=gateway.other_owner)
    for _ in range(2):
        assert (sees(own), sees(other)) == (["ours"], ["theirs"])
    assert gateway.other_owner.delete(f"/v1/connections/shared-id/grants/{made['id']}").status_code == 404
    done(gateway.owner.delete(f"/v1/connections/shared-id/grants/{made['id']}"), 204)
    assert (sees(own), sees(other)) == ([], ["theirs"])
