from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gateway.model.decision import DenyKind
from gateway.policy import files
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case, CaseError, expand, load_cases, run_case, run_cases
from gateway.policy.coverage import Coverage, coverage, unnoticed
from tests.policy import builders as b

ORG = b.uid("Org", "o")
CAST = [b.a_row("Org", "o"), b.a_row("User", "ann", ORG, org={"__entity": ORG}, active=True, level=1)]
DOC_ROW = b.a_row("Doc", "d", ORG, org={"__entity": ORG}, owner={"__entity": b.uid("User", "ann")}, level=1)
STORE = """
@id("read") permit (principal, action == Action::"read", resource) when { principal.active };
@id("level") forbid (principal, action == Action::"read", resource) when { resource.level + 1 > 5 };
"""
BUNDLE = Bundle.from_text(b.SCHEMA, {"s.cedar": STORE}, house_rules=False)


def a_case(**changes: Any) -> dict[str, Any]:
    request = {"principal": 'User::"ann"', "action": 'Action::"read"', "resource": 'Doc::"d"', "context": {}}
    case = {"request": request, "entities": [DOC_ROW], "entities_from": "casts/all.json", "decision": "allow", "reason": ["read"]}
    return case | {"num_errors": 0} | changes


def with_level(level: int) -> list[dict[str, object]]:
    return [b.a_row("Doc", "d", ORG, org={"__entity": ORG}, owner={"__entity": b.uid("User", "ann")}, level=level)]


def written(directory: Path, *cases: object) -> Path:
    (directory / "casts").mkdir(parents=True)
    (directory / "casts" / "all.json").write_text(json.dumps(CAST))
    (directory / "read_test.json").write_text(json.dumps(cases))
    return directory


def loaded(directory: Path, *cases: object) -> list[Case]:
    return load_cases(written(directory, *cases))


FORBIDDEN = a_case(
    entities=with_level(9), decision="deny", reason=["level"], deny_kind="forbidden", name="too high", control="C1"
)


def test_cases_pass_when_the_engine_answers_as_they_say(tmp_path: Path) -> None:
    cases = loaded(tmp_path, a_case(reason_exact=True, description="Ann reads."), FORBIDDEN, a_case(reason=[]))
    assert [run_case(BUNDLE, case).failures for case in cases] == [(), (), ()]
    assert [(case.name, case.control, case.action) for case in cases[:2]] == [
        ("read_test.json 1", "", "read"),
        ("too high", "C1", "read"),
    ]


def test_a_case_that_is_not_met_says_how(tmp_path: Path) -> None:
    nobody = {"request": a_case()["request"] | {"principal": 'User::"bob"'}}
    overflow = with_level(2**63 - 1)
    expected = [
        (a_case(decision="deny"), ("is allow (by read), not deny",)),
        (a_case(entities=with_level(9)), ("is deny (forbidden), not allow", "is not decided by read")),
        (a_case(reason=[], reason_exact=True), ("is decided by read too",)),
        (a_case(entities=overflow, decision="deny", reason=[]), ("has 1 errors, not 0",)),
        (FORBIDDEN | {"deny_kind": "not_permitted"}, ("is denied as forbidden, not not_permitted",)),
        (
            a_case(decision="deny", reason=[], **nobody),
            ("is not a valid request, or over entities that are not all there",),
        ),
        (a_case(decision="deny", reason=[], deny_kind="invalid_request", **nobody), ()),
    ]
    results = run_cases(BUNDLE, loaded(tmp_path, *(case for case, _ in expected)))
    assert [result.failures for result in results] == [failures for _, failures in expected]
    assert [result.passed for result in results] == [not failures for _, failures in expected]


def test_an_expanded_case_holds_its_cast_and_runs_on_its_own(tmp_path: Path) -> None:
    [case] = loaded(tmp_path / "a", a_case(control="C1"))
    plain = expand(case)
    assert plain == {
        key: value for key, value in a_case(control="C1", entities=[DOC_ROW, *CAST]).items() if key != "entities_from"
    }
    [again] = loaded(tmp_path / "b", plain)
    assert run_case(BUNDLE, again).passed


def test_a_grant_of_a_case_is_what_it_says_and_else_what_a_grant_is_by_default(tmp_path: Path) -> None:
    full = {"id": "b", "actions": ["search", "read"], "project_id": "beta", "tags": ["x"], "tags_match": "all"}
    full |= {"classifications": ["pii"], "provenance": "owner_only"}
    [case] = loaded(tmp_path, a_case(grants=[{"id": "a", "actions": ["read"], "project_id": "alpha"}, full]))
    first, second = case.grants
    assert (first.id, first.connection_id, first.actions, first.project_id) == ("a", "ann", ("read",), "alpha")
    assert (first.tags, first.classifications, first.provenance) == ((), ("public", "internal"), "any")
    assert (second.id, second.actions, second.project_id) == ("b", ("search", "read"), "beta")
    assert (second.tags, second.tags_match, second.classifications, second.provenance) == (("x",), "all", ("pii",), "owner_only")


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (a_case(decision="maybe"), "`decision` is `allow` or `deny`"),
        (a_case(surprise=1), "unknown keys"),
        (a_case(entities_from="../secret.json"), "outside the directory"),
        (a_case(entities_from="casts/gone.json"), "No such file"),
        (a_case(deny_kind="no"), "ValueError"),
        (a_case(request={}), "KeyError"),
        (a_case(grants=[{"id": "g", "actions": ["read"]}]), "KeyError: 'project_id'"),
        (
            a_case(grants=[{"id": "g", "actions": ["read"], "project_id": "p", "limits": {}}]),
            "unknown keys .'limits'. of a grant",
        ),
        (a_case(request=a_case()["request"] | {"principal": "ann"}), "`ann` is not an entity"),
        (a_case(request=a_case()["request"] | {"principal": 'User::"a" || User::"b"'}), "is not an entity"),
        (7, "AttributeError"),
    ],
)
def test_what_is_not_a_case_is_refused_with_its_place(tmp_path: Path, case: object, message: str) -> None:
    with pytest.raises(CaseError, match=message) as caught:
        loaded(tmp_path, case)
    assert str(caught.value).startswith("read_test.json: case 1: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "is not a list of cases"),
        ("[]", "is not a list of cases"),
        ('[{"b": 0, "a": 1, "a": 2}]', "the key `a` stands twice"),
        ("[", "read_test"),
    ],
)
def test_a_file_that_is_not_a_list_of_cases_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "read_test.json").write_text(text)
    with pytest.raises(CaseError, match=message):
        load_cases(tmp_path)


def test_cases_and_casts_are_regular_files_of_a_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "a_test.json")
    with pytest.raises(CaseError, match=r"a_test\.json: is not a regular file"):
        load_cases(tmp_path)
    (tmp_path / "a_test.json").unlink()
    written(tmp_path, a_case())
    with monkeypatch.context() as patched:
        patched.setattr(files, "DIRECTORY_BYTES", 10)
        with pytest.raises(CaseError, match="together are longer than 10 bytes"):
            load_cases(tmp_path)
    (tmp_path / "casts" / "all.json").unlink()
    os.mkfifo(tmp_path / "casts" / "all.json")
    with pytest.raises(CaseError, match=r"casts/all\.json: is not a regular file"):
        load_cases(tmp_path)


def test_coverage_says_which_actions_and_policies_no_case_reaches(tmp_path: Path) -> None:
    allow, deny = loaded(tmp_path, a_case(), FORBIDDEN)
    assert coverage(BUNDLE, run_cases(BUNDLE, [allow])) == Coverage(
        without_allow=("drop", "edit", "list"), without_deny=("drop", "edit", "list", "read"), undecisive=("level",)
    )
    assert coverage(BUNDLE, run_cases(BUNDLE, [allow, deny])).undecisive == ()


def test_a_policy_is_noticed_when_a_case_fails_without_it(tmp_path: Path) -> None:
    loose = a_case(reason=[], decision="allow")
    errs = a_case(entities=with_level(2**63 - 1), decision="deny", reason=["read"], num_errors=1, deny_kind="evaluation_error")
    allow, deny, erring = loaded(tmp_path, loose, FORBIDDEN, errs)
    assert unnoticed(BUNDLE, [allow, deny]) == ()
    assert unnoticed(BUNDLE, [allow]) == ("level",)
    assert unnoticed(BUNDLE, [deny]) == ("read",)
    assert unnoticed(BUNDLE, [erring]) == ()
    assert run_case(BUNDLE.without("level"), deny).verdict.allowed
    assert run_case(BUNDLE.without("read"), allow).verdict.deny_kind is DenyKind.NOT_PERMITTED
