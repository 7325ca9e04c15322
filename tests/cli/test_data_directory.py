"""Commands of the operator on a stopped data directory: backup, erase, derive, verify, recover."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gateway.authn.claims import Claims
from gateway.authn.signer import Signer
from gateway.store.files import Files
from gateway.store.lock import Lock
from tests.builders import Gateway
from tests.cli.conftest import Command, Installed
from tests.operations.peer_acts import learn
from tests.real.process import Server
from tests.real.world import World, data

AS_LEARNED = ("--as-of", "2026-03-04T10:00:00Z")
SOMEBODY = "00000000-0000-4000-8000-000000000001"
COUNTS = ("peers", "buckets", "facts_made", "facts_changed", "facts_retired", "events_expired", "tombstones", "failed")


@pytest.fixture
def learned(tmp_path: Path) -> Path:
    """A data directory with one fact from four events of 4 March 2026, more than 90 days ago."""
    made = Gateway(tmp_path / "learned")
    agent = made.agent()
    learn(agent, made.peer(observers=[agent]), 4)
    made.close()
    return tmp_path / "learned"


def swept(command: Command, directory: Path, *more: str) -> dict[str, int]:
    done = command("derive", "--data", directory, "--json", *more)
    assert (done.code, done.err) == (0, "")
    counts = {name: done.json[name] for name in COUNTS}
    return {name: count for name, count in counts.items() if count}


# -- backup


def test_a_backup_is_a_data_directory_that_serves_with_the_same_keys(
    command: Command, installed: Installed, tmp_path: Path
) -> None:
    with Server.serve(installed.data) as server:
        world = World(server.url, installed.owner)
        token = world.client(installed.owner["api_key"])._http.get_token()
        world.close()
        assert server.stop() == 0
    target = tmp_path / "copy"
    made = command("backup", target, "--data", installed.data, "--json")
    assert (made.code, made.json["backup"], made.json["tables"]["orgs"]) == (0, str(target), 1)
    tables = made.json["tables"]
    shown = command("backup", tmp_path / "another", "--data", installed.data)
    said = ["backup", str(tmp_path / "another"), "tables", str(len(tables)), "rows"]
    assert shown.out.split()[:-1] == said
    assert int(shown.out.split()[-1]) > sum(tables.values())  # the first backup is in the log by now
    assert {path.name for path in target.iterdir()} == {"peergate.duckdb", "peergate.mark", "keys"}
    for made_private in (target, *target.rglob("*"), *installed.data.rglob("*")):
        assert not made_private.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO), made_private
    verified = command("audit", "verify", "--data", target, "--json")
    assert (verified.code, verified.json["chain_valid"]) == (0, True)
    assert token is not None
    with Server.serve(target) as server:
        world = World(server.url, installed.owner)
        assert data(world.bearer(token).auth.me())["email"] == installed.owner["email"]
        world.close()
        assert server.stop() == 0


@pytest.mark.parametrize(
    ("words", "asks"),
    [(("backup", "copy"), "backup"), (("audit", "verify"), "verify"), (("erase",), "erase"), (("derive",), "derive")],
)
def test_of_a_gateway_that_runs_the_command_that_asks_it_is_named(
    command: Command, installed: Installed, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], asks: str
) -> None:
    lock = Lock(Files(installed.data).lock)
    held = command(*words, "--data", installed.data)
    lock.release()
    assert (held.code, held.err.endswith(f"; `peergate admin {asks}` asks the gateway\n")) == (4, True)
    monkeypatch.setenv("PEERGATE_URL", "http://127.0.0.1:1")
    unnamed = command(*words)
    assert (unnamed.code, f"; `peergate admin {asks}` asks the gateway at PEERGATE_URL\n" in unnamed.err) == (2, True)


def test_a_backup_never_goes_over_what_is_there(command: Command, installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    refused = command("backup", tmp_path / "there", "--data", installed.data)
    assert refused.code == 4
    assert refused.err == f"peergate: the backup `{tmp_path}/there` cannot be made: File exists; name a new directory\n"


# -- erase


def test_erasing_rewrites_the_store_and_names_the_backups_it_leaves_alone(
    command: Command, installed: Installed, tmp_path: Path
) -> None:
    command("backup", tmp_path / "copy", "--data", installed.data)
    erased = command("erase", "--data", installed.data, "--json")
    assert erased.code == 0
    receipt = erased.json["receipt"]
    assert receipt["backups_not_covered"] == [str(tmp_path / "copy")]
    assert receipt["bytes_verified"] >= receipt["bytes_before"] > 0
    assert command("audit", "verify", "--data", installed.data).code == 0


def test_erasing_a_peer_deletes_it_first_and_its_organisation_can_read_that(command: Command, learned: Path) -> None:
    peer_id, org_id = _rows(learned, "SELECT id, org_id FROM peers")[0]
    erased = command("erase", "--peer", peer_id, "--data", learned, "--json")
    assert (erased.code, erased.json["receipt"]["tables"]["events"], erased.json["receipt"]["tables"]["peers"]) == (0, 0, 0)
    audited = _rows(learned, "SELECT principal_type, resource_id, org_id, details FROM log WHERE action = 'peer.deleted'")
    assert [row[:3] for row in audited] == [("Operator", peer_id, org_id)]
    assert {name: json.loads(audited[0][3])[name] for name in ("facts", "observations")} == {"facts": 1, "observations": 4}


def test_erasing_a_peer_that_is_not_there_rewrites_nothing(command: Command, installed: Installed) -> None:
    refused = command("erase", "--peer", "nobody", "--data", installed.data)
    assert (refused.code, refused.out, refused.err) == (1, "", "peergate: there is no such peer\n")
    assert _rows(installed.data, "SELECT outcome FROM log WHERE action = 'admin.erase'") == [("allow",)]


# -- derive


def test_a_dry_run_reports_and_changes_nothing(command: Command, learned: Path) -> None:
    due = {"peers": 1, "buckets": 1, "events_expired": 4, "tombstones": 4}
    assert swept(command, learned, "--dry-run") == due
    assert swept(command, learned, "--dry-run") == due
    assert swept(command, learned) == due
    assert swept(command, learned) == {"peers": 1, "buckets": 1}


def test_deriving_as_of_a_time_leaves_what_was_young_then(command: Command, learned: Path) -> None:
    assert swept(command, learned, *AS_LEARNED) == {"peers": 1, "buckets": 1}
    assert swept(command, learned, "--as-of", "2026-06-02T09:59:59Z", "--dry-run") == {"peers": 1, "buckets": 1}
    ninety_days = swept(command, learned, "--as-of", "2026-06-02T10:00:00Z", "--dry-run")
    assert ninety_days == {"peers": 1, "buckets": 1, "events_expired": 4, "tombstones": 4}


def test_a_fact_that_was_lost_is_derived_again(command: Command, learned: Path) -> None:
    with duckdb.connect(str(learned / "peergate.duckdb")) as connection:
        connection.execute("DELETE FROM facts")
    assert swept(command, learned, *AS_LEARNED) == {"peers": 1, "buckets": 1, "facts_made": 1}


def test_a_time_in_the_future_wants_to_be_meant(command: Command, learned: Path) -> None:
    refused = command("derive", "--data", learned, "--as-of", "2099-01-01T00:00:00Z")
    assert (refused.code, refused.out) == (2, "")
    assert "--expire-early" in refused.err
    early = swept(command, learned, "--as-of", "2099-01-01T00:00:00Z", "--expire-early")
    assert early == {"peers": 1, "buckets": 1, "events_expired": 4, "tombstones": 4}


@pytest.mark.parametrize("time", ["yesterday", "2026-03-04", "2026-03-04T10:00:00", "2026-13-04T10:00:00Z"])
def test_a_time_that_is_none_is_bad_usage(command: Command, installed: Installed, time: str) -> None:
    refused = command("derive", "--data", installed.data, "--as-of", time)
    assert refused.code == 2
    assert f"`{time}`" in refused.err


# -- verify


def test_the_head_of_the_chain_is_printed_to_be_written_down(command: Command, installed: Installed) -> None:
    verified = command("audit", "verify", "--data", installed.data, "--json")
    last = _rows(installed.data, "SELECT seq, hash FROM log ORDER BY seq DESC LIMIT 1")[0]
    assert verified.code == 0
    assert verified.json == {
        "chain_valid": True,
        "rows_verified": last[0],
        "broken_at": None,
        "head": {"seq": last[0], "hash": last[1]},
    }


def test_a_row_that_was_changed_is_named(command: Command, installed: Installed) -> None:
    command("audit", "verify", "--data", installed.data)
    with duckdb.connect(str(installed.data / "peergate.duckdb")) as connection:
        (broken,) = connection.execute("SELECT id FROM log WHERE seq = 1").fetchall()[0]
        connection.execute("UPDATE log SET principal_id = 'somebody else' WHERE seq = 1")
    verified = command("audit", "verify", "--data", installed.data, "--json")
    assert (verified.code, verified.json["chain_valid"], verified.json["broken_at"]) == (1, False, broken)


def test_a_log_whose_end_was_cut_off_is_not_opened(command: Command, installed: Installed) -> None:
    command("audit", "verify", "--data", installed.data)
    with duckdb.connect(str(installed.data / "peergate.duckdb")) as connection:
        connection.execute("DELETE FROM log WHERE seq = (SELECT max(seq) FROM log)")
    refused = command("audit", "verify", "--data", installed.data)
    assert (refused.code, refused.out) == (4, "")
    assert refused.err.startswith("peergate: ")


def test_a_lost_mark_wants_to_be_accepted(command: Command, installed: Installed) -> None:
    (installed.data / "peergate.mark").unlink()
    assert command("audit", "verify", "--data", installed.data).code == 4
    assert command("audit", "verify", "--data", installed.data, "--accept-missing-mark").code == 0
    assert command("audit", "verify", "--data", installed.data).code == 0


# -- recover


def test_a_member_who_lost_their_key_is_given_another(command: Command, installed: Installed) -> None:
    made = command("key", "recover", "--email", installed.owner["email"].upper(), "--data", installed.data, "--json")
    assert (made.code, made.json["email"]) == (0, installed.owner["email"])
    listed = command("key", "list", "--data", installed.data, "--key", made.json["api_key"], "--json")
    assert [key["name"] for key in listed.json["keys"]] == ["first key", "recovered"]
    audited = command(
        "audit", "list", "--action", "key.recovered", "--data", installed.data, "--key", made.json["api_key"], "--json"
    )
    assert [event["actor_type"] for event in audited.json["events"]] == ["operator"]


def test_nobody_is_given_a_key_for_an_address_that_no_member_has(command: Command, installed: Installed) -> None:
    refused = command("key", "recover", "--email", "nobody@sample.example", "--data", installed.data)
    assert (refused.code, refused.out, refused.err) == (1, "", "peergate: no member has that address\n")


# -- rotate


@pytest.mark.parametrize(("overlap", "good"), [((), True), (("--overlap-hours", "0"), False)])
def test_tokens_are_signed_with_a_new_key_and_the_old_ones_end_with_the_overlap(
    command: Command, installed: Installed, overlap: tuple[str, ...], good: bool
) -> None:
    signer = Signer.load(installed.data)
    [old] = signer.kids
    now = datetime.now(UTC)
    at = int(now.timestamp())
    token = signer.sign(Claims("Human", SOMEBODY, "org", "", 1, at - 60, at + 3_600, "token"), [])
    done = command("key", "rotate-signing", "--data", installed.data, *overlap, "--json")
    rotated = Signer.load(installed.data)
    assert (done.code, rotated.kids) == (0, (old, done.json["key_id"]))
    assert (rotated.verify(token, datetime.now(UTC)) is not None) is good
    logged = _rows(installed.data, "SELECT principal_type, details FROM log WHERE action = 'admin.signing_key_rotated'")
    assert [(who, json.loads(details)["key_id"]) for who, details in logged] == [("Operator", done.json["key_id"])]


@pytest.mark.parametrize("hours", ["-1", "25", "x"])
def test_an_overlap_that_is_none_is_bad_usage(command: Command, installed: Installed, hours: str) -> None:
    assert command("key", "rotate-signing", "--data", installed.data, "--overlap-hours", hours).code == 2
    assert len(Signer.load(installed.data).kids) == 1


# -- all of them


@pytest.mark.parametrize(
    "words", ["derive", "backup copy", "erase", "audit verify", "key recover --email a@b.co", "key rotate-signing", "serve"]
)
def test_a_directory_without_a_database_is_refused(command: Command, tmp_path: Path, words: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    refused = command(*words.split(), "--data", empty)
    assert (refused.code, refused.out) == (4, "")
    assert str(empty) in refused.err
    assert "Traceback" not in refused.err


def _rows(directory: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(directory / "peergate.duckdb"), read_only=True) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
        return rows
