"""What commands about memory print for people: short lines, narrow tables, notes beside them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.cli.command import Asked
from gateway.cli.memory_answers import CLAUSES, show_receipt, show_rows
from gateway.model.coverage import CLAUSES as FAILED
from tests.cli.conftest import Command

GONE, LATER = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


@pytest.fixture
def said(command: Command) -> Any:
    """Run a command that must do what it says, and return the lines and the notes that it prints."""

    def say(*words: str) -> tuple[list[str], str]:
        ended = command(*words)
        assert ended.code == 0, ended
        return ended.out.splitlines(), ended.err

    return say


@pytest.fixture
def remote(command: Command, agent: str) -> tuple[str, str]:
    """A connection of the agent: its id and its credential."""
    made = command("remote", "create", "--agent", agent, "--did", "did:web:peer.example", "--json").json
    return made["connection"]["id"], made["credential"]


def test_remembering_and_tagging_anew_are_told_in_lines(said: Any, agent: str) -> None:
    [line], _ = said("remember", "a text", "--agent", agent, "--project", "Alpha", "--tag", "Team")
    row = line.split()[1].rstrip(":")
    assert line == f"remembered {row}: project alpha, internal, tags Team"
    assert said("memory", "retag", row, "--no-project", "--classification", "pii") == (
        [
            f"tagged {row} anew",
            "before  project alpha, internal, tags Team",
            "after   no project (no grant reaches it), pii, tags Team",
        ],
        "",
    )
    [hidden], _ = said("memory", "retract", row)
    assert hidden == f"hidden {row}: its owner still lists it with --state all"


def test_an_agent_and_a_connection_are_told_with_what_is_shown_once(said: Any, agent: str) -> None:
    made, _ = said("agent", "create", "--name", "helper")
    assert [line.split()[0] for line in made] == ["id", "name", "api_key"]
    [connected, credential], _ = said("remote", "create", "--agent", agent, "--did", "did:web:a.example", "--id", f"to-{agent}")
    assert connected == f"to-{agent} connects did:web:a.example to the agent {agent}; its credential, shown once:"
    assert credential.startswith("pgc_")
    [deleted], _ = said("agent", "delete", agent)
    assert deleted == f"done; what it remembers stays until it is forgotten: peergate memory list --agent {agent}"


def test_rows_are_listed_with_their_source_and_their_state(said: Any, agent: str, remote: tuple[str, str]) -> None:
    said("grant", "create", remote[0], "--project", "alpha", "--action", "remember", "--action", "search")
    said("remember", "from afar", "--project", "alpha", "--key", remote[1])
    row = said("remember", "ours", "--agent", agent)[0][0].split()[1].rstrip(":")
    (heading, newest, oldest), _ = said("memory", "list", "--agent", agent)
    assert heading.split() == ["ID", "LAYER", "PROJECT_ID", "CLASSIFICATION", "TAGS", "SOURCE", "TEXT"]
    assert newest.split()[1:] == ["fact", "-", "internal", "-", "-", "ours"]
    assert oldest.split()[1:] == ["fact", "alpha", "internal", "-", remote[0], "from", "afar"]
    said("memory", "retract", row)
    (heading, newest, _), _ = said("memory", "list", "--agent", agent, "--state", "all")
    assert heading.split()[:3] == ["ID", "LAYER", "STATE"]
    assert newest.split()[2] == "retracted"
    (heading, found), _ = said("memory", "search", "afar", "--agent", agent)
    assert (heading.split()[0], len(found.split()[0])) == ("SCORE", len("0.123"))
    (heading, _), _ = said("memory", "search", "afar", "--key", remote[1])
    assert "SOURCE" not in heading


def test_each_state_has_its_word_and_rows_that_lack_an_index_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": "1", "layer": "fact", "project_id": None, "classification": "public", "tags": [], "provenance": [], "text": "x"}
    states: list[dict[str, object]] = [
        {},
        {"expires_at": LATER},
        {"expires_at": GONE},
        {"superseded_by": "2"},
        {"retracted_at": GONE, "superseded_by": "2", "expires_at": GONE},
    ]
    answer = {"items": [row | state for state in states], "total": 5, "next_cursor": None, "incomplete": ["fact"]}
    show_rows(answer, Asked({"state": "all"}, lambda path: None))
    printed = capsys.readouterr()
    found = [line.split()[2] for line in printed.out.splitlines()[1:]]
    assert found == ["live", "live", "expired", "superseded", "retracted"]
    assert printed.err == "note: some rows are not indexed for search by meaning: peergate memory index\n"


def test_grants_are_listed_with_what_they_say_and_nothing_else(said: Any, agent: str, remote: tuple[str, str]) -> None:
    said("remember", "a text", "--agent", agent, "--project", "alpha")
    create = ("grant", "create", remote[0], "--project", "alpha", "--action", "search")
    (granted, tiers), noted = said(*create)
    assert granted == f"granted {granted.split()[1].rstrip(':')}: {remote[0]} may search in alpha"
    assert (tiers, noted) == ("classifications  public, internal", "")
    columns = ["ID", "PROJECT_ID", "ACTIONS", "CLASSIFICATIONS", "EXPIRES_AT", "REVOKED_AT"]
    assert said("grant", "list", remote[0])[0][0].split() == columns
    said(*create, "--provenance", "owner_only", "--limits", '{"max_results": 3, "max_chars": 9}')
    heading, _, limited = said("grant", "list", remote[0])[0]
    assert heading.split() == [*columns[:4], "PROVENANCE", "LIMITS", *columns[4:]]
    assert "owner_only" in limited
    assert {"max_results 3", "max_chars 9"} <= {cell.strip() for cell in limited.replace(", ", "  ").split("  ")}


def test_a_grant_for_a_project_that_nothing_is_in_is_noted(said: Any, command: Command, remote: tuple[str, str]) -> None:
    create = ("grant", "create", remote[0], "--action", "search", "--project", "Alhpa")
    assert said(*create)[1] == "note: no memory of this agent is in `alhpa` yet\n"
    assert command(*create, "--json").err == ""


def test_what_is_visible_is_told_in_words(said: Any, agent: str, remote: tuple[str, str]) -> None:
    row = said("remember", "a text", "--agent", agent, "--project", "alpha")[0][0].split()[1].rstrip(":")
    visible = ("memory", "visible", "--connection", remote[0])
    assert said(*visible)[0] == ["it sees nothing now: no grant that holds covers any row"]
    assert said(*visible, "--id", row)[0] == ["not seen: no grant that holds now allows this action"]
    grant = said("grant", "create", remote[0], "--project", "alpha", "--action", "search", "--action", "read")[0][0]
    assert said(*visible)[0][0].split() == ["ID", "GRANT_ID", "LAYER", "PROJECT_ID", "CLASSIFICATION", "TEXT"]
    assert said(*visible, "--id", row)[0] == [f"seen, by the grant {grant.split()[1].rstrip(':')}"]
    said("remote", "suspend", remote[0])
    assert said(*visible)[0] == ["it sees nothing: the connection is suspended, until it is resumed"]
    said("remote", "revoke", remote[0])
    assert said(*visible)[0] == ["it sees nothing: the connection is revoked, for good"]
    [why], _ = said(*visible, "--id", row)
    assert why == "not seen: the connection is suspended or revoked, or belongs to another agent"


def test_each_clause_that_can_fail_has_a_sentence() -> None:
    assert CLAUSES.keys() == set(FAILED)


def test_a_query_that_nothing_fits_says_so(said: Any, agent: str) -> None:
    asked = said("memory", "query", "anything", "--project", "alpha", "--agent", agent)
    assert asked == (["nothing that you may query fits"], "")


def test_forgetting_counts_layers_and_names_what_is_barred(said: Any, agent: str, remote: tuple[str, str]) -> None:
    said("grant", "create", remote[0], "--project", "alpha", "--action", "remember")
    said("remember", "from afar", "--project", "alpha", "--key", remote[1])
    forget = ("forget", "--connection", remote[0], "--agent", agent)
    counts = ["fact      1", "timeline  0", "session   0", "chunk     0", "total     1"]
    assert said(*forget, "--dry-run") == ([*counts, f"this bars {remote[0]} for good"], "")
    assert said(*forget) == ([*counts, "1 row deleted", f"barred for good: {remote[0]}"], "")


def test_forgetting_nothing_is_noted(said: Any, command: Command, agent: str) -> None:
    forget = ("forget", "--project", "alpha", "--agent", agent)
    lines, noted = said(*forget)
    assert (lines[-1], noted) == (
        "0 rows deleted",
        "note: nothing matched: check the id, the DID or the project, and the agent\n",
    )
    assert command(*forget, "--json").err == ""


@pytest.mark.parametrize(("depth", "done"), [("hide", "hidden"), ("delete", "deleted"), ("erase", "erased")])
def test_a_receipt_says_what_was_done(capsys: pytest.CaptureFixture[str], depth: str, done: str) -> None:
    counts = {"fact": 2, "timeline": 0, "session": 0, "chunk": 0, "memory_tokens": 9}
    show_receipt(
        {"dry_run": False, "depth": depth, "counts": counts, "total": 2, "connections": []}, Asked({}, lambda path: None)
    )
    assert capsys.readouterr().out.splitlines()[4:] == ["total     2", f"2 rows {done}"]


# -- errors


def test_a_sentence_about_a_field_names_the_flag_that_fills_it(command: Command, agent: str) -> None:
    assert command("remember", "a text", "--agent", agent, "--project", "a b").err.endswith("got `a b` (--project)\n")
    assert command("remember", "a text", "--agent", agent, "--tag", "").err.endswith("(--tag)\n")
    assert command("remember", "a text").err.endswith("(--agent)\n")
    assert command("remember", "a text", "--agent", agent, "--layer", "poem").err.endswith("got `poem`\n")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{max_results: 5}", "`--limits` is not JSON: "),
        ('{"max_results": NaN}', "`--limits` is not JSON: NaN is no number"),
        ("[" * 100_000, "`--limits` is not JSON: "),
        ("5", "`limits` must be an object"),
        ('{"max_results": "x"}', "`limits.max_results` must be a whole number"),
    ],
)
def test_limits_that_are_no_json_object_are_one_line_that_names_the_flag(
    command: Command, remote: tuple[str, str], given: str, says: str
) -> None:
    refused = command("grant", "create", remote[0], "--project", "alpha", "--action", "search", "--limits", given)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"peergate: {says}")
    assert "limits" in refused.err
    assert refused.err.count("\n") == 1


def test_a_text_that_is_no_text_is_one_line(command: Command, agent: str) -> None:
    refused = command("remember", "\udcff", "--agent", agent)
    assert (refused.code, refused.out, refused.err) == (2, "", "peergate: what is given must be UTF-8\n")


def test_with_json_an_error_is_the_problem_that_the_gateway_answered(command: Command, agent: str) -> None:
    refused = command("memory", "show", agent, "--json")
    assert (refused.code, refused.out) == (1, "")
    assert json.loads(refused.err) == {
        "type": "urn:peergate:problem:not-found",
        "title": "not found",
        "status": 404,
        "detail": "there is no such resource",
    }


def test_with_json_an_error_of_the_command_itself_is_json_too(command: Command) -> None:
    refused = command("memory", "list", "--json", "--url", "http://127.0.0.1:9")
    assert (refused.code, refused.out) == (2, "")
    assert json.loads(refused.err) == {"detail": "no key for http://127.0.0.1:9: set PEERGATE_KEY, or run `peergate login`"}


def test_help_shows_the_words_that_the_gateway_knows(command: Command) -> None:
    for words, shown in [
        ("remember", "{public,internal,confidential,pii}"),
        ("remember", "{fact,timeline,session,chunk}"),
        ("memory search", "{keyword,semantic,hybrid}"),
        ("memory list", "{live,all}"),
        ("memory list", "{any,all}"),
        ("memory visible", "{search,read,query,remember}"),
        ("grant create", "{any,owner_only,own_connection}"),
        ("forget", "{hide,delete,erase}"),
    ]:
        assert shown in command(*words.split(), "--help").out
