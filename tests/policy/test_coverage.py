from __future__ import annotations

from gateway.policy.coverage import Level, levels
from gateway.policy.finding import Finding
from tests.policy import asked as a

READ = '@id("read") permit (principal, action == Action::"read", resource) when { principal.active };'
LEVEL = '@id("level") forbid (principal, action, resource) unless { resource.level < 5 };'
EDIT = '@id("edit") permit (principal in Group::"editors", action == Action::"edit", resource) when { principal.active };'


def test_the_levels_say_what_was_never_seen_and_where_it_stands() -> None:
    found = levels(a.a_bundle(READ, LEVEL, EDIT), [a.a_case(), a.a_case("edit")])
    missing = {
        "fired": (Finding("s.cedar", 2, "level", "never fires"), Finding("s.cedar", 3, "edit", "never fires")),
        "decisive": (Finding("s.cedar", 2, "level", "never decides"), Finding("s.cedar", 3, "edit", "never decides")),
        "clauses": (
            Finding("s.cedar", 1, "read", "its `when` is never seen false"),
            Finding("s.cedar", 2, "level", "its `unless` is never seen false"),
            Finding("s.cedar", 3, "edit", "its `when` is never seen false"),
            Finding("s.cedar", 3, "edit", "its `when` is never seen true"),
        ),
        "forbids": (Finding("s.cedar", 2, "level", "never forbids"),),
    }
    assert found.all == (
        Level("fired", 1, 3, missing["fired"]),
        Level("decisive", 1, 3, missing["decisive"]),
        Level("clauses", 2, 6, missing["clauses"]),
        Level("forbids", 0, 1, missing["forbids"]),
    )
    assert found.percent == 30


def test_all_is_covered_when_each_clause_went_both_ways() -> None:
    high = (a.the_org(), a.a_user(active=False), a.a_doc(level=9))
    editor = (a.the_org(), a.a_user(groups=("editors",)), a.a_doc(), a.b.a_row("Group", "editors"))
    asleep = (a.the_org(), a.a_user(active=False, groups=("editors",)), a.a_doc(), a.b.a_row("Group", "editors"))
    cases = [a.a_case(), a.a_case("read", *high), a.a_case("edit", *editor), a.a_case("edit", *asleep)]
    found = levels(a.a_bundle(READ, LEVEL, EDIT), cases)
    assert [(level.covered, level.total, level.missing) for level in found.all] == [
        (3, 3, ()),
        (3, 3, ()),
        (6, 6, ()),
        (1, 1, ()),
    ]
    assert found.percent == 100


def test_a_policy_that_fires_beside_a_forbid_decides_nothing() -> None:
    found = levels(a.a_bundle(READ, LEVEL), [a.a_case("read", a.the_org(), a.a_user(), a.a_doc(level=9))])
    assert (found.fired.missing, found.decisive.missing) == ((), (Finding("s.cedar", 1, "read", "never decides"),))


def test_a_clause_that_errs_is_seen_neither_true_nor_false() -> None:
    errs = '@id("errs") permit (principal, action, resource) when { resource.level + 9223372036854775807 > 0 };'
    found = levels(a.a_bundle(errs), [a.a_case()])
    assert (found.clauses.covered, found.clauses.total) == (0, 2)


def test_a_case_of_a_request_that_is_not_valid_counts_for_nothing() -> None:
    found = levels(a.a_bundle(READ), [a.a_case("read", a.the_org(), a.a_user())])
    assert [level.covered for level in found.all] == [0, 0, 0, 0]


def test_a_policy_without_clauses_has_none_to_cover() -> None:
    found = levels(a.a_bundle('@id("all") permit (principal, action, resource);'), [a.a_case()])
    assert (found.clauses, found.forbids, found.percent) == (Level("clauses", 0, 0, ()), Level("forbids", 0, 0, ()), 100)
