"""An export holds all that decides: cedarpy alone, asked with nothing else, answers every case as it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cedarpy
import pytest
from cedarpy import pst

from gateway.policy.bundle import Bundle
from gateway.policy.cases import load_cases, run_case
from gateway.policy.export import ExportError, export
from gateway.policy.folder import find
from tests.policy.folders import a_case, a_folder, written
from tests.world import ROOT

FOLDER = find(ROOT)
BUNDLE, CASES = FOLDER.bundle(), FOLDER.cases()
SEARCH = next(c for c in CASES if c.action == "memory.search" and c.grants and c.principal.id == "partner")


def answers(files: dict[str, str]) -> list[tuple[str, str, bool, int]]:
    """What is wrong with each test, judged as the Cedar CLI judges: name, decision, whether the reasons are there, errors."""
    parsed = cedarpy.policies_to_pst(files["bundle.cedar"]).static_policies.values()
    named = {tree.annotations["id"]: tree for tree in parsed}
    assert len(named) == len(parsed)
    trees = {id_: pst.Template(id_, t.effect, t.principal, t.action, t.resource, t.clauses, {}) for id_, t in named.items()}
    policies = cedarpy.PolicySet.from_pst(pst.PolicySet({}, trees, ()))
    schema = cedarpy.Schema.from_str(files["schema.cedarschema"])
    assert cedarpy.validate_policies(files["bundle.cedar"], schema).validation_passed
    wrong, entities = [], dict[str, cedarpy.Entities]()
    for test in json.loads(files["tests.json"]):
        assert test.keys() >= {"request", "entities", "decision", "reason", "num_errors"}
        text = json.dumps(test["entities"])
        handle = entities.setdefault(text, cedarpy.Entities.from_json_str(text, schema))
        answer = cedarpy.is_authorized(test["request"], policies, handle, schema)
        found = answer.diagnostics
        said = (answer.decision.value.lower(), set(test["reason"]) <= set(found.reasons), len(found.errors))
        if said != (test["decision"], True, test["num_errors"]):
            wrong.append((test["name"], *said))
    return wrong


def test_every_shipped_case_holds_in_the_export() -> None:
    files = export(BUNDLE, CASES)
    assert files.keys() == {"bundle.cedar", "schema.cedarschema", "tests.json"}
    assert "entities_from" not in files["tests.json"]
    assert answers(files) == []


def test_our_keys_are_kept_but_for_casts_and_grants(tmp_path: Path) -> None:
    folder = find(a_folder(tmp_path))
    first, *_ = json.loads(export(folder.bundle(), folder.cases())["tests.json"])
    assert first.keys() == {
        *("name", "request", "entities", "decision", "reason", "num_errors"),
        *("reason_exact", "control"),
    }


def test_an_exported_folder_is_a_folder_again(tmp_path: Path) -> None:
    folder = find(a_folder(tmp_path / "a"))
    files = export(folder.bundle(), folder.cases())
    (tmp_path / "b" / "policies").mkdir(parents=True)
    for name, text in files.items():
        at = tmp_path / "b" if name.endswith("schema") else tmp_path / "b" / "policies"
        (at / name.replace("tests.json", "all_test.json")).write_text(text)
    again = find(tmp_path / "b")
    assert again.bundle().hash == folder.bundle().hash
    assert [run_case(again.bundle(), case).failures for case in again.cases()] == [()] * len(folder.cases())


def test_a_policy_without_an_id_gets_the_one_that_it_is_called_by(tmp_path: Path) -> None:
    text = 'permit (principal, action == Action::"doc.write", resource);'
    folder = find(a_folder(tmp_path, doc__write=text))
    case = json.dumps([a_case("anybody", "bob", "doc.write", "plain", "doc/write#1")])
    written(tmp_path, "doc/write_test.json", case)
    files = export(folder.bundle(), folder.cases())
    assert '@id("doc/write#1")\npermit' in files["bundle.cedar"]
    assert answers(files) == []


SCHEMA = """
entity User = { level: Long };
entity Doc;
action "read" appliesTo { principal: [User], resource: [Doc], context: {} };
"""
ERRING = """
@id("all") permit (principal, action, resource);
@id("high") forbid (principal, action, resource) when { principal.level + 1 > 5 };
"""


def test_where_a_policy_errs_the_export_says_what_cedar_says_and_that_we_deny(tmp_path: Path) -> None:
    """Cedar skips a forbid that errs and allows; we deny."""
    request = {"principal": 'User::"ann"', "action": 'Action::"read"', "resource": 'Doc::"d"', "context": {}}
    rows = [
        {"uid": {"type": "User", "id": "ann"}, "attrs": {"level": 2**63 - 1}, "parents": []},
        {"uid": {"type": "Doc", "id": "d"}, "attrs": {}, "parents": []},
    ]
    case = {"name": "overflow", "request": request, "entities": rows, "decision": "deny", "reason": ["all"], "num_errors": 1}
    (tmp_path / "x_test.json").write_text(json.dumps([case | {"deny_kind": "evaluation_error"}]))
    bundle = Bundle.from_text(SCHEMA, {"p.cedar": ERRING}, house_rules=False)
    files = export(bundle, load_cases(tmp_path))
    [exported] = json.loads(files["tests.json"])
    assert (exported["decision"], exported["deny_kind"]) == ("allow", "evaluation_error")
    assert answers(files) == []


def test_a_request_that_is_not_valid_is_left_out(tmp_path: Path) -> None:
    a_folder(tmp_path)
    wrong = a_case("no such user", "eve", "doc.read", "plain", deny_kind="invalid_request")
    written(tmp_path, "doc/write_test.json", json.dumps([wrong]))
    folder = find(tmp_path)
    names = [test["name"] for test in json.loads(export(folder.bundle(), folder.cases())["tests.json"])]
    assert names == [case.name for case in folder.cases() if case.name != "no such user"]


def test_what_one_bundle_cannot_say_is_refused() -> None:
    with pytest.raises(ExportError, match=r'`ungranted` grants `Connection::"partner"` something else'):
        export(BUNDLE, [SEARCH, replace(SEARCH, name="ungranted", grants=())])
    held = tuple(replace(grant, connection_id="tagged") for grant in SEARCH.grants)
    other = replace(SEARCH, request={**SEARCH.request, "principal": 'Connection::"tagged"'}, grants=held)
    with pytest.raises(ExportError, match="two connections hold a grant of one id"):
        export(BUNDLE, [SEARCH, other])


def test_a_connection_is_granted_nothing_by_cases_of_what_no_grant_opens() -> None:
    request = {**SEARCH.request, "action": 'Action::"memory.retag"'}
    raw = {**SEARCH.raw, "request": request, "decision": "deny", "reason": []}
    assert answers(export(BUNDLE, [SEARCH, replace(SEARCH, request=request, raw=raw, grants=())])) == []
