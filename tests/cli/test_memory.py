"""Memory from the command line: remembered, found, granted, explained and forgotten, at a gateway that runs."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.embedding import local
from tests.cli.conftest import Command, Installed
from tests.cli.serving import gateway
from tests.real.world import done


@pytest.fixture
def asked(command: Command) -> Any:
    """Run a command that must do what it says, and return its JSON."""

    def ask(*words: str) -> Any:
        ended = command(*words, "--json")
        assert (ended.code, ended.err) == (0, ""), ended
        return ended.json if ended.out else None

    return ask


def test_a_row_is_remembered_found_tagged_anew_and_deleted(asked: Any, command: Command, agent: str) -> None:
    tagged = ("--project", "alpha", "--tag", "people", "--tag", "hiring", "--classification", "public")
    row = asked("remember", "Sarah joined alpha as ML lead", *tagged, "--agent", agent)["memory"]
    assert (row["project_id"], row["tags"], row["classification"]) == ("alpha", ["hiring", "people"], "public")
    asked("remember", "tell nobody", "--agent", agent)
    assert [item["id"] for item in asked("memory", "search", "sarah", "--agent", agent)["items"]] == [row["id"]]
    listed = ("memory", "list", "--agent", agent, "--tag", "people", "--tag", "none", "--layer", "fact")
    assert [item["id"] for item in asked(*listed)["items"]] == [row["id"]]
    assert [item["text"] for item in asked("memory", "untagged", "--agent", agent)["items"]] == ["tell nobody"]
    query = command("memory", "query", "who joined", "--project", "alpha", "--agent", agent)
    assert (query.code, query.out) == (0, "Sarah joined alpha as ML lead\n")
    narrowed = asked("memory", "retag", row["id"], "--no-project", "--no-tags")["after"]
    assert (narrowed["project_id"], narrowed["tags"]) == (None, [])
    assert asked("memory", "retract", row["id"])["memory"]["retracted_at"] is not None
    assert asked("memory", "show", row["id"])["memory"]["project_id"] is None
    assert asked("memory", "delete", row["id"]) is None
    assert command("memory", "show", row["id"]).code == 1


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--classification", "secret"), "classification"),
        (("--project", "a b"), "project_id"),
        (("--project", ""), "project_id"),
        (("--tag", "x" * 65), "tags"),
        (("--layer", "poem"), "layer"),
    ],
)
def test_a_bad_tier_slug_or_tag_is_one_clear_line(command: Command, agent: str, words: tuple[str, ...], named: str) -> None:
    refused = command("remember", "a text", "--agent", agent, *words)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"peergate: `{named}")
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize("twice", [("--project", "a", "--no-project"), ("--tag", "a", "--no-tags")])
@pytest.mark.usefixtures("agent")
def test_what_is_given_and_taken_away_at_once_is_bad_usage(command: Command, twice: tuple[str, ...]) -> None:
    refused = command("memory", "retag", "some-row", *twice)
    assert (refused.code, refused.err) == (2, f"peergate: `{twice[2]}`: `{refused.err.split('`')[3]}` is given already\n")


def test_a_list_says_how_to_go_on(command: Command, asked: Any, agent: str) -> None:
    for number in range(3):
        asked("remember", f"row {number}", "--project", "alpha", "--agent", agent)
    lines = command("memory", "list", "--agent", agent, "--limit", "2").out.splitlines()
    assert lines[-1].startswith("2 of 3; --cursor ")
    rest = asked("memory", "list", "--agent", agent, "--limit", "2", "--cursor", lines[-1].split()[4])
    assert [item["text"] for item in rest["items"]] == ["row 0"]


def test_a_remote_agent_sees_what_it_is_granted_until_that_ends(asked: Any, command: Command, agent: str) -> None:
    seen = asked("remember", "seen", "--project", "alpha", "--agent", agent)["memory"]["id"]
    hidden = asked("remember", "hidden", "--project", "alpha", "--classification", "pii", "--agent", agent)["memory"]["id"]
    made = asked("remote", "create", "--agent", agent, "--did", "did:web:peer.example", "--name", "a peer")
    remote, by_remote = made["connection"]["id"], ("--key", made["credential"])
    assert [each["id"] for each in asked("remote", "list", "--agent", agent)["connections"]] == [remote]
    grant = asked("grant", "create", remote, "--project", "alpha", "--action", "search", "--action", "read")["grant"]
    assert [each["id"] for each in asked("grant", "list", remote)["grants"]] == [grant["id"]]
    assert [item["text"] for item in asked("memory", "search", "seen hidden", *by_remote)["items"]] == ["seen"]
    assert [item["id"] for item in asked("memory", "visible", "--connection", remote)["items"]] == [seen]
    why = asked("memory", "visible", "--connection", remote, "--id", hidden)
    assert (why["visible"], why["failed_clause"]) == (False, "classification")
    assert asked("memory", "visible", "--connection", remote, "--id", seen)["grant_id"] == grant["id"]
    assert asked("remote", "converse", remote)["connection_id"] == remote
    assert asked("remote", "suspend", remote)["connection"]["status"] == "suspended"
    assert command("memory", "search", "seen", *by_remote).code == 1
    assert asked("remote", "resume", remote)["connection"]["status"] == "active"
    assert asked("grant", "revoke", remote, grant["id"]) is None
    assert asked("memory", "search", "seen", *by_remote)["items"] == []
    renewed = asked("remote", "credential", remote)["credential"]
    assert command("memory", "search", "seen", *by_remote).code == 1
    assert asked("memory", "search", "seen", "--key", renewed)["items"] == []
    assert asked("remote", "revoke", remote)["connection"]["status"] == "revoked"
    assert asked("remote", "show", remote)["connection"]["status"] == "revoked"
    assert asked("agent", "bridge-token", agent)["agent_id"] == agent


def test_a_grant_may_name_a_scope_of_the_network(asked: Any, agent: str) -> None:
    remote = asked("remote", "create", "--agent", agent, "--did", "did:web:peer.example")["connection"]["id"]
    scope = '{"id": "notes.write", "params": {"collection_id": "alpha", "max_per_day": 5}}'
    grant = asked("grant", "create", remote, "--scope", scope, "--limits", '{"max_results": 3}')["grant"]
    assert (grant["project_id"], sorted(grant["actions"])) == ("alpha", ["read", "remember", "search"])


def test_what_is_forgotten_is_counted_first_when_asked(asked: Any, command: Command, agent: str) -> None:
    row = asked("remember", "a text", "--project", "alpha", "--agent", agent)["memory"]["id"]
    forget = ("forget", "--project", "alpha", "--agent", agent)
    assert [asked(*forget, "--dry-run")[name] for name in ("dry_run", "total")] == [True, 1]
    assert asked("memory", "show", row)["memory"]["id"] == row
    assert [asked(*forget, "--depth", "hide")["total"], asked(*forget)["total"], asked(*forget)["total"]] == [1, 1, 0]
    assert command("memory", "show", row).code == 1
    assert command("forget", "--agent", agent).code == 2
    assert command(*forget, "--id", row).code == 2


def test_without_a_model_meaning_is_refused_and_the_extra_named(command: Command, agent: str) -> None:
    for words in (("memory", "search", "x", "--mode", "semantic"), ("memory", "index")):
        refused = command(*words, "--agent", agent)
        assert (refused.code, refused.out) == (2, "")
        assert "[semantic]" in refused.err


@pytest.mark.skipif(not local.installed(), reason="the extra `semantic` is not installed")
def test_rows_from_before_the_model_are_found_by_meaning_once_they_are_indexed(
    asked: Any, installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateway(installed.data, installed.owner, "off") as before:
        agent = before.agent().id
        http = before.http(before.owner.api_key)
        for text in ["a feline rests on a rug", *(f"line {number} of the budget" for number in range(120))]:
            done(http.post("/v1/memories", json={"text": text, "project_id": "alpha", "agent_id": agent}), 201)
    with gateway(installed.data, installed.owner, "local") as after:
        monkeypatch.setenv("PEERGATE_URL", after.url)
        monkeypatch.setenv("PEERGATE_KEY", after.owner.api_key)
        search = ("memory", "search", "a cat on a mat", "--mode", "semantic", "--agent", agent)
        assert asked(*search)["incomplete"] == ["fact"]
        assert asked("memory", "index", "--agent", agent) == {"indexed": 121, "remaining": 0, "model": local.MODEL}
        found = asked(*search)
        assert (found["incomplete"], found["items"][0]["text"]) == ([], "a feline rests on a rug")
        assert asked("memory", "index", "--agent", agent)["indexed"] == 0
