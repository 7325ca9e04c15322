from __future__ import annotations

from dataclasses import replace

from gateway.policy.bundle import Bundle
from gateway.policy.cases import load_cases
from gateway.policy.matrix import Row, matrix, table
from tests.policy import asked as a
from tests.world import ROOT

READ = '@id("read") permit (principal, action == Action::"read", resource) when { principal.active };'
OWN = '@id("own") permit (principal, action, resource) when { resource.owner == principal };'
LEVEL = '@id("level") forbid (principal, action, resource) when { resource.level + context.n > 5 };'
BUNDLE = a.a_bundle(READ, OWN, LEVEL.replace("context.n", "1"))
CAST = (a.the_org(), a.a_user(), a.a_user("bob", active=False), a.a_doc(), a.a_doc("high", level=9))


def row(action: str, decision: str, *policies: str, pairs: int = 1, where: str = "") -> Row:
    return Row(action, where, "User", "Doc", decision, policies, pairs)


def test_everybody_of_a_cast_is_asked_about_everything_there() -> None:
    assert matrix(BUNDLE, [a.a_case(cast=CAST), a.a_case(cast=CAST), a.a_case("edit", cast=CAST)]) == (
        row("edit", "allow", "own"),
        row("edit", "forbidden", "level", pairs=2),
        row("edit", "not_permitted"),
        row("read", "allow", "own", "read"),
        row("read", "forbidden", "level", pairs=2),
        row("read", "not_permitted"),
    )


def test_what_is_in_one_case_alone_is_asked_about_beside_the_cast() -> None:
    cases = [a.a_case(cast=CAST[:-1]), a.a_case("read", a.a_doc("mine"), cast=CAST[:-1])]
    assert matrix(BUNDLE, cases) == (row("read", "allow", "own", "read", pairs=2), row("read", "not_permitted", pairs=2))


def test_a_case_without_a_cast_is_a_cast_of_its_own() -> None:
    assert matrix(BUNDLE, [a.a_case()]) == (row("read", "allow", "own", "read"),)


def test_a_cast_that_is_not_all_there_is_asked_only_with_what_completes_it() -> None:
    cast = (a.the_org(), a.a_user(), a.a_doc(owner="bob"))
    cases = [a.a_case(cast=cast), a.a_case("read", a.a_user("bob"), cast=cast)]
    assert matrix(BUNDLE, cases) == (row("read", "allow", "own", "read"),)


def test_an_error_names_what_failed() -> None:
    bundle = a.a_bundle(
        READ, '@id("big") permit (principal, action, resource) when { resource.level + 9223372036854775807 > 0 };'
    )
    assert matrix(bundle, [a.a_case()]) == (row("read", "evaluation_error", "big"),)


def test_an_action_is_asked_in_the_context_of_each_case_and_told_where_a_later_one_changes_the_answer() -> None:
    bundle = a.a_bundle(OWN, LEVEL.replace("when {", "when { context has n &&"))
    cases = [a.a_case(cast=CAST), a.a_case(cast=CAST, context={"n": 1}), a.a_case(cast=CAST, context={"n": 9})]
    assert matrix(bundle, cases) == (
        row("read", "allow", "own", pairs=2),
        row("read", "not_permitted", pairs=2),
        row("read", "forbidden", "level", pairs=2, where="n is 1"),
        row("read", "forbidden", "level", pairs=4, where="n is 9"),
    )


def test_a_connection_holds_what_the_cases_grant_it() -> None:
    bundle = Bundle.load(ROOT / "schema.cedarschema", ROOT / "policies")
    cases = [case for case in load_cases(ROOT / "policies") if case.name.startswith("memory/grant")]
    granted = [row for row in matrix(bundle, cases) if row.decision == "allow" and row.principal == "Connection"]
    assert {id_ for row in granted for id_ in row.policies} >= {"grant/g-alpha"}
    ungranted = matrix(bundle, [replace(case, grants=()) for case in cases])
    assert [row for row in ungranted if row.decision == "allow" and row.principal == "Connection"] == []


def test_the_table_has_an_answer_a_line() -> None:
    rows = (
        row("edit", "allow", "a", "b", pairs=12),
        row("edit", "not_permitted"),
        Row("edit", "", "User", "Org", "allow", ("c",), 1),
    )
    assert (
        table((*rows, row("read", "forbidden", "d")))
        == """\
edit
  User -> Doc
      12 allow         a, b
       1 not_permitted
  User -> Org
       1 allow         c
read
  User -> Doc
       1 forbidden     d
"""
    )


def test_a_table_of_nothing_is_empty() -> None:
    assert table(()) == ""
