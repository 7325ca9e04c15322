"""`peergate policy replay`, `evidence` and `approval simulate`, on data directories to which much has happened."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import cedarpy
import duckdb
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from gateway.cli.main import main
from gateway.config import Settings
from gateway.operations.decisions import explain_data
from gateway.operations.explanation import MISSING
from gateway.policy.bundle import Bundle
from gateway.policy.cases import load_cases, run_cases
from gateway.wiring import open_services, shipped
from tests.builders import Gateway, shipped_bundle
from tests.cli.conftest import Command, Ended
from tests.operations.busy import RULES, busy

LATER = "2026-03-04T10:10:00Z"


@pytest.fixture(scope="module")
def _happened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("replay") / "data"
    made = Gateway(data)
    busy(made)
    made.close()
    return data


@pytest.fixture
def happened(_happened: Path, tmp_path: Path) -> Path:
    """The data directory of a gateway that has stopped."""
    return Path(shutil.copytree(_happened, tmp_path / "data"))


@pytest.fixture
def taken_key(tmp_path: Path) -> tuple[Path, str]:
    """The data directory of a gateway that has stopped after a few refusals, and a key of its security team."""
    made = Gateway(tmp_path / "keyed")
    agent = made.agent()
    agent.get(f"/v1/peers/{made.peer(observers=[])['id']}")
    made.auditor.get("/v1/org/settings")
    made.close()
    return tmp_path / "keyed", made.security.key


@pytest.fixture
def candidate(tmp_path: Path) -> Path:
    """A copy of the shipped policies."""
    return Path(shutil.copytree(shipped() / "policies", tmp_path / "policies"))


def rewrite(file: Path, old: str, new: str) -> None:
    """Change a policy, and leave it as Cedar formats it."""
    text = file.read_text()
    assert old in text
    file.write_text(cedarpy.format_policies(text.replace(old, new)))


# -- replay


def test_the_policies_that_decided_change_nothing(command: Command, happened: Path, candidate: Path) -> None:
    ended = command("policy", "replay", "--data", happened, "--candidate", candidate, "--json")
    assert (ended.code, ended.err) == (0, "")
    report = ended.json
    assert (report["decided"] > 100, report["decided"] - report["same"], report["flips"]) == (True, 0, [])
    assert {name: report[name] for name in ("gains", "loses", "other_rows", "other_policies", "not_replayable")} == {
        name: 0 for name in ("gains", "loses", "other_rows", "other_policies", "not_replayable")
    }


def test_a_candidate_under_which_somebody_gains_ends_with_three_and_a_table(
    command: Command, happened: Path, candidate: Path
) -> None:
    rewrite(candidate / "org" / "read_settings.cedar", '[Role::"owner", ', '[Role::"security", Role::"owner", ')
    ended = command("policy", "replay", "--data", happened, "--candidate", candidate.parent)
    assert (ended.code, ended.err) == (3, "")
    assert ended.out.splitlines()[-2].split() == [
        "CHANGE", "COUNT", "PRINCIPAL", "ACTION", "RESOURCE_TYPE", "BEFORE", "NOW", "SAMPLES",
    ]  # fmt: skip
    assert ended.out.splitlines()[-1].startswith("gains   1")
    assert "org.read_settings" in ended.out.splitlines()[-1]


def test_a_candidate_under_which_somebody_loses_ends_with_nought(command: Command, happened: Path, candidate: Path) -> None:
    rewrite(candidate / "org" / "read_settings.cedar", '[Role::"owner", Role::"admin"]', 'Role::"admin"')
    ended = command("policy", "replay", "--data", happened, "--candidate", candidate, "--json")
    assert (ended.code, ended.json["loses"], ended.json["gains"]) == (0, 2, 0)  # the owner of either organisation
    late = command("policy", "replay", "--data", happened, "--candidate", candidate, "--since", LATER, "--json")
    assert (late.code, late.json["loses"]) == (0, 0)


@pytest.mark.parametrize("spoil", ["missing", "broken", "unguarded"])
def test_a_candidate_that_does_not_load_ends_with_its_findings(
    command: Command, happened: Path, candidate: Path, spoil: str
) -> None:
    if spoil == "missing":
        shutil.rmtree(candidate)
    elif spoil == "broken":
        (candidate / "org" / "read_settings.cedar").write_text("permit")
    else:
        (candidate / "guardrails" / "observers.cedar").unlink()
    ended = command("policy", "replay", "--data", happened, "--candidate", candidate)
    assert (ended.code, ended.out) == (2 if spoil == "missing" else 1, "")
    assert ended.err


@pytest.mark.parametrize("words", [("--since", "yesterday"), ()])
def test_bad_usage_of_replay_ends_with_two(command: Command, happened: Path, words: tuple[str, ...]) -> None:
    candidate = () if not words else ("--candidate", "x")
    assert command("policy", "replay", "--data", happened, *candidate, *words).code == 2


# -- explain


def test_every_decision_of_the_log_is_explained_under_what_decided_it(happened: Path) -> None:
    """None comes out otherwise than it was recorded, and what is left to the record alone says why."""
    services = open_services(Settings(data=happened), bundle=shipped_bundle())
    try:
        found = services.database.read_sync(lambda rows: rows.all("SELECT id FROM log WHERE kind = 'decision'"))
        made = [asyncio.run(explain_data(services, id_)) for (id_,) in found]
    finally:
        services.database.close()
    missing = Counter(decision["explanation"]["missing"] for decision in made)
    assert set(missing) <= {None, MISSING["never_kept"]}
    assert missing[None] > 100
    for decision in made:
        told = decision["explanation"]
        assert told["deny_kind"] == decision["deny_kind"]
        assert sorted(reason["policy_id"] for reason in told["reasons"]) == decision["policies"]
        unpermitted = decision["deny_kind"] == "not_permitted"
        assert (told["nearest"] is not None) >= (unpermitted and told["missing"] is None)


def test_the_log_of_a_stopped_gateway_tells_the_same_as_one_that_is_asked(
    command: Command, taken_key: tuple[Path, str], tmp_path: Path
) -> None:
    data, key = taken_key
    show = ("--data", data, "--key", key)
    listed = command("decisions", "list", "--decision", "deny", "--json", *show).json["decisions"]
    for denied in (listed[0], listed[-1]):
        asked = command("decisions", "show", denied["id"], "--json", *show)
        read = command("policy", "explain", denied["id"], "--data", data, "--json")
        assert (asked.code, read.code, read.json) == (0, 1, asked.json)
        told = command("policy", "explain", denied["id"], "--data", data)
        assert told.out == command("decisions", "show", denied["id"], *show).out
        assert f"denied: {denied['deny_kind']}\n" in told.out
        assert all(f"{reason} " in told.out for reason in denied["policies"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("00000000-0000-4000-8000-000000000000",), 1),
        (("nothing",), 1),
        (("x", "--case", "y"), 2),
        (("x", "--dir", "."), 2),
        ((), 2),
    ],
    ids=str,
)
def test_what_is_no_decision_and_what_is_two_questions_is_refused(
    command: Command, happened: Path, words: tuple[str, ...], code: int
) -> None:
    assert command("policy", "explain", *words, "--data", happened).code == code


# -- evidence


@pytest.fixture(scope="module")
def evidence(_happened: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was taken from it."""
    directory = tmp_path_factory.mktemp("evidence")
    data, out = Path(shutil.copytree(_happened, directory / "data")), directory / "out"
    assert main(["evidence", "--data", str(data), "--out", str(out)]) == 0
    return out


@pytest.fixture
def taken(evidence: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(evidence, tmp_path / "evidence"))


def verify(directory: Path) -> Ended:
    """The verifier as an auditor runs it: nothing of ours is in reach."""
    done = subprocess.run([sys.executable, "-I", "verify.py"], cwd=directory, capture_output=True, text=True, check=False, env={})
    return Ended(done.returncode, done.stdout, done.stderr)


def cases_of(directory: Path) -> list[dict[str, Any]]:
    return [case for path in sorted(directory.glob("decisions/*/tests-*.json")) for case in json.loads(path.read_text())]


def rows_of(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "chain.jsonl").read_text().splitlines()]


def test_the_verifier_needs_nothing_and_finds_that_it_holds(taken: Path) -> None:
    ended = verify(taken)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"{len(rows_of(taken))} rows hold; {len(cases_of(taken))} cases are decisions of the chain\n"
    assert len(cases_of(taken)) > 100


def test_a_row_that_was_changed_removed_or_added_is_found(taken: Path) -> None:
    chain = taken / "chain.jsonl"
    lines = chain.read_text().splitlines(keepends=True)
    forged = lines[5].replace('"deny"', '"allow"') if '"deny"' in lines[5] else lines[5].replace('"allow"', '"deny"')
    changed = lines[5].replace('"request_id":"', '"request_id":"x') if forged == lines[5] else forged
    for spoiled in ([*lines[:5], changed, *lines[6:]], [*lines[:5], *lines[6:]], lines[:-1], [*lines, lines[-1]], lines[1:]):
        chain.write_text("".join(spoiled))
        assert verify(taken).code == 1
    chain.write_text("".join(lines))
    assert verify(taken).code == 0


def test_a_case_that_the_chain_does_not_know_is_found(taken: Path) -> None:
    """Whatever of it is forged, but for its entities."""
    [file, *_] = sorted(taken.glob("decisions/*/tests-0001.json"), key=lambda path: -path.stat().st_size)
    cases = json.loads(file.read_text())
    refused = next(number for number, case in enumerate(cases) if case.get("deny_kind") == "forbidden" and case["reason"])
    first, request = cases[refused], cases[refused]["request"]
    forgeries: list[dict[str, object]] = [
        {"decision": "allow"},
        {"decision": "allow", "num_errors": 1},
        {"num_errors": 1},
        {"reason": []},
        {"reason": ["peer/read/observer"]},
        {"reason_exact": False},
        {"deny_kind": "not_permitted"},
        {"description": first["description"].replace("row ", "row 1")},
        {"name": "00000000-0000-4000-8000-000000000000"},
        {"name": next(case["name"] for case in cases if case["name"] != first["name"])},
        {"more": 1},
    ]
    about: dict[str, object] = {"principal": 'Human::"x"', "action": 'Action::"x"', "resource": 'Peer::"x"', "context": {}}
    forgeries += [{"request": {**request, part: value}} for part, value in about.items()]
    clock = {**request["context"]["clock"], "minute": request["context"]["clock"]["minute"] + 1}
    forgeries += [{"request": {**request, "context": {**request["context"], "clock": clock}}}]
    for change in forgeries:
        file.write_text(json.dumps([*cases[:refused], {**first, **change}, *cases[refused + 1 :]]))
        assert verify(taken).code == 1, change
    file.write_text(json.dumps(cases))
    assert verify(taken).code == 0


def test_a_directory_of_other_policies_than_its_name_stands_for_is_found(taken: Path) -> None:
    [folder] = [folder for folder in taken.glob("decisions/*") if len(folder.name) == 64]
    [granted, *_] = [folder for folder in taken.glob("decisions/*") if len(folder.name) > 64]
    for file in (folder / "policies.cedar", granted / "policies.cedar", folder / "schema.cedarschema", folder / "bundle.json"):
        text = file.read_text()
        file.write_text(text.replace("archived", "ARCHIVED", 1))
        assert text != file.read_text()
        assert verify(taken).code == 1, file
        file.write_text(text)
    (folder / "policies.cedar").write_text(f"{(folder / 'policies.cedar').read_text()}\npermit (principal, action, resource);\n")
    assert verify(taken).code == 1


def test_a_case_that_lies_with_policies_that_did_not_decide_it_is_found(taken: Path) -> None:
    """Everything in the directory is consistent: only the chain says that other policies decided."""
    [folder] = [folder for folder in taken.glob("decisions/*") if len(folder.name) == 64]
    schema, policies = json.loads((folder / "bundle.json").read_text())
    fewer = json.dumps([schema, policies[1:]], sort_keys=True, separators=(",", ":"))
    other = folder.parent / hashlib.sha256(fewer.encode()).hexdigest()
    shutil.copytree(folder, other)
    (other / "bundle.json").write_text(fewer)
    (other / "policies.cedar").write_text("\n\n".join(text for _, text in policies[1:]) + "\n")
    ended = verify(taken)
    assert (ended.code, "is not what the chain says" in ended.err) == (1, True)


def test_cedar_without_a_schema_and_without_us_gives_every_decision_again(taken: Path) -> None:
    """As the Cedar CLI runs them: policies named by `@id`, entities from the case alone."""
    for folder in sorted(taken.glob("decisions/*")):
        texts = cedarpy.policies_to_pst((folder / "policies.cedar").read_text()).static_policies.values()
        named = {tree.annotations["id"]: tree for tree in texts}
        policies = cedarpy.PolicySet.from_pst(cedarpy.pst.PolicySet({}, _renamed(named), ()))
        for case in json.loads((folder / "tests-0001.json").read_text()):
            request = {**case["request"], "context": json.dumps(case["request"]["context"])}
            answer = cedarpy.is_authorized(request, policies, json.dumps(case["entities"]))
            found = ("allow" if answer.allowed else "deny", sorted(answer.diagnostics.reasons), len(answer.diagnostics.errors))
            reasons = case["reason"] if case.get("reason_exact") else found[1]
            assert found == (case["decision"], reasons, case["num_errors"]), case["name"]


def _renamed(named: dict[str, Any]) -> dict[str, Any]:
    return {id_: replace(tree, id=id_) for id_, tree in named.items()}


def test_the_cases_are_cases_of_ours_too(taken: Path, tmp_path: Path) -> None:
    for number, folder in enumerate(sorted(taken.glob("decisions/*"))):
        bundle = Bundle.from_text(
            (folder / "schema.cedarschema").read_text(),
            {"policies.cedar": (folder / "policies.cedar").read_text()},
            house_rules=False,
        ) if "-" not in folder.name else None  # fmt: skip
        if bundle is None:
            continue  # grants are ours to compile: policies of a file may not bear their ids
        kept = tmp_path / f"cases-{number}"
        kept.mkdir()
        shutil.copy(folder / "tests-0001.json", kept / "all_test.json")
        results = run_cases(bundle, load_cases(kept))
        assert {result.case.name: result.failures for result in results if not result.passed} == {}
        assert bundle.hash == folder.name


def test_the_bundle_of_each_directory_is_the_one_that_its_decisions_name(taken: Path) -> None:
    by_id = {row["id"]: row for row in rows_of(taken)}
    for folder in taken.glob("decisions/*"):
        cases = json.loads((folder / "tests-0001.json").read_text())
        assert {by_id[case["name"]]["bundle"] for case in cases} == {folder.name[:64]}


def test_a_remote_agents_decisions_lie_beside_the_grants_that_it_had(taken: Path) -> None:
    own = [folder for folder in taken.glob("decisions/*") if len(folder.name) > 64]
    assert own
    assert any('@id("grant/' in (folder / "policies.cedar").read_text() for folder in own)
    cases = [case for folder in own for case in json.loads((folder / "tests-0001.json").read_text())]
    assert {case["request"]["principal"].partition("::")[0] for case in cases} == {"Connection"}


def test_the_head_is_signed_by_the_gateways_key(taken: Path) -> None:
    key = load_pem_public_key((taken / "signer.pem").read_bytes())
    assert isinstance(key, Ed25519PublicKey)
    head, signature = (taken / "head.json").read_bytes(), (taken / "head.sig").read_bytes()
    key.verify(signature, head)
    with pytest.raises(InvalidSignature):
        key.verify(signature, head + b" ")
    ends = json.loads(head)
    assert ends["after"] == {"seq": 0, "hash": hashlib.sha256(b"peergate log 1").hexdigest()}
    assert ends["head"]["seq"] == rows_of(taken)[-1]["seq"]


def test_a_later_stretch_holds_by_itself(command: Command, happened: Path, tmp_path: Path) -> None:
    out = tmp_path / "late"
    ended = command("evidence", "--data", happened, "--out", out, "--since", LATER, "--json")
    assert (ended.code, ended.json["chain_holds"], ended.json["rows"]) == (0, True, len(rows_of(out)))
    assert json.loads((out / "head.json").read_text())["after"]["seq"] == rows_of(out)[0]["seq"] - 1 > 0
    assert verify(out).code == 0
    assert 0 < len(cases_of(out)) < 200


def test_of_a_time_since_which_nothing_was_recorded_there_are_no_rows(command: Command, happened: Path, tmp_path: Path) -> None:
    ended = command("evidence", "--data", happened, "--out", tmp_path / "none", "--since", "2099-01-01T00:00:00Z")
    assert (ended.code, verify(tmp_path / "none").code) == (0, 0)
    assert ended.err == "note: nothing was recorded since 2099-01-01T00:00:00Z: there are 0 rows in it\n"


def test_the_readme_counts_and_names_the_exact_commands(taken: Path) -> None:
    readme = (taken / "README.md").read_text()
    assert f"{len(rows_of(taken))} rows of the log, {len(cases_of(taken))} decisions as cases" in readme
    commands = [line.split() for line in readme.splitlines() if line.startswith("    cedar ")]
    assert len(commands) == len(list(taken.glob("decisions/*/tests-*.json")))
    assert all((taken / words[3]).is_file() and (taken / words[5]).is_file() for words in commands)
    assert "Left out: " in readme


def test_who_took_evidence_is_in_the_log(command: Command, happened: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert command("evidence", "--data", happened, "--out", tmp_path / name).code == 0
    taken = [row["action"] for row in rows_of(tmp_path / "two") if row["action"].startswith("admin.")]
    assert taken == ["admin.take_evidence", "admin.evidence_taken", "admin.take_evidence"]


def test_a_directory_that_is_there_is_left_alone(command: Command, happened: Path, tmp_path: Path) -> None:
    ended = command("evidence", "--data", happened, "--out", tmp_path)
    assert (ended.code, "is there already" in ended.err) == (1, True)


def test_evidence_of_a_chain_that_was_tampered_with_is_written_and_says_so(
    command: Command, happened: Path, tmp_path: Path
) -> None:
    with duckdb.connect(str(happened / "peergate.duckdb")) as connection:
        connection.execute("UPDATE log SET action = 'forged' WHERE seq = 7")
    out = tmp_path / "out"
    ended = command("evidence", "--data", happened, "--out", out, "--json")
    assert (ended.code, ended.json["chain_holds"]) == (1, False)
    assert verify(out).code == 1


@pytest.mark.parametrize("details", ['{"context": []}', "{", '{"also": 1}', '{"context": {"now": 1}}'])
def test_a_row_that_cannot_be_read_is_left_out_and_the_rest_is_there(
    command: Command, happened: Path, evidence: Path, tmp_path: Path, details: str
) -> None:
    case = next(case for case in cases_of(evidence) if case.get("deny_kind"))
    with duckdb.connect(str(happened / "peergate.duckdb")) as connection:
        connection.execute("UPDATE log SET details = $1 WHERE id = $2", [details, case["name"]])
    out = tmp_path / "out"
    ended = command("evidence", "--data", happened, "--out", out, "--json")
    assert (ended.code, ended.json["chain_holds"], ended.json["left_out"]["unreadable"]) == (1, False, 1)
    assert {path.name for path in out.iterdir()} >= {"README.md", "verify.py", "head.sig", "chain.jsonl"}
    assert "1 unreadable" in (out / "README.md").read_text()
    ended = verify(out)
    assert (ended.code, "was changed" in ended.err) == (1, True)


def test_a_file_is_full_where_the_next_begins(
    command: Command, happened: Path, evidence: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.operations.evidence.CASES_A_FILE", 7)
    monkeypatch.setattr("gateway.operations.evidence.PAGE", 30)
    out = tmp_path / "out"
    assert command("evidence", "--data", happened, "--out", out).code == 0
    files = sorted(out.glob("decisions/*/tests-*.json"))
    counts = {path: len(json.loads(path.read_text())) for path in files}
    last = {max(folder.glob("tests-*.json")) for folder in out.glob("decisions/*")}
    assert all(count == 7 or (path in last and 0 < count < 7) for path, count in counts.items())
    actions = [Counter(case["request"]["action"] for case in cases_of(directory)) for directory in (evidence, out)]
    assert actions[0] == actions[1]
    commands = [line.split() for line in (out / "README.md").read_text().splitlines() if line.startswith("    cedar ")]
    assert {out / words[5] for words in commands} == set(files)
    assert verify(out).code == 0


# -- simulate


def test_rules_are_simulated_from_the_command_line(command: Command, tmp_path: Path) -> None:
    made = Gateway(tmp_path / "data")
    agent = busy(made)
    key = made.owner.key
    made.close()
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))
    at = ("--data", tmp_path / "data", "--key", key)
    ended = command("approval", "simulate", "--agent", agent.id, "--policy", f"@{rules}", "--json", *at)
    assert (ended.code, ended.json["agent_id"], ended.json["current"]) == (0, agent.id, ended.json["proposed"])
    asked = ("--action", "refund.create", "--payload", '{"amount_usd": "80"}')
    one = command("approval", "simulate", "--agent", agent.id, *asked, "--json", *at).json["what_would_change_it"]
    assert one["rule"] == {"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "80.01"}
