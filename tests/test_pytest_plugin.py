"""The pytest plugin: cases are tests where there are policies, and no other file is touched."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.world import ROOT

SCHEMA = """
entity User = { active: Bool };
entity Doc;
action "read" appliesTo { principal: [User], resource: [Doc], context: {} };
"""
POLICY = '@id("read") permit (principal, action == Action::"read", resource) when { principal.active };'
DOC = {"uid": {"type": "Doc", "id": "d"}, "attrs": {}, "parents": []}


def a_user(id_: str, *, active: bool) -> dict[str, object]:
    return {"uid": {"type": "User", "id": id_}, "attrs": {"active": active}, "parents": []}


def a_case(name: str, user: str = "ann", **changes: object) -> dict[str, object]:
    """A case in the Cedar CLI's own format, without a key of ours."""
    request = {"principal": f'User::"{user}"', "action": 'Action::"read"', "resource": 'Doc::"d"', "context": {}}
    entities = [DOC, a_user("ann", active=True), a_user("bob", active=False)]
    return {"name": name, "request": request, "entities": entities, "decision": "allow", "reason": [], "num_errors": 0} | changes


HOLDS = a_case("ann reads", reason=["read"])
DENIED = a_case("bob does not", "bob", decision="deny")


def a_folder(at: Path, *cases: object, schema: str = SCHEMA, policy: str = POLICY) -> Path:
    (at / "policies").mkdir(parents=True)
    (at / "schema.cedarschema").write_text(schema)
    (at / "policies" / "read.cedar").write_text(policy)
    (at / "policies" / "read_test.json").write_text(json.dumps(cases))
    return at


def run(at: Path, *arguments: str) -> tuple[int, str, dict[str, int]]:
    """The exit code, the output and the counts of a session of its own, which knows this plugin and no other."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-p", "gateway.pytest_plugin", "-p", "no:cacheprovider", *arguments]
    ended = subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True, check=False)
    counts = {word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) (passed|failed|errors?)", ended.stdout)}
    return ended.returncode, ended.stdout, counts


def test_each_case_is_a_test_of_its_name(tmp_path: Path) -> None:
    code, out, counts = run(a_folder(tmp_path, HOLDS, DENIED), "policies/", "-v")
    assert (code, counts) == (0, {"passed": 2})
    assert "policies/read_test.json::ann reads PASSED" in out


def test_a_case_that_is_not_met_says_where_it_stands_and_how_it_differs(tmp_path: Path) -> None:
    code, out, counts = run(a_folder(tmp_path, HOLDS, DENIED | {"decision": "allow"}), "policies/")
    assert (code, counts) == (1, {"passed": 1, "failed": 1})
    assert "read_test.json:1: bob does not" in out
    assert 'User::"bob" Action::"read" Doc::"d"' in out
    assert "is deny (not_permitted), not allow" in out
    assert "Traceback" not in out


def test_cases_are_chosen_by_name(tmp_path: Path) -> None:
    assert run(a_folder(tmp_path, HOLDS, DENIED), "policies/", "-k", "bob")[2] == {"passed": 1}


def test_a_cast_is_shared_by_cases_in_and_beside_the_policies(tmp_path: Path) -> None:
    shared = HOLDS | {"entities": [], "entities_from": "casts/all.json"}
    at = a_folder(tmp_path, shared)
    (at / "policies" / "casts").mkdir()
    (at / "policies" / "casts" / "all.json").write_text(json.dumps(HOLDS["entities"]))
    (at / "more_test.json").write_text(json.dumps([shared, DENIED]))
    assert run(at)[2] == {"passed": 3}


def test_a_schema_above_is_the_schema_of_every_folder_below(tmp_path: Path) -> None:
    (tmp_path / "schema.cedarschema").write_text(SCHEMA)
    for name in ("one", "two"):
        (a_folder(tmp_path / name, HOLDS) / "schema.cedarschema").unlink()
    assert run(tmp_path)[2] == {"passed": 2}


@pytest.mark.parametrize("name", ["data_test.json", "policies/data.json", "other/policies/x_test.json"])
def test_a_file_that_is_not_of_cases_is_left_alone(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("not json")
    assert run(tmp_path)[0] == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_directory_of_another_name_is_named_by_the_option(tmp_path: Path) -> None:
    at = a_folder(tmp_path, HOLDS)
    (at / "policies").rename(at / "rules")
    assert run(at)[0] == pytest.ExitCode.NO_TESTS_COLLECTED
    assert run(at, "--peergate-policies", "rules")[2] == {"passed": 1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"policy": "permit (principal, action, resource) when { resource.gone };"}, "read.cedar:1"),
        ({"schema": "entity"}, "schema.cedarschema"),
    ],
)
def test_a_folder_that_does_not_load_is_an_error_with_its_place(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    code, out, counts = run(a_folder(tmp_path, HOLDS, **change))
    assert (code, counts) == (pytest.ExitCode.INTERRUPTED, {"error": 1})
    assert said in out


def test_a_file_that_holds_no_cases_is_an_error(tmp_path: Path) -> None:
    code, out, _ = run(a_folder(tmp_path, HOLDS | {"decision": "maybe"}))
    assert code == pytest.ExitCode.INTERRUPTED
    assert "read_test.json: case 1: " in out


def test_the_shipped_policies_are_tests_too() -> None:
    code, _, counts = run(ROOT, "policies/guardrails/observers_test.json", "-c", "/dev/null", "--rootdir", str(ROOT))
    assert (code, counts.keys()) == (0, {"passed"})


def test_loading_the_plugin_loads_nothing_of_the_gateway() -> None:
    code = "import sys, gateway.pytest_plugin; print(*sorted(m for m in sys.modules if m.startswith(('gateway', 'cedarpy'))))"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["gateway", "gateway.pytest_plugin"]
