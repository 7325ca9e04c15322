"""What a connection sees, as its owner looks at it: the rows, and of one row why or why not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Client, Gateway, done
from tests.operations.asking import ABSENT, stored
from tests.operations.connecting import allow, connect, converse
from tests.operations.memory_acts import shared
from tests.world import ROOT

LIST = "/v1/connections/conn-1/visible"
NO_SESSIONS = """@id("guardrails/sessions")
@reason("No remote agent reads what was said in a session.")
forbid (
  principal is Connection,
  action == Action::"memory.read",
  resource is Memory
)
when { resource.layer == "session" };
"""


def visible(client: Client, **query: object) -> list[str]:
    return [item["text"] for item in done(client.get(LIST, **query), 200)["items"]]


def why(gateway: Gateway, row: dict[str, Any], **query: object) -> dict[str, Any]:
    answered: dict[str, Any] = done(gateway.owner.get(f"{LIST}/{row['id']}", **query), 200)
    return answered


def not_for(clause: str) -> dict[str, object]:
    return {"visible": False, "grant_id": None, "policy": None, "failed_clause": clause}


def test_the_rows_that_a_connection_sees_are_listed_with_the_grant_that_lets_it(
    gateway: Gateway, agent: Client, remote: Client
) -> None:
    shown = shared(agent, "shown")
    shared(agent, "another project", project_id="beta")
    shared(agent, "secret", classification="pii")
    grant = allow(gateway, remote)
    assert done(gateway.owner.get(LIST), 200) == {
        "items": [{**shown, "grant_id": grant["id"], "policy": f"grant/{grant['id']}"}],
        "total": 1,
        "next_cursor": None,
        "incomplete": [],
    }


def test_a_preview_is_what_the_connection_gets(gateway: Gateway, agent: Client, remote: Client) -> None:
    for number in range(7):
        shared(agent, f"row {number}", project_id=("alpha", "beta")[number % 2], tags=[str(number % 3)])
    allow(gateway, remote, tags=["0", "1"])
    allow(gateway, remote, actions=["query"], project_id="beta")
    for action in ("search", "read"):
        own = [item["text"] for item in done(remote.get("/v1/memories"), 200)["items"]]
        assert visible(gateway.owner, action=action) == visible(agent, action=action) == own
    assert len(visible(gateway.owner, action="query")) == 3
    assert visible(gateway.owner, action="remember") == []


def test_a_preview_shows_all_pages_and_counts_as_no_request_of_the_connection(
    gateway: Gateway, agent: Client, remote: Client
) -> None:
    rows = [shared(agent, f"row {number}")["id"] for number in range(5)]
    allow(gateway, remote, limits={"requests_per_minute": 1, "max_results": 1, "max_chars": 3})
    seen, cursor = [], None
    for _ in range(3):
        page = done(gateway.owner.get(LIST, limit=2, cursor=cursor), 200)
        assert page["total"] == 5
        seen += [(item["id"], len(item["text"])) for item in page["items"]]
        cursor = page["next_cursor"]
    assert cursor is None
    assert sorted(seen) == sorted((row, 5) for row in rows)
    assert remote.get("/v1/memories").status_code == 200


def test_a_cursor_ends_with_a_change_of_the_grants(gateway: Gateway, agent: Client, remote: Client) -> None:
    for number in range(3):
        shared(agent, f"row {number}")
    allow(gateway, remote)
    cursor = done(gateway.owner.get(LIST, limit=1), 200)["next_cursor"]
    assert gateway.admin.get(LIST, limit=1, cursor=cursor).status_code == 400
    assert gateway.owner.get(LIST, limit=1, cursor=cursor, action="read").status_code == 400
    done(gateway.owner.get(LIST, limit=1, cursor=cursor), 200)
    allow(gateway, remote, project_id="beta")
    refused = gateway.owner.get(LIST, limit=1, cursor=cursor)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["cursor"])


@pytest.mark.parametrize(
    "query", [{"action": "delete"}, {"action": ""}, {"limit": 0}, {"limit": 201}, {"limit": "x"}, {"cursor": "x"}, {"more": 1}]
)
def test_a_malformed_preview_is_400(gateway: Gateway, remote: Client, query: dict[str, object]) -> None:
    refused = gateway.owner.get(LIST, **query)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, list(query))


def test_only_owners_look(gateway: Gateway, agent: Client, remote: Client) -> None:
    row = shared(agent, "shown")
    allow(gateway, remote)
    expected = {
        "owner": (gateway.owner, 200),
        "admin": (gateway.admin, 200),
        "its agent": (agent, 200),
        "member": (gateway.member, 403),
        "auditor": (gateway.auditor, 403),
        "another agent": (gateway.agent("other"), 404),
        "the connection": (remote, 403),
        "a conversation": (converse(gateway, remote), 403),
        "another organisation": (gateway.other_owner, 404),
    }
    for who, (client, status) in expected.items():
        assert [client.get(path).status_code for path in (LIST, f"{LIST}/{row['id']}")] == [status, status], who


def test_nobody_learns_of_a_row_that_is_not_of_the_connections_agent(gateway: Gateway, agent: Client, remote: Client) -> None:
    other, foreign = gateway.agent("other"), gateway.agent(by=gateway.other_owner)
    rows = [shared(who, "elsewhere")["id"] for who in (other, foreign)]
    answers = {
        gateway.owner.request("GET", f"{LIST}/{row}", None, {"X-Request-Id": "r"}).content for row in (*rows, ABSENT, "not-an-id")
    }
    assert len(answers) == 1
    assert gateway.owner.get(f"{LIST}/{rows[0]}").status_code == 404


def test_the_connection_of_a_deleted_agent_sees_nothing(gateway: Gateway, agent: Client, remote: Client) -> None:
    row = shared(agent, "shown")
    allow(gateway, remote)
    done(gateway.owner.delete(f"/v1/agents/{agent.id}"), 204)
    empty = {"items": [], "total": 0, "next_cursor": None, "incomplete": []}
    for action in ("search", "read", "query", "remember"):
        assert done(gateway.owner.get(LIST, action=action), 200) == empty
        assert why(gateway, row, action=action) == not_for("connection")
    assert gateway.other_owner.get(LIST).status_code == 404


# -- why, and why not


def test_a_row_is_seen_by_a_grant(gateway: Gateway, agent: Client, remote: Client) -> None:
    row, grant = shared(agent), allow(gateway, remote)
    seen = {"visible": True, "grant_id": grant["id"], "policy": f"grant/{grant['id']}", "failed_clause": None}
    assert why(gateway, row) == why(gateway, row, action="search") == seen
    assert why(gateway, row, action="query") == not_for("grant")


def test_a_row_is_not_seen_without_a_grant_or_a_live_connection(gateway: Gateway, agent: Client, remote: Client) -> None:
    row = shared(agent)
    assert why(gateway, row) == not_for("grant")
    allow(gateway, remote)
    done(gateway.owner.post("/v1/connections/conn-1/suspend"), 200)
    assert why(gateway, row) == not_for("connection")
    assert visible(gateway.owner) == []


@pytest.mark.parametrize(
    ("changes", "clause"),
    [
        ({"project_id": "beta"}, "project"),
        ({"classification": "confidential"}, "classification"),
        ({"tags": ["other"]}, "tags"),
        ({"tags": ["wanted"], "expires_at": "2026-03-04T10:00:00Z"}, "expired"),
    ],
)
def test_the_clause_that_keeps_a_row_back_is_named(
    gateway: Gateway, agent: Client, remote: Client, changes: dict[str, object], clause: str
) -> None:
    row = shared(agent, **changes)
    allow(gateway, remote, tags=["wanted"])
    allow(gateway, remote, project_id="gamma")
    assert why(gateway, row) == not_for(clause)
    assert visible(gateway.owner) == []


def test_an_untagged_row_fails_by_its_project(gateway: Gateway, agent: Client, remote: Client) -> None:
    row = done(agent.post("/v1/memories", {"text": "untagged"}), 201)["memory"]
    allow(gateway, remote)
    assert why(gateway, row) == not_for("project")


def test_the_provenance_of_a_row_is_named(gateway: Gateway, agent: Client, remote: Client) -> None:
    own = shared(agent, "ours")
    allow(gateway, remote, actions=["remember", "read"], provenance="own_connection")
    theirs = done(remote.post("/v1/memories", {"text": "theirs", "project_id": "alpha"}), 201)["memory"]
    assert why(gateway, own) == not_for("provenance")
    assert why(gateway, theirs)["visible"] is True


def test_a_row_that_was_retracted_or_superseded_says_so(gateway: Gateway, agent: Client, remote: Client) -> None:
    retracted, superseded = shared(agent, "one"), shared(agent, "two")
    allow(gateway, remote)
    done(agent.post(f"/v1/memories/{retracted['id']}/retract"), 200)
    shared(agent, "three", supersedes=superseded["id"])
    assert why(gateway, retracted) == not_for("retracted")
    assert why(gateway, superseded) == not_for("superseded")


def test_a_row_that_a_policy_keeps_back_names_the_policy(tmp_path: Path) -> None:
    policies = tmp_path / "policies"
    shutil.copytree(ROOT / "policies", policies)
    (policies / "guardrails" / "sessions.cedar").write_text(NO_SESSIONS)
    gateway = Gateway(tmp_path / "data", policies=policies)
    agent = gateway.agent()
    remote = connect(gateway, agent, "conn-1")
    fact, session = shared(agent, "a fact"), shared(agent, "a session", layer="session")
    allow(gateway, remote)
    assert visible(gateway.owner, action="read") == ["a fact"]
    assert why(gateway, fact)["visible"] is True
    assert why(gateway, session) == {
        "visible": False,
        "grant_id": None,
        "policy": "guardrails/sessions",
        "failed_clause": None,
    }
    gateway.close()


def test_a_preview_is_recorded_as_a_decision_about_the_connection_that_somebody_else_asked(
    gateway: Gateway, agent: Client, remote: Client
) -> None:
    shared(agent)
    allow(gateway, remote)
    done(gateway.owner.request("GET", LIST, None, {"X-Request-Id": "looking"}), 200)
    rows = stored(
        gateway,
        """SELECT principal_type, action, outcome, strpos(details, 'asked_by') > 0 FROM log
        WHERE request_id = 'looking' ORDER BY seq""",
    )
    assert rows == [
        ("Human", "remote_connection.preview", "allow", False),
        ("Human", "memory.read", "allow", False),
        ("Connection", "memory.search", "allow", True),
    ]


def test_two_connections_of_one_id_never_mix(gateway: Gateway, agent: Client, remote: Client) -> None:
    foreign = gateway.agent(by=gateway.other_owner)
    other = connect(gateway, foreign, "conn-1", by=gateway.other_owner)
    shared(agent, "ours")
    shared(foreign, "theirs")
    allow(gateway, remote)
    allow(gateway, other, by=gateway.other_owner)
    for _ in range(2):
        assert (visible(gateway.owner), visible(gateway.other_owner)) == (["ours"], ["theirs"])


def test_a_preview_shows_nobody_what_they_may_not_read_themselves(tmp_path: Path) -> None:
    own = tmp_path / "policies"
    shutil.copytree(ROOT / "policies", own)
    preview = own / "remote_connection" / "preview.cedar"
    opened = """@id("remote_connection/preview/all")
@reason("Everyone may.")
permit (
  principal,
  action == Action::"remote_connection.preview",
  resource
);
"""
    preview.write_text(preview.read_text() + "\n" + opened)
    gateway = Gateway(tmp_path / "data", policies=own)
    try:
        agent = gateway.agent()
        remote = connect(gateway, agent, "conn-1")
        allow(gateway, remote)
        shared(agent, "for the owners")
        assert gateway.member.get(LIST).status_code == 403
        assert [item["text"] for item in done(gateway.owner.get(LIST), 200)["items"]] == ["for the owners"]
    finally:
        gateway.close()
