"""`peergate policy prove`: what it prints and how it ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gateway.cli import policy_prove
from gateway.policy.bundle import Bundle
from gateway.policy.cases import from_json, run_case
from gateway.policy.folder import find
from tests.cli.conftest import Command
from tests.world import ROOT

pytest.importorskip("z3")

PERMIT = '@id("org/all") permit (principal, action == Action::"peer.read", resource);'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the shipped policies."""
    shutil.copytree(ROOT / "policies", tmp_path / "policies")
    shutil.copy(ROOT / "schema.cedarschema", tmp_path)
    return tmp_path


def bundle(folder: Path) -> Bundle:
    return find(folder).bundle()


def test_what_is_proved_ends_with_0_and_a_line_a_claim(command: Command) -> None:
    ended = command("policy", "prove", "--invariant", "observers")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[0] == "proved  observers"
    assert "whatever else is permitted" in ended.out


def test_a_counterexample_ends_with_3_and_is_a_case_that_runs(command: Command, folder: Path) -> None:
    (folder / "policies/guardrails/observers.cedar").unlink()
    (folder / "policies/org.cedar").write_text(PERMIT)
    ended = command("policy", "prove", "--dir", str(folder), "--invariant", "observers", "--json")
    assert ended.code == 3
    [proof] = ended.json["proofs"]
    assert (proof["claim"], proof["status"], proof["counterexample"]["confirmed"]) == ("observers", "refuted", True)
    case = from_json(proof["counterexample"]["case"])
    assert (case.decision, case.reason, run_case(bundle(folder), case).failures) == ("allow", {"org/all"}, ())


def test_a_counterexample_is_printed_as_a_file_of_cases(command: Command, folder: Path) -> None:
    (folder / "policies/org.cedar").write_text(PERMIT)
    ended = command("policy", "prove", "--dir", str(folder), "--implies", str(ROOT / "policies"))
    assert ended.code == 3
    assert ended.out.startswith("REFUTED  implies\n")
    assert '\n[\n  {\n    "name": "implies: ' in ended.out


def test_what_is_not_reached_ends_with_4_and_is_named(command: Command, folder: Path) -> None:
    text = PERMIT.replace(";", ' when { context.now.toTime() < duration("9h") };')
    (folder / "policies/org.cedar").write_text(text)
    schema = (folder / "schema.cedarschema").read_text()
    (folder / "schema.cedarschema").write_text(f'{schema}\nentity Colour enum ["red"];\n')
    ended = command("policy", "prove", "--dir", str(folder))
    assert (ended.code, ended.out) == (4, "")
    assert ended.err == "peergate: not reached: the enumerated type `Colour`\n"


def test_invariants_of_ones_own_are_proved_from_a_file(command: Command, tmp_path: Path) -> None:
    own = tmp_path / "erasure.cedar"
    own.write_text('forbid (principal, action == Action::"peer.erase", resource) unless { principal is Human };')
    assert command("policy", "prove", "--never", str(own)).out.startswith("proved  erasure\n")
    own.write_text("forbid (principal, action, resource) when { nothing };")
    assert command("policy", "prove", "--never", str(own)).code == 2


def test_an_invariant_that_is_not_known_is_bad_usage(command: Command) -> None:
    ended = command("policy", "prove", "--invariant", "colour")
    assert (ended.code, "got `colour`" in ended.err) == (2, True)


@pytest.mark.parametrize("verb", [("prove",), ("changes", ROOT, "--only", "Agent")], ids=["prove", "changes"])
def test_without_the_solver_a_proof_ends_with_4_and_says_how_to_get_it(
    verb: tuple[str | Path, ...], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_prove, "find_spec", lambda name: None)
    ended = command("policy", *verb)
    assert (ended.code, ended.out) == (4, "")
    assert ended.err == "peergate: proofs need the solver: pip install '.[prove]' in the checkout, or 'peergate[prove]'\n"
    assert "4 neither: the solver is not installed, or" in " ".join(command("policy", verb[0], "--help").out.split())
