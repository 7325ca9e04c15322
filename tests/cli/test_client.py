"""Client commands: against a URL, against a data directory in this process, and with a stored login."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pyotp
import pytest

from tests.cli.conftest import Command, Installed
from tests.real.world import World

RULES = {"rules": [{"action_type": "refund.create", "mode": "allow"}]}


# -- a day with it


@pytest.mark.usefixtures("as_owner")
def test_a_person_is_observed_predicted_corrected_and_erased(
    command: Command, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*words: str) -> object:
        done = command(*words, "--json")
        assert (done.code, done.err) == (0, ""), done
        return done.json if done.out else None

    (tmp_path / "rules.json").write_text(json.dumps(RULES))
    agent = asked("agent", "create", "--name", "assistant", "--rules", f"@{tmp_path}/rules.json")
    assert agent["action_approval_policy"]["rules"][0]["mode"] == "allow"
    person = world.person("member")
    created = ("peer", "create", "--peer-type", "user", "--peer-ref", person.id, "--observers", agent["id"])
    peer = asked(*created)["peer"]["id"]
    content = {"action": "refund.create", "decision": "approve", "payload": {"amount_usd": "5", "recipient": "a@b.co"}}
    by_agent = ("--key", agent["api_key"])
    for _ in range(3):
        asked("peer", "event", peer, "--event-type", "approval", "--content", json.dumps(content), *by_agent)
    key = asked("peer", "show", peer)["facts"][0]["fact_key"]
    assert asked("peer", "why", peer, key)["fact"]["fact_key"] == key
    predict = ("peer", "predict", peer, "--action-type", "refund.create", "--payload", '{"amount_usd": "5"}')
    assert asked(*predict, "--agent", agent["id"])["suggest_auto"] is True
    assert asked("peer", "ask-me", peer, key, "--agent", agent["id"])["agent_id"] == agent["id"]
    assert asked(*predict, *by_agent)["blocked_reason"] == "rule_requires_approval"
    asked("peer", "correct", peer, key, "--fact-value", '{"text": "Ask first."}')
    assert "Ask first." in asked("agent", "context", agent["id"], *by_agent)["context"]
    previewed = asked("peer", "preview", peer, "--agent", agent["id"])
    assert previewed["context"] == asked("peer", "context", peer, *by_agent)["context"]
    asked("peer", "pause", peer, "--reading", "true", "--learning", "false")
    assert asked("peer", "context", peer, *by_agent)["context"] == ""
    assert asked("peer", "show-pause", peer)["pause"]["reading"] is True
    asked("peer", "pause", peer, "--reading", "false", "--learning", "false")
    assert asked("peer", "forget", peer, key, "--suppress", "true") == {"deleted": True, "suppressed": True}
    assert [each["fact_key"] for each in asked("peer", "suppressions", peer)["suppressions"]] == [key]
    assert asked("peer", "allow-learning", peer, key) is None
    asked("peer", "set-observers", peer, "--observers", "[]")
    assert command("peer", "context", peer, *by_agent).code == 1
    assert command("peer", "erase", peer).code == 1
    monkeypatch.setenv("PEERGATE_CONFIRM", world.owner.password)
    assert asked("peer", "erase", peer)["deleted"] is True
    assert command("peer", "show", peer).code == 1


@pytest.mark.usefixtures("as_owner")
def test_an_approval_is_requested_shown_and_decided(command: Command, world: World) -> None:
    agent = world.agent()
    request = ("approval", "request", "--action", "ticket.close", "--target-type", "ticket", "--target-id", "7")
    asked = command(*request, "--summary", "close it", "--key", agent.api_key, "--json").json
    listed = command("approval", "list", "--status", "pending")
    assert listed.out.splitlines()[0].split() == [
        "ID",
        "STATUS",
        "RISK_TIER",
        "ACTION",
        "AGENT_ID",
        "HUMAN_SUMMARY",
        "CREATED_AT",
    ]
    assert asked["id"] in listed.out
    decided = command("approval", "decide", asked["id"], "--decision", "approve", "--json").json
    assert decided["status"] == "approved"
    again = command("approval", "decide", asked["id"], "--decision", "approve")
    assert (again.code, again.out) == (1, "")


def test_a_second_factor_is_enrolled_proven_and_removed(command: Command, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEERGATE_URL", world.url)
    member = world.person("member")
    monkeypatch.setenv("PEERGATE_KEY", member.api_key)
    assert command("totp", "enrol").code == 1
    monkeypatch.setenv("PEERGATE_CONFIRM", member.password)
    enrolled = command("totp", "enrol", "--json").json
    code = pyotp.TOTP(enrolled["secret"]).now()
    assert command("totp", "confirm", "--code", code, "--json").json == {"totp_enabled": True}
    used = command("totp", "prove", "--purpose", "peer.export", "--code", code)
    assert (used.code, used.out) == (1, "")
    assert command("totp", "remove").code == 1


@pytest.mark.usefixtures("as_owner")
def test_settings_are_set_by_name(command: Command) -> None:
    changed = command("setting", "set", "time_zone", "Europe/Zurich", "--json")
    assert changed.json["settings"]["time_zone"] == "Europe/Zurich"
    assert "time_zone" in command("setting", "list").out


@pytest.mark.usefixtures("as_owner")
def test_members_and_keys_are_managed(command: Command) -> None:
    added = command("member", "add", "--email", "new@sample.example", "--role", "auditor", "--json").json
    member = added["member"]["id"]
    assert command("member", "role", member, "--role", "security", "--json").json["member"]["role"] == "security"
    assert "new@sample.example" in command("member", "list").out
    removed = command("member", "remove", member)
    assert (removed.code, removed.out) == (0, "done\n")
    key = command("key", "create", "--name", "laptop", "--json").json["key"]["id"]
    assert "laptop" in command("key", "list").out
    assert command("key", "revoke", key).code == 0


# -- confirming who one is


@pytest.mark.usefixtures("as_owner")
def test_a_password_as_a_flag_is_refused_before_anything_is_sent(command: Command, world: World) -> None:
    refused = command("peer", "erase", "nobody", "--url", "http://127.0.0.1:9", f"--confirm={world.owner.password}")
    assert (refused.code, refused.out) == (2, "")
    assert "`--confirm` takes a rat_ token only" in refused.err
    assert world.owner.password not in refused.err


@pytest.mark.usefixtures("as_owner")
@pytest.mark.parametrize(("typed", "code"), [("right", 0), ("wrong", 1), ("", 1)])
def test_at_a_terminal_a_password_is_asked_for_once_it_is_needed(
    command: Command, world: World, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    person = world.person("member")
    words = ("--peer-type", "user", "--peer-ref", person.id, "--json")
    peer = command("peer", "create", *words).json["peer"]["id"]
    prompts = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return world.owner.password if typed == "right" else typed

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("getpass.getpass", answer)
    assert command("peer", "show", peer).code == 0
    assert prompts == []
    done = command("peer", "erase", peer)
    assert (done.code, prompts) == (code, ["password or rat_ token: "])
    assert "confirm who you are" in done.err


@pytest.mark.usefixtures("as_owner")
def test_a_token_that_confirms_nothing_is_sent_once_and_refused(
    command: Command, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEERGATE_CONFIRM", world.owner.password)
    peer = command("peer", "create", "--peer-type", "user", "--peer-ref", world.person("member").id, "--json").json["peer"]["id"]
    refused = command("peer", "erase", peer, "--confirm", "rat_nothing")
    assert (refused.code, "does not confirm who you are" in refused.err) == (1, True)


# -- administration of a gateway that runs


@pytest.mark.usefixtures("as_owner")
def test_an_owner_derives_and_verifies_a_gateway_that_runs(command: Command) -> None:
    assert command("admin", "derive", "--dry-run", "true", "--json").json["dry_run"] is True
    assert command("admin", "verify", "--json").json["chain_valid"] is True


# -- what it says when it is not allowed, not there or not understood


@pytest.mark.usefixtures("as_owner")
def test_a_denial_is_a_sentence_with_the_decision_that_explains_it(command: Command, world: World) -> None:
    member = world.person("member")
    denied = command("member", "list", "--key", member.api_key)
    assert (denied.code, denied.out) == (1, "")
    decision = denied.err.splitlines()[-1].removeprefix("decision ")
    explained = command("decisions", "show", decision, "--json").json["decision"]
    assert (explained["action"], explained["decision"]) == ("member.list", "deny")
    assert decision in command("decisions", "list", "--principal", member.id, "--decision", "deny").out


@pytest.mark.usefixtures("as_owner")
def test_a_request_that_is_wrong_is_bad_usage(command: Command) -> None:
    refused = command("setting", "set", "time_zone", "Nowhere")
    assert (refused.code, refused.out) == (2, "")
    assert "`Nowhere`" in refused.err


@pytest.mark.usefixtures("as_owner")
@pytest.mark.parametrize("given", ["{", "@/nonexistent"])
def test_json_that_is_none_is_bad_usage(command: Command, given: str) -> None:
    refused = command("agent", "create", "--name", "x", "--rules", given)
    assert refused.code == 2
    assert "`--rules`" in refused.err or "/nonexistent" in refused.err


@pytest.mark.usefixtures("as_owner")
def test_what_is_not_there_is_said(command: Command) -> None:
    missing = command("agent", "show", "no/such agent?")
    assert (missing.code, missing.err) == (1, "peergate: there is no such resource\n")


def test_an_address_where_nothing_answers_is_said(command: Command) -> None:
    refused = command("agent", "list", "--url", "http://127.0.0.1:9", "--key", "1ck_x")
    assert refused.code == 1
    assert refused.err.startswith("peergate: the gateway at http://127.0.0.1:9 does not answer")


@pytest.mark.parametrize(
    "words", [[], ["--url", "http://127.0.0.1:9"], ["--key", "1ck_x"], ["--url", "ftp://x", "--key", "1ck_x"]]
)
def test_without_a_gateway_or_a_key_it_is_bad_usage(command: Command, words: list[str]) -> None:
    refused = command("agent", "list", *words)
    assert (refused.code, refused.out) == (2, "")


# -- on a data directory


def test_a_stopped_data_directory_is_asked_with_the_same_decisions(command: Command, installed: Installed) -> None:
    key = ("--data", str(installed.data), "--key", installed.owner["api_key"], "--json")
    agent = command("agent", "create", "--name", "assistant", *key).json
    assert [each["id"] for each in command("agent", "list", *key).json["agents"]] == [agent["id"]]
    denied = command("agent", "list", "--data", installed.data, "--key", agent["api_key"])
    assert denied.code == 1
    listed = command("decisions", "list", "--decision", "deny", *key).json["decisions"]
    assert [(each["principal"]["id"], each["action"]) for each in listed] == [(agent["id"], "agent.list_own")]


def test_a_key_that_is_no_good_is_refused_in_process_too(command: Command, installed: Installed) -> None:
    assert command("agent", "list", "--data", installed.data, "--key", "1ck_nobody").code == 1


def test_a_directory_without_a_database_refuses_clients_too(command: Command, tmp_path: Path) -> None:
    assert command("agent", "list", "--data", tmp_path, "--key", "1ck_x").code == 4


# -- login


def test_a_login_is_checked_stored_privately_and_used(
    command: Command, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PEERGATE_KEY", world.owner.api_key)
    done = command("login", f"{world.url}/")
    stored = tmp_path / "config" / "peergate" / "login.json"
    assert done.out == f"signed in to {world.url} as {world.owner.email}; stored in {stored}, readable by you only\n"
    assert (stat.S_IMODE(stored.stat().st_mode), stat.S_IMODE(stored.parent.stat().st_mode)) == (0o600, 0o700)
    monkeypatch.delenv("PEERGATE_KEY")
    assert command("agent", "list").code == 0
    elsewhere = command("agent", "list", "--url", "http://127.0.0.1:9")
    assert (elsewhere.code, elsewhere.err.partition(":")[2].strip()[:6]) == (2, "no key")


def test_an_agent_logs_in_too(command: Command, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEERGATE_KEY", world.agent().api_key)
    assert command("login", world.url).code == 0
    monkeypatch.delenv("PEERGATE_KEY")
    assert command("agent", "me").code == 0


def test_a_key_that_is_no_good_is_not_stored(
    command: Command, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PEERGATE_KEY", "1ck_nobody")
    assert command("login", world.url).code == 1
    assert not (tmp_path / "config").exists()


@pytest.mark.parametrize(("mode", "text"), [(0o644, '{"url": "http://x", "key": "k"}'), (0o600, "{"), (0o600, "[]")])
def test_a_stored_login_that_is_open_or_broken_is_not_used(command: Command, tmp_path: Path, mode: int, text: str) -> None:
    stored = tmp_path / "config" / "peergate" / "login.json"
    stored.parent.mkdir(parents=True)
    stored.write_text(text)
    stored.chmod(mode)
    refused = command("agent", "list")
    assert refused.code == 2
    assert str(stored) in refused.err
