"""`peergate policy changes`: what is proved, replayed, tried and sampled of each kind of question, and what is not known."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gateway.policy.cases import from_json, run_case
from gateway.policy.folder import find
from tests.builders import Gateway
from tests.cli.conftest import Command
from tests.cli.test_prove import folder
from tests.world import ROOT

pytest.importorskip("z3")
__all__ = ["folder"]

HOURS = '@id("org/hours") forbid (principal is Agent, action == Action::"peer.read", resource) when { context.clock.minute > 9 };'
#: As it is written no proof reaches it: the solver knows nothing of the time of day.
UNREACHED = HOURS.replace("context.clock.minute > 9", 'context.now.toTime() > duration("9m")')
#: A schema of its own, with what no proof reads.
FOREIGN = """namespace Shop {
  entity User = { level: Long };
  entity Colour enum ["red", "blue"];
  entity Doc = { owner: User };
  action read, drop appliesTo { principal: [User], resource: [Doc], context: { source: ipaddr, minute: Long } };
}
"""
NET = 'context.source.isInRange(ip("10.0.0.0/8"))'


@pytest.fixture(scope="module")
def _happened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("changes") / "data"
    made = Gateway(data)
    agent = made.agent()
    peer = made.peer(observers=[agent])["id"]
    for who in (agent, agent, made.owner):
        assert who.get(f"/v1/peers/{peer}").status_code == 200
    made.close()
    return data


@pytest.fixture
def happened(_happened: Path, tmp_path: Path) -> Path:
    """The data directory of a gateway that has stopped, after two reads of a peer by an agent and one by a human."""
    return Path(shutil.copytree(_happened, tmp_path / "data"))


@pytest.fixture
def shop(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders under a schema that cannot be encoded: everybody may do everything, and reading is forbidden from a network."""
    old, new = tmp_path / "old", tmp_path / "new"
    for at in (old, new):
        (at / "policies").mkdir(parents=True)
        (at / "schema.cedarschema").write_text(FOREIGN)
        (at / "policies/all.cedar").write_text('@id("all") permit (principal, action, resource);')
    (new / "policies/net.cedar").write_text(
        f'@id("net") forbid (principal, action == Shop::Action::"read", resource) when {{ {NET} }};'
    )
    (new / "policies/all_test.json").write_text(json.dumps([case_of_shop()]))
    return old, new


def case_of_shop() -> dict[str, Any]:
    user, doc = {"type": "Shop::User", "id": "ann"}, {"type": "Shop::Doc", "id": "d"}
    context = {"source": {"__extn": {"fn": "ip", "arg": "192.168.0.1"}}, "minute": 600}
    return {
        "name": "ann reads",
        "request": {
            "principal": 'Shop::User::"ann"', "action": 'Shop::Action::"read"', "resource": 'Shop::Doc::"d"', "context": context
        },
        "entities": [
            {"uid": user, "attrs": {"level": 1}, "parents": []},
            {"uid": doc, "attrs": {"owner": {"__entity": user}}, "parents": []},
        ],
        "decision": "allow", "reason": ["all"], "num_errors": 0,
    }  # fmt: skip


def test_changes_say_whether_policies_differ_only_where_they_may(command: Command, folder: Path) -> None:
    (folder / "policies/org.cedar").write_text(HOURS)
    between = (str(ROOT), str(folder))
    assert command("policy", "changes", *between, "--only", "Agent, peer.read").code == 0
    assert command("policy", "changes", *between, "--only", "context.clock.minute > 9").code == 0
    assert command("policy", "changes", *between, "--only", "Human").code == 3
    wrong = command("policy", "changes", *between, "--only", "nobody")
    assert (wrong.code, wrong.err.startswith("peergate: `--only` is no condition of the schema")) == (2, True)


def test_the_log_is_taken_again_of_each_kind_that_differs(command: Command, folder: Path, happened: Path) -> None:
    (folder / "policies/org.cedar").write_text(HOURS)
    asked = ("policy", "changes", ROOT, folder, "--only", "Agent, peer.read", "--data", happened)
    ended = command(*asked)
    assert (ended.code, ended.err) == (0, "")
    assert "    Agent peer.read Peer: proved; replayed 2 decisions\n" in ended.out
    assert "    Human peer.read Peer: proved; replayed 1 decision\n" in ended.out
    assert "NOT KNOWN" not in ended.out
    later = command(*asked, "--since", "2026-03-05T00:00:00Z", "--json")
    assert (later.code, {kind["replayed"] for kind in later.json["proofs"][0]["kinds"]}) == (0, {0})
    assert later.json["left_out"] == {"erased": 0, "not_replayable": 0, "not_by_policy": 0}


def test_what_was_recorded_refutes_a_claim_that_no_proof_reaches(command: Command, folder: Path, happened: Path) -> None:
    for case_file in folder.rglob("*_test.json"):
        case_file.unlink()
    (folder / "policies/org.cedar").write_text(UNREACHED)
    asked = ("policy", "changes", ROOT, folder, "--only", "Human, peer.read", "--json")
    unknown = command(*asked)
    assert (unknown.code, unknown.json["proofs"][0]["status"]) == (4, "open")
    ended = command(*asked, "--data", happened)
    [proof] = ended.json["proofs"]
    assert (ended.code, proof["status"], proof["counterexample"]["confirmed"]) == (3, "refuted", True)
    case = from_json(proof["counterexample"]["case"])
    assert (case.principal.type, case.decision, case.raw["description"].startswith("row ")) == ("Agent", "allow", True)
    assert run_case(find(ROOT).bundle(), case).failures == ()
    assert run_case(find(folder).bundle(), case).verdict.policies == ("org/hours",)


def test_what_is_asked_without_a_proof_is_counted_and_the_rest_is_not_known(
    command: Command, folder: Path, happened: Path
) -> None:
    (folder / "policies/org.cedar").write_text(UNREACHED)
    only = 'principal is Agent && action == Action::"peer.read" && context.now.toTime() > duration("9m")'
    ended = command("policy", "changes", ROOT, folder, "--only", only, "--data", happened, "--samples", "30")
    assert ended.code == 4
    [line] = [line.strip() for line in ended.out.splitlines() if line.strip().startswith("Agent peer.read Peer")]
    assert line.startswith("Agent peer.read Peer: not proved; replayed 2 decisions; tried ")
    assert line.endswith("; sampled 30 requests")
    assert "    NOT KNOWN: the other answers to 1 kind of question" in ended.out


def test_of_a_schema_that_no_proof_reads_chance_finds_what_breaks_a_claim(command: Command, shop: tuple[Path, Path]) -> None:
    asked = ("policy", "changes", *shop, "--json")
    right = command(*asked, "--only", f'{NET} && action == Shop::Action::"read"')
    kind = {"action": "read", "principal": "Shop::User", "resource": "Shop::Doc"}
    counts = {"proved": False, "replayed": 0, "listings": 0, "cases": 1, "sampled": 200}
    assert (right.code, right.json["proofs"][0]["kinds"]) == (4, [{**kind, **counts}])
    wrong = command(*asked, "--only", "context.minute > 600")
    [proof] = wrong.json["proofs"]
    assert (wrong.code, proof["status"]) == (3, "refuted")
    case = from_json(proof["counterexample"]["case"])
    assert run_case(find(shop[1]).bundle(), case).verdict.policies == ("net",)
    assert command(*asked, "--only", "context.minute > 600").json == wrong.json
    assert command(*asked, "--only", "context.minute > 600", "--samples", "0").code == 4


def test_what_is_not_known_of_a_schema_that_no_proof_reads_is_said(command: Command, shop: tuple[Path, Path]) -> None:
    ended = command("policy", "changes", *shop, "--only", NET)
    assert ended.out.splitlines()[3:] == [
        "    not reached: a schema with `namespace`",
        "    Shop::User read Shop::Doc: not proved; tried 1 case; sampled 200 requests",
        "    NOT KNOWN: the other answers to 1 kind of question: nothing that was asked of them breaks the claim",
        "    NOT KNOWN: any kind of question that no case is of and no recorded decision",
    ]


@pytest.mark.parametrize("flags", [("--samples", "-1"), ("--since", "2026-03-05T00:00:00Z")])
def test_flags_that_mean_nothing_are_bad_usage(command: Command, flags: tuple[str, ...]) -> None:
    assert command("policy", "changes", ROOT, ROOT, "--only", "Agent", *flags).code == 2
