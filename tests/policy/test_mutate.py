from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest
from cedarpy import pst

from gateway.policy import partition
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case, prepare
from gateway.policy.engine import PolicyEngine
from gateway.policy.grants import as_text
from gateway.policy.mutants import could_matter, mutants
from gateway.policy.mutate import Score, Survivor, mutate
from tests.policy import asked as a
from tests.policy import builders as b

GROUP = b.a_row("Group", "g")
MEMBER = (a.the_org(), a.a_user(groups=("g",)), a.a_doc(), GROUP)


def made(policy: str) -> dict[str, str]:
    """Each mutant of a policy by its id, as Cedar writes it: its head's changes, or what stands between its braces."""
    bundle = a.a_bundle(policy)
    [id_] = bundle.policies
    texts = {}
    for mutant in mutants(bundle, id_):
        text = "" if mutant.tree is None else as_text({id_: mutant.tree}).partition("\n")[2]
        texts[mutant.id.removeprefix(f"{id_}~")] = text
    return texts


def conditions(condition: str) -> dict[str, str]:
    """What a condition is changed to."""
    texts = made(f'@id("p") permit (principal, action, resource) when {{ {condition} }};')
    texts.pop("dropped~1")
    return {id_: text.partition("when { ")[2].removesuffix(" };") for id_, text in texts.items()}


@pytest.mark.parametrize(
    ("condition", "changed"),
    [
        ("resource.level == 1", {"eq-to-not_eq~1": "(resource.level) != 1"}),
        ("resource.level != 1", {"not_eq-to-eq~1": "(resource.level) == 1"}),
        ("resource.level < 1", {"negated~1": "!((resource.level) < 1)", "less-to-less_eq~1": "(resource.level) <= 1"}),
        ("!principal.active", {"not-taken-away~1": "principal.active"}),
        ("true", {"negated~1": "!true", "boolean-flipped~1": "false"}),
        (
            "principal.active && resource.level == 1",
            {
                "and-to-or~1": "(principal.active) || ((resource.level) == 1)",
                "and-left-out~1": "(resource.level) == 1",
                "and-left-out~2": "principal.active",
                "negated~1": "(!(principal.active)) && ((resource.level) == 1)",
                "eq-to-not_eq~1": "(principal.active) && ((resource.level) != 1)",
            },
        ),
        (
            "resource.level == 1 || principal.active",
            {
                "or-to-and~1": "((resource.level) == 1) && (principal.active)",
                "or-left-out~1": "principal.active",
                "or-left-out~2": "(resource.level) == 1",
                "negated~1": "((resource.level) == 1) || (!(principal.active))",
                "eq-to-not_eq~1": "((resource.level) != 1) || (principal.active)",
            },
        ),
        (
            'principal has nick && principal.nick == "a"',
            {
                "and-to-or~1": '(principal has nick) || ((principal.nick) == "a")',
                "and-left-out~1": '(principal.nick) == "a"',
                "and-left-out~2": "principal has nick",
                "negated~1": '(!(principal has nick)) && ((principal.nick) == "a")',
                "has-to-true~1": 'true && ((principal.nick) == "a")',
                "eq-to-not_eq~1": '(principal has nick) && ((principal.nick) != "a")',
            },
        ),
        (
            "[1, 2].contains(resource.level)",
            {
                "negated~1": "!([1, 2].contains(resource.level))",
                "contains-to-not-empty~1": "!([1, 2].isEmpty())",
                "element-left-out~1": "[2].contains(resource.level)",
                "element-left-out~2": "[1].contains(resource.level)",
            },
        ),
        (
            "[resource.level == 1].isEmpty()",
            {"negated~1": "!([(resource.level) == 1].isEmpty())", "eq-to-not_eq~1": "[(resource.level) != 1].isEmpty()"},
        ),
        (
            "[1].containsAll([resource.level])",
            {
                "negated~1": "!([1].containsAll([resource.level]))",
                "contains_all-to-contains_any~1": "[1].containsAny([resource.level])",
            },
        ),
        (
            "if principal.active then false else principal.active",
            {
                "negated~1": "!(if (principal.active) then false else (principal.active))",
                "branches-exchanged~1": "if (principal.active) then (principal.active) else false",
                "boolean-flipped~1": "if (principal.active) then true else (principal.active)",
            },
        ),
        (
            "{ a: principal.level == 1 }.a",
            {"negated~1": "!({a: (principal.level) == 1}.a)", "eq-to-not_eq~1": "{a: (principal.level) != 1}.a"},
        ),
    ],
)
def test_a_condition_is_changed_at_each_place(condition: str, changed: dict[str, str]) -> None:
    assert conditions(condition) == changed


def test_each_clause_is_changed_and_the_others_stay() -> None:
    texts = made('@id("p") permit (principal, action, resource) when { resource.level == 1 } unless { resource.level == 2 };')
    assert texts == {
        "dropped~1": "",
        "eq-to-not_eq~1": (
            "permit(principal, action, resource) when { (resource.level) != 1 } unless { (resource.level) == 2 };"
        ),
        "eq-to-not_eq~2": (
            "permit(principal, action, resource) when { (resource.level) == 1 } unless { (resource.level) != 2 };"
        ),
    }


@pytest.mark.parametrize(
    ("head", "wider"),
    [
        ("principal, action, resource", {}),
        ("principal is User, action, resource", {"any-principal~1": "principal, action, resource"}),
        ('principal in Group::"g", action, resource', {"any-principal~1": "principal, action, resource"}),
        ('principal, action, resource == Doc::"d"', {"any-resource~1": "principal, action, resource"}),
        (
            'principal is User in Group::"g", action, resource',
            {
                "any-principal~1": "principal is User, action, resource",
                "any-principal~2": 'principal in Group::"g", action, resource',
            },
        ),
        (
            'principal, action == Action::"drop", resource',
            {
                "action-in-manage~1": 'principal, action in Action::"manage", resource',
                "action-in-write~1": 'principal, action in Action::"write", resource',
            },
        ),
        ('principal, action == Action::"read", resource', {"any-action~1": "principal, action, resource"}),
        ('principal, action in Action::"write", resource', {"any-action~1": "principal, action, resource"}),
    ],
)
def test_a_scope_is_widened(head: str, wider: dict[str, str]) -> None:
    texts = {id_: text.removeprefix("permit(").removesuffix(");") for id_, text in made(f'@id("p") permit ({head});').items()}
    texts.pop("dropped~1")
    assert texts == wider


SCHEMA = """
entity Role;
entity User in [Role] = { active: Bool };
entity Robot = { active: Bool };
entity Doc = { owner: User };
entity Box;
action "write";
action "read" appliesTo { principal: [User, Robot], resource: [Doc] };
action "open" appliesTo { principal: [User, Robot], resource: [Doc, Box] };
action "save" in ["write"] appliesTo { principal: [User], resource: [Doc] };
"""


ALL = {"any-principal~1", "any-resource~1", "any-action~1"}


@pytest.mark.parametrize(
    ("policy", "mattering"),
    [
        # No robot has a role, and none owns a document: the schema says so.
        ('permit (principal is User, action, resource) when { principal in Role::"r" };', set()),
        ("permit (principal is User, action, resource is Doc) when { resource.owner == principal };", {"any-resource~1"}),
        ("permit (principal is User, action, resource) when { principal.active };", {"any-principal~1"}),
        ("forbid (principal is User, action, resource) unless { principal.active };", {"any-principal~1"}),
        # A document is all that is read.
        ('permit (principal, action == Action::"read", resource is Doc);', {"any-action~1"}),
        ('permit (principal, action == Action::"open", resource is Doc);', {"any-resource~1", "any-action~1"}),
        # An entity tells requests apart, whatever its type.
        ('permit (principal == User::"u", action == Action::"save", resource);', {"any-principal~1"}),
        ('permit (principal is User in Role::"r", action == Action::"read", resource);', {"any-principal~1", "any-action~1"}),
        ('permit (principal is User, action == Action::"read", resource == Doc::"d");', ALL),
        # The group holds no other action.
        ('permit (principal, action == Action::"save", resource);', set()),
    ],
)
def test_a_scope_that_is_wider_in_vain_does_not_matter(policy: str, mattering: set[str]) -> None:
    bundle = Bundle.from_text(SCHEMA, {"s.cedar": f'@id("p") {policy}'}, house_rules=False)
    wider = [mutant for mutant in mutants(bundle, "p") if "any-" in mutant.id or "action-in" in mutant.id]
    assert {mutant.id.removeprefix("p~") for mutant in wider if could_matter(bundle, mutant)} == mattering


def test_what_no_case_tells_apart_is_shown_as_a_diff() -> None:
    bundle = a.a_bundle('@id("p") permit (principal, action == Action::"read", resource) when { resource.level < 5 };')
    score = mutate(bundle, [a.a_case(), a.a_case("edit"), a.a_case("read", a.the_org(), a.a_user(), a.a_doc(level=9))])
    diff = """\
--- s.cedar
+++ s.cedar (p~less-to-less_eq~1)
@@ -4,4 +4,4 @@
   action == Action::"read",
   resource
 )
-when { (resource.level) < 5 };
+when { (resource.level) <= 5 };"""
    assert score == Score(4, 3, (Survivor("p~less-to-less_eq~1", "p", "s.cedar", 1, diff),))
    assert score.percent == 75


def test_a_policy_that_nothing_asks_about_is_not_missed() -> None:
    score = mutate(a.a_bundle('@id("p") permit (principal, action == Action::"drop", resource);'), [a.a_case()])
    assert [survivor.id for survivor in score.survivors] == ["p~action-in-write~1", "p~dropped~1"]
    assert score.survivors[1].diff.splitlines()[2:5] == ["@@ -1,6 +0,0 @@", '-@id("p")', "-permit ("]


def test_a_score_of_nothing_is_whole() -> None:
    assert Score(0, 0, ()).percent == 100


def test_a_case_of_a_request_that_is_not_valid_kills_nothing() -> None:
    score = mutate(a.a_bundle('@id("p") permit (principal, action, resource);'), [a.a_case("read", a.the_org(), a.a_user())])
    assert (score.total, score.killed) == (1, 0)


def test_a_sample_is_drawn_by_its_seed() -> None:
    bundle = a.a_bundle(POLICIES)
    whole = mutate(bundle, [])
    scores = [mutate(bundle, [], sample=5, seed=seed) for seed in (1, 1, 2)]
    assert scores[0] == scores[1] != scores[2]
    assert {survivor.id for score in scores for survivor in score.survivors} <= {survivor.id for survivor in whole.survivors}
    assert mutate(bundle, [], sample=10_000) == whole


def test_progress_is_told_case_by_case() -> None:
    told: list[tuple[int, int]] = []
    mutate(a.a_bundle(POLICIES), [a.a_case(), a.a_case("edit")], progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


POLICIES = """
@id("read") permit (principal, action == Action::"read", resource) when { principal.active && resource.level < 3 };
@id("group") permit (principal in Group::"g", action in [Action::"read", Action::"edit"], resource);
@id("errs") permit (principal, action == Action::"edit", resource) when { resource.level + 9223372036854775807 > 0 };
@id("high") forbid (principal, action, resource) when { resource.level > 5 };
@id("write") forbid (principal, action in Action::"write", resource) unless { principal has nick || principal.level >= 2 };
"""
CASES = [
    a.a_case(),
    a.a_case("edit"),
    a.a_case("drop"),
    a.a_case("read", *MEMBER),
    a.a_case("edit", *MEMBER),
    a.a_case("edit", a.the_org(), a.a_user(level=2), a.a_doc(level=6)),
    a.a_case("read", a.the_org(), a.a_user(active=False), a.a_doc(level=3)),
]


def test_all_at_once_finds_what_one_at_a_time_finds() -> None:
    """Each mutant decided in full: of a permit among the permits, of a forbid beside a permit of everything."""
    bundle = a.a_bundle(POLICIES)
    survivors = []
    for id_, info in bundle.policies.items():
        alike = {other: tree for other, tree in bundle.trees.items() if tree.effect == info.effect}
        beside = {} if info.effect == "permit" else dict(a.a_bundle(b.PERMIT).trees)
        before = answers(holding(bundle, {**alike, **beside}), CASES)
        for mutant in mutants(bundle, id_):
            rest = {other: tree for other, tree in alike.items() if other != id_}
            changed = {} if mutant.tree is None else {id_: mutant.tree}
            if could_matter(bundle, mutant) and answers(holding(bundle, {**rest, **changed, **beside}), CASES) == before:
                survivors.append(mutant.id)
    assert [survivor.id for survivor in mutate(bundle, CASES).survivors] == sorted(survivors)
    assert survivors


def holding(bundle: Bundle, trees: dict[str, pst.Template]) -> Bundle:
    members = partition.members(trees, bundle.action_uids, partition.groups(bundle.schema))
    return replace(bundle, trees=MappingProxyType(trees), members=MappingProxyType(members))


def answers(bundle: Bundle, cases: list[Case]) -> list[object]:
    engine = PolicyEngine(bundle, salt=b"")
    verdicts = [engine.decide(query, slice) for _, query, slice in prepare(engine, cases)]
    return [(verdict.allowed, verdict.policies, verdict.errors) for verdict in verdicts]
