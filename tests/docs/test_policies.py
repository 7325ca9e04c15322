"""The guide to writing policies: its tables are the schema's and the format's, its recipes load, hold, and are as printed."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.policy import guardrails
from gateway.policy.cases import KEYS, load_cases, run_cases
from gateway.policy.coverage import levels
from gateway.policy.files import read_texts
from gateway.policy.folder import find
from gateway.policy.idle import idle
from gateway.policy.index import vocabulary_markdown
from tests.world import ROOT

GUIDE = (ROOT / "docs" / "policies.md").read_text("utf-8")
RECIPES = sorted(path for path in (ROOT / "docs" / "recipes").iterdir() if path.is_dir())
PRINTED = re.findall(r"^```cedar\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)

each_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)


@pytest.fixture(scope="module")
def shipped() -> dict[str, str]:
    return read_texts(ROOT / "policies")


def test_the_vocabulary_is_that_of_the_schema() -> None:
    [table] = re.findall(r"<!-- vocabulary -->\n(.*)<!-- end of vocabulary -->", GUIDE, re.DOTALL)
    assert table == vocabulary_markdown(find(ROOT).bundle()), "stale: paste what `peergate policy index --vocabulary` prints"


def test_every_key_of_a_case_is_told() -> None:
    [table] = re.findall(r"^\| key \| what it says \|\n(.*?)\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    told = {key for row in table.splitlines() for key in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert told == KEYS


def test_there_are_ten_recipes_and_each_is_in_the_guide() -> None:
    assert len(RECIPES) == 10
    assert [path.name for path in RECIPES] == sorted(re.findall(r"\[`docs/recipes/(\w+)`\]", GUIDE))


def test_every_policy_in_the_guide_is_in_a_recipe_as_it_is_printed(shipped: dict[str, str]) -> None:
    written = [text for recipe in RECIPES for text in read_texts(recipe / "policies").values()]
    assert len(PRINTED) == len(RECIPES)
    assert [policy for policy in PRINTED if not any(policy in text for text in written)] == []
    assert [policy for policy in PRINTED if any(policy in text for text in shipped.values())] == []


@each_recipe
def test_a_recipe_loads_by_the_house_rules_and_its_cases_hold_alone(recipe: Path) -> None:
    folder = find(recipe)
    bundle = folder.bundle(house_rules=True)
    assert list(idle(bundle)) == []
    assert {r.case.name: r.failures for r in run_cases(bundle, folder.cases()) if not r.passed} == {}


@each_recipe
def test_its_cases_hold_among_all_that_is_shipped(recipe: Path, shipped: dict[str, str]) -> None:
    schema = (ROOT / "schema.cedarschema").read_text("utf-8")
    bundle = guardrails.load(schema, {**shipped, **read_texts(recipe / "policies")}, shipped)
    cases = [replace(case, reason_exact=False, deny_kind=None) for case in load_cases(recipe / "policies")]
    assert {r.case.name: r.failures for r in run_cases(bundle, cases) if not r.passed} == {}


@each_recipe
def test_what_a_recipe_adds_decides_in_its_cases_and_each_of_its_clauses_is_seen_both_ways(
    recipe: Path, shipped: dict[str, str]
) -> None:
    """Of what it has from the shipped files the shipped cases speak."""
    folder = find(recipe)
    known = "".join(shipped.values())
    own = {id_ for id_, info in folder.bundle().policies.items() if info.text not in known}
    found = levels(folder.bundle(), folder.cases())
    assert own
    assert [str(missing) for level in found.all for missing in level.missing if missing.policy_id in own] == []


def test_the_commands_of_a_change_are_done_on_a_change_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [block] = re.findall(r"^```sh\n(peergate policy copy mine.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    *commands, served = [line.partition("#")[0].strip() for line in block.splitlines()]
    assert served == "peergate serve --policies mine/policies"
    shutil.copy(ROOT / "schema.cedarschema", tmp_path)
    shutil.copytree(ROOT / "policies", tmp_path / "policies")
    monkeypatch.chdir(tmp_path)
    assert {line: main(shlex.split(line)[1:]) for line in commands} == dict.fromkeys(commands, 0)
