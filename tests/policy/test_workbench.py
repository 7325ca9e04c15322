"""The small rooms of the workbench: folders, selection, lines, JUnit, the index, scaffolds, idle policies, differences."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import cedarpy
import pytest

from gateway.policy.bundle import Bundle
from gateway.policy.cases import CaseError, run_cases
from gateway.policy.difference import difference
from gateway.policy.finding import PolicyError
from gateway.policy.folder import find
from gateway.policy.format import formatted
from gateway.policy.idle import idle
from gateway.policy.index import as_markdown, index, vocabulary_markdown
from gateway.policy.junit import as_junit
from gateway.policy.lines import case_lines
from gateway.policy.scaffold import scaffold
from gateway.policy.selection import selection
from tests.policy.folders import CASES, FILES, READ, SCHEMA, SECRET, a_case, a_folder, written
from tests.world import ROOT

SHIPPED = find(ROOT)
MOMENT = json.loads((ROOT / "policies/peer/read_test.json").read_text())[0]["request"]["context"]


@pytest.fixture(scope="module")
def shipped() -> Bundle:
    return SHIPPED.bundle()


def a_bundle(*policies: str) -> Bundle:
    return Bundle.from_text(SCHEMA, {"p.cedar": "\n".join(policies)}, house_rules=False)


def permit(id_: str, when: str = "", *, principal: str = "principal is User", action: str = "doc.read") -> str:
    condition = f"when {{ {when} }}" if when else ""
    return f'@id("{id_}") permit ({principal}, action == Action::"{action}", resource is Doc) {condition};'


def forbid(id_: str, when: str = "", action: str = "action") -> str:
    condition = f"when {{ {when} }}" if when else ""
    return f'@id("{id_}") forbid (principal, {action}, resource is Doc) {condition};'


def test_a_folder_is_found_by_its_directory_or_by_that_of_its_policies(tmp_path: Path) -> None:
    folder = find(a_folder(tmp_path))
    (tmp_path / "more_test.json").write_text(json.dumps([a_case("beside", "ann", "doc.read", "plain", "doc/read/active")]))
    assert [case.name for case in find(tmp_path).cases()][-1] == "beside"
    assert (find(tmp_path / "policies").policies, find(tmp_path / "policies").schema) == (folder.policies, folder.schema)
    assert find(tmp_path).case_file(find(tmp_path).cases()[-1]) == tmp_path / "more_test.json"


def test_the_nearest_schema_above_is_the_one(tmp_path: Path) -> None:
    a_folder(tmp_path / "project" / "inner")
    (tmp_path / "project" / "inner" / "schema.cedarschema").rename(tmp_path / "project" / "schema.cedarschema")
    assert find(tmp_path / "project" / "inner").schema == tmp_path / "project" / "schema.cedarschema"
    (tmp_path / "project" / "schema.cedarschema").unlink()
    with pytest.raises(PolicyError, match="neither has any directory above it"):
        find(tmp_path / "project" / "inner")


def test_a_case_of_a_cast_outside_the_policies_is_refused(tmp_path: Path) -> None:
    a_folder(tmp_path)
    written(tmp_path, "doc/read_test.json", json.dumps([a_case("x", "ann", "doc.read", "plain", entities_from="../x.json")]))
    with pytest.raises(CaseError, match="outside the directory"):
        find(tmp_path).cases()


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("", [0, 1, 2, 3]),
        ("ACTIVE", [0, 2]),
        ("active and not write", [0]),
        ("secret or (another and doc.read)", [1, 3]),
        ("not (active or another)", [3]),
        ('"an active user"', [0, 2]),
        ("C1", [0]),
        ("guardrails/", [3]),
        ("not not secret", [3]),
    ],
)
def test_cases_are_chosen_by_words(tmp_path: Path, expression: str, chosen: list[int]) -> None:
    cases = find(a_folder(tmp_path)).cases()
    assert [at for at, case in enumerate(cases) if selection(expression)(case)] == chosen


@pytest.mark.parametrize("expression", ["and", "x and", "(x", "x)", "not", "or x", "x y", "()"])
def test_an_expression_that_is_none_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r"missing|not expected"):
        selection(expression)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("[]", []),
        ("[1]", [1]),
        ('[\n {"a": "[\\n"},\n\n {},{}\n]\n', [2, 4, 4]),
        ("\n[\r\n  1,\r\n  2]", [3, 4]),
    ],
)
def test_cases_are_found_in_their_files(text: str, lines: list[int]) -> None:
    assert case_lines(text) == lines


def test_a_failure_and_a_control_are_in_the_xml_whatever_a_name_holds(tmp_path: Path) -> None:
    a_folder(tmp_path)
    hostile = a_case('<&"\x00\x1b', "bob", "doc.read", "plain", decision="allow", control="C2")
    written(tmp_path, "doc/write_test.json", json.dumps([hostile]))
    folder = find(tmp_path)
    root = ElementTree.fromstring(as_junit(run_cases(folder.bundle(), folder.cases())))
    suites = [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root]
    assert suites == [
        ("doc/read_test.json", "2", "0"),
        ("doc/write_test.json", "1", "1"),
        ("guardrails/secret_test.json", "1", "0"),
    ]
    case = root[1][0]
    assert (case.get("name"), case.get("classname")) == ('<&"??', "doc/write_test")
    assert [(p.get("name"), p.get("value")) for p in case.iter("property")] == [("control", "C2")]
    [failure] = case.iter("failure")
    assert failure.get("message") == failure.text == "is deny (not_permitted), not allow"


def test_the_index_tells_an_actions_own_policies_from_the_guardrails(tmp_path: Path) -> None:
    folder = find(a_folder(tmp_path))
    read, write = index(folder.bundle(), folder.cases())
    assert (read.action, read.principals, read.resources, read.groups, read.cases) == ("doc.read", ("User",), ("Doc",), (), 3)
    assert (write.groups, write.files, write.cases) == (("written",), ("doc/write.cedar",), 1)
    assert ([p.id for p in write.policies], [p.id for p in write.guardrails]) == (["doc/write/active"], ["guardrails/secret"])
    assert as_markdown([write]) == (
        "| action | files | policies | cases | guardrails that could match |\n| --- | --- | --- | --- | --- |\n"
        "| `doc.write` | `doc/write.cedar` | `doc/write/active` | 1 | `secret` |\n"
    )


def test_the_vocabulary_is_all_that_the_schema_names(tmp_path: Path) -> None:
    text = vocabulary_markdown(find(a_folder(tmp_path)).bundle())
    assert "| `Doc` | `Org` | `org` Org, `price` decimal (optional), `secret` Bool |\n| `Org` | - | - |" in text
    assert text.endswith("| `doc.read` | `User` | `Doc` | - |\n| `doc.write` | `User` | `Doc` | `written` |\n")


def test_scaffolds_of_all_actions_load_and_the_first_case_of_each_fails_alone(shipped: Bundle, tmp_path: Path) -> None:
    for action in shipped.actions:
        for name, text in scaffold(shipped, action, MOMENT).items():
            written(tmp_path, name, text)
    (tmp_path / "schema.cedarschema").write_text(SHIPPED.schema.read_text())
    folder = find(tmp_path)
    results = run_cases(folder.bundle(house_rules=True), folder.cases())
    assert {result.case.action for result in results} == shipped.actions
    assert [result.case.number for result in results] == [1, 2] * len(shipped.actions)
    assert [result.passed for result in results] == [False, True] * len(shipped.actions)


def test_text_is_formatted_with_its_comments_and_what_is_no_policy_is_refused() -> None:
    assert formatted("x.cedar", "// why\npermit(principal,action,resource);") == "// why\npermit (principal, action, resource);\n"
    assert formatted("x.cedar", cedarpy.format_policies(READ)) == cedarpy.format_policies(READ)
    for text in ("permit", "permit (principal, action, resource) when { " + "(" * 600 + "true" + ")" * 600 + " };"):
        with pytest.raises(PolicyError, match=r"x\.cedar:"):
            formatted("x.cedar", text)


def test_the_shipped_policies_are_not_idle(shipped: Bundle) -> None:
    assert list(idle(shipped)) == []


ACTIVE, OWN = "principal.active", "resource in principal.org"
BY_A, BY_B = (f"changes nothing: `{other}` applies wherever it does" for other in "ab")
BOTH = 'action in [Action::"doc.read", Action::"doc.write"]'


@pytest.mark.parametrize(
    ("policies", "found"),
    [
        ((permit("a", ACTIVE), permit("b", f"{ACTIVE} && {OWN}")), {"b": BY_A}),
        (
            (permit("a", f"{OWN} && {ACTIVE}"), permit("b", f"{ACTIVE} && {OWN}")),
            {"b": BY_A},
        ),
        ((permit("a", OWN), permit("b", ACTIVE)), {}),
        ((permit("a"), permit("b", action="doc.write")), {}),
        (
            (permit("a", principal="principal"), permit("b", principal='principal == User::"ann"')),
            {"b": BY_A},
        ),
        (
            (permit("a", principal='principal == User::"ann"'), permit("b")),
            {"a": BY_B},
        ),
        ((permit("a", principal='principal in Org::"o"'), permit("b", principal='principal in Org::"p"')), {}),
        (
            (permit("a", principal='principal in Org::"o"'), permit("b", principal='principal is User in Org::"o"')),
            {"b": BY_A},
        ),
        ((permit("a", ACTIVE), forbid("f", "resource.secret")), {}),
        ((permit("a", ACTIVE), forbid("f")), {"a": "permits nothing: `f` forbids all of it"}),
        ((permit("a", f"{ACTIVE} && {OWN}"), forbid("f", OWN)), {"a": "permits nothing: `f` forbids all of it"}),
        (
            (permit("a", action="doc.write"), permit("b"), forbid("f", action='action in Action::"written"')),
            {"a": "permits nothing: `f` forbids all of it"},
        ),
        ((permit("a", f"{ACTIVE} && !({ACTIVE} || {OWN})"),), {"a": "never applies: its conditions cannot all be true"}),
        ((permit("a", "false"),), {"a": "never applies: its conditions cannot all be true"}),
        ((permit("a", "!true"),), {"a": "never applies: its conditions cannot all be true"}),
        ((permit("a", "!false"), permit("b", ACTIVE)), {"b": BY_A}),
        ((permit("a", "true"), permit("b", f"!!({ACTIVE})")), {"b": BY_A}),
        (
            (
                forbid("f", action=BOTH),
                forbid("g", action='action == Action::"doc.read"'),
            ),
            {"g": "changes nothing: `f` applies wherever it does"},
        ),
    ],
)
def test_a_policy_that_changes_no_decision_is_found(policies: tuple[str, ...], found: dict[str, str]) -> None:
    assert {finding.policy_id: finding.message for finding in idle(a_bundle(*policies))} == found


def changes(old: Bundle, new: Bundle) -> list[tuple[str, str, bool]]:
    return [(change.kind, change.policy_id, change.opens) for change in difference(old, new)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (permit("a", ACTIVE), permit("a", ACTIVE), []),
        (permit("a", ACTIVE), permit("a", f"{ACTIVE} && {OWN}"), [("narrowed", "a", False)]),
        (permit("a", f"{ACTIVE} && {OWN}"), permit("a", ACTIVE), [("widened", "a", True)]),
        (permit("a", ACTIVE), permit("a", OWN), [("changed", "a", True)]),
        (permit("a", f"{ACTIVE} && {OWN}"), permit("a", f"{OWN} && {ACTIVE}"), [("reworded", "a", False)]),
        (permit("a", ACTIVE), permit("a", ACTIVE, principal="principal"), [("widened", "a", True)]),
        (forbid("a", ACTIVE), forbid("a"), [("widened", "a", False)]),
        (forbid("a"), forbid("a", ACTIVE), [("narrowed", "a", True)]),
        (forbid("a", ACTIVE), forbid("a", OWN), [("changed", "a", True)]),
        (forbid("a"), permit("a"), [("changed", "a", True)]),
        (permit("b"), permit("b") + permit("a"), [("added", "a", True)]),
        (permit("b") + permit("a"), permit("b"), [("removed", "a", False)]),
        (permit("b"), permit("b") + forbid("a"), [("added", "a", False)]),
        (permit("b") + forbid("a"), permit("b"), [("removed", "a", True)]),
    ],
)
def test_a_difference_says_whether_more_could_be_allowed(before: str, after: str, expected: list[tuple[str, str, bool]]) -> None:
    assert changes(a_bundle(before), a_bundle(after)) == expected


def test_a_changed_schema_could_mean_anything() -> None:
    old = Bundle.from_text(SCHEMA, FILES, house_rules=False)
    new = Bundle.from_text(SCHEMA.replace(' in ["written"]', ""), FILES, house_rules=False)
    [change] = difference(old, new)
    assert (change.kind, change.policy_id, change.file, change.opens) == ("changed", "", "schema.cedarschema", True)
    assert '-action "doc.write" in ["written"]' in change.text


def test_the_order_of_files_and_of_policies_is_no_difference() -> None:
    old = Bundle.from_text(SCHEMA, {"a.cedar": READ, "b.cedar": SECRET}, house_rules=False)
    new = Bundle.from_text(SCHEMA, {"a.cedar": SECRET + READ}, house_rules=False)
    assert changes(old, new) == []


def test_the_cases_of_the_small_folder_hold(tmp_path: Path) -> None:
    folder = find(a_folder(tmp_path))
    results = run_cases(folder.bundle(house_rules=True), folder.cases())
    assert [result.failures for result in results] == [()] * sum(map(len, CASES.values()))
