"""`peergate policy add` and the verbs beside it: cases first, then the gateway, from the shadow to force and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Gateway
from tests.cli.conftest import Command

TEXT = """@id("night")
@reason("Agents do not read at night.")
forbid (principal is Agent, action == Action::"peer.read", resource)
when { context.clock.minute < 360 };
"""
MOMENT = {"now": {"__extn": {"fn": "datetime", "arg": "2026-03-04T02:00:00Z"}}, "clock": {"weekday": 3, "date": "2026-03-04"}}


def case(name: str, minute: int, **answer: object) -> dict[str, Any]:
    context = {**MOMENT, "clock": {**MOMENT["clock"], "minute": minute}}
    request = {"principal": 'Agent::"listed"', "action": 'Action::"peer.read"', "resource": 'Peer::"peer"', "context": context}
    shared = {"entities": [], "entities_from": "casts/household.json", "num_errors": 0, "reason_exact": True}
    return {"name": name, "request": request, **shared, **answer}


NIGHT = case("at two", 120, decision="deny", reason=["night"], deny_kind="forbidden")
DAY = case("at ten", 600, decision="allow", reason=["peer/read/observer"])


@pytest.fixture
def stopped(tmp_path: Path) -> Gateway:
    made = Gateway(tmp_path / "data")
    made.close()
    return made


@pytest.fixture
def keys(stopped: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str | Path, ...]:
    """A stopped gateway, and the key of its security team."""
    made = stopped
    monkeypatch.setenv("PEERGATE_KEY", made.security.key)
    monkeypatch.setenv("PEERGATE_CONFIRM", made.security.password)
    return ("--data", tmp_path / "data")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "own.cedar"
    file.write_text(TEXT)
    (tmp_path / "own_test.json").write_text(json.dumps([NIGHT, DAY]))
    return file


def test_a_policy_goes_from_its_file_into_the_shadow_into_force_and_back(
    command: Command, own: Path, keys: tuple[str | Path, ...]
) -> None:
    added = command("policy", "add", own, "--name", "night", "--json", *keys)
    assert (added.code, added.err) == (0, "")
    assert (added.json["cedar_text"], added.json["name"], added.json["enforcement_status"]) == (TEXT, "night", "shadow")
    id_ = added.json["id"]
    reported = command("policy", "shadow-report", *keys)
    assert (reported.code, reported.out.splitlines()[1].split()[0]) == (0, id_)
    for verb, version, status in (("promote", "1", "enforce"), ("rollback", "2", "shadow")):
        assert command("policy", verb, id_, "--version", version, "--json", *keys).json["enforcement_status"] == status
    own.write_text(TEXT.replace("360", "300"))
    assert command("policy", "edit", id_, own, "--json", *keys).json["version"] == 3
    read = command("policy", "read", id_, "--json", *keys)
    assert "300" in read.json["cedar_text"]
    assert [row["version"] for row in command("policy", "versions", id_, "--json", *keys).json["versions"]] == [1, 2, 3]
    assert command("policy", "delete", id_, *keys).code == 0
    assert command("policy", "list", "--json", *keys).json == {"policies": []}


@pytest.mark.parametrize(
    ("cases", "text", "told"),
    [
        ([NIGHT, {**DAY, "decision": "deny"}], TEXT, "at ten: is allow (by peer/read/observer), not deny"),
        ([{**DAY, "reason": ["night"]}], TEXT, "at ten: is not decided by night"),
        ([NIGHT], "forbid (principal, action)", "the text does not load"),
        ([NIGHT], TEXT.replace("night", "guardrails/night", 1), "`@id` is reserved"),
        ([], TEXT, "is not a list of cases"),
    ],
    ids=["decision", "reason", "text", "reserved", "cases"],
)
def test_where_a_case_fails_or_the_text_does_not_load_nothing_is_sent(
    command: Command, own: Path, keys: tuple[str | Path, ...], cases: list[object], text: str, told: str
) -> None:
    own.write_text(text)
    own.with_name("own_test.json").write_text(json.dumps(cases))
    refused = command("policy", "add", own, *keys)
    assert (refused.code, refused.out) == (1, "")
    assert told in refused.err
    assert command("policy", "list", "--json", *keys).json == {"policies": []}


def test_a_text_without_cases_is_sent_with_a_note(command: Command, own: Path, keys: tuple[str | Path, ...]) -> None:
    own.with_name("own_test.json").unlink()
    added = command("policy", "add", own, "--json", *keys)
    assert (added.code, added.json["enforcement_status"]) == (0, "shadow")
    assert added.err.startswith("note: there is no ")


def test_a_file_that_is_not_there_is_bad_usage(command: Command, tmp_path: Path, keys: tuple[str | Path, ...]) -> None:
    gone = tmp_path / "gone.cedar"
    for verb in ("add", "try"):
        ended = command("policy", verb, gone, *keys)
        assert (ended.code, ended.err.startswith(f"peergate: `FILE`: cannot read {gone}: ")) == (2, True)
    assert command("policy", "add", tmp_path, *keys).code == 2


def test_a_gateway_is_asked_with_a_text_that_is_tried(command: Command, own: Path, keys: tuple[str | Path, ...]) -> None:
    agent = 'Agent::"00000000-0000-4000-8000-000000000000"'
    words = ("--principal", agent, "--action", "peer.read", "--resource", 'Peer::"x"', "--file", own)
    asked = command("policy", "ask", *words, "--json", *keys)
    assert (asked.code, asked.json["decision"], asked.json["enforcement_status"]) == (1, "deny", "shadow")


def test_an_allowed_question_ends_with_nought_and_one_of_no_action_is_bad_usage(
    command: Command, own: Path, stopped: Gateway, keys: tuple[str | Path, ...]
) -> None:
    org_id = command("policy", "add", own, "--json", *keys).json["org_id"]
    about = ("--principal", f'Human::"{stopped.security.id}"', "--resource", f'Org::"{org_id}"')
    assert command("policy", "ask", *about, "--action", "me.read", *keys).code == 0
    unknown = command("policy", "ask", *about, "--action", "me.fly", *keys)
    assert (unknown.code, unknown.out) == (2, "")
    assert unknown.err.startswith("peergate: `--action`: `me.fly` is no action of the schema; near it are me.change_password, ")


def test_a_policy_without_a_name_is_called_after_its_file_and_its_cases_are_counted(
    command: Command, own: Path, keys: tuple[str | Path, ...]
) -> None:
    added = command("policy", "add", own, *keys)
    assert (added.code, added.out.splitlines()[0]) == (0, "2 cases hold")
    assert [policy["name"] for policy in command("policy", "list", "--json", *keys).json["policies"]] == ["own"]


def test_a_step_that_nobody_confirms_says_how(
    command: Command, own: Path, keys: tuple[str | Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = command("policy", "add", own, "--json", *keys).json["id"]
    monkeypatch.delenv("PEERGATE_CONFIRM")
    ended = command("policy", "promote", id_, "--version", "1", *keys)
    assert (ended.code, ended.out) == (1, "")
    assert "\nset PEERGATE_CONFIRM, or run it on a terminal\n" in ended.err
