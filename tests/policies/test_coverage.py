"""The cases of the policies that are shipped: how deep they go, and whether they would notice a mistake."""

import json
from pathlib import Path

import pytest

from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case, load_cases
from gateway.policy.coverage import levels
from gateway.policy.matrix import matrix, table
from gateway.policy.mutate import mutate
from tests.world import ROOT

POLICIES = ROOT / "policies"
SURVIVORS = Path(__file__).with_name("survivors.json")
MATRIX = Path(__file__).with_name("matrix.txt")
RENEW = f"renew it, and read the diff: peergate policy matrix > {MATRIX.relative_to(ROOT)}"


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.load(ROOT / "schema.cedarschema", POLICIES)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return load_cases(POLICIES)


def test_each_policy_fires_and_decides_and_each_clause_goes_both_ways(bundle: Bundle, cases: list[Case]) -> None:
    found = levels(bundle, cases)
    assert [str(finding) for level in found.all for finding in level.missing] == []
    assert found.percent == 100


def test_each_small_mistake_in_a_policy_is_noticed_by_a_case_or_justified(bundle: Bundle, cases: list[Case]) -> None:
    """A justification is a sentence by the id of the mutant, in `survivors.json`; one that is not needed is taken out."""
    survivors = {survivor.id: survivor.diff for survivor in mutate(bundle, cases).survivors}
    justified: dict[str, str] = json.loads(SURVIVORS.read_text())
    assert {id_: diff for id_, diff in survivors.items() if id_ not in justified} == {}
    assert justified.keys() - survivors.keys() == set()
    assert [id_ for id_, sentence in justified.items() if not sentence.endswith(".")] == []


def test_who_may_do_what_is_as_it_was_reviewed(bundle: Bundle, cases: list[Case]) -> None:
    assert table(matrix(bundle, cases)) == MATRIX.read_text(), RENEW
