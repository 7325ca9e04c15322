"""What each piece of Cedar becomes, when it is about a row."""

from __future__ import annotations

import json
from decimal import Decimal

import cedarpy
import pytest

from gateway.model.condition import (
    FALSE,
    TRUE,
    And,
    Compare,
    Condition,
    Empty,
    Equals,
    Has,
    HeldBy,
    HoldsAll,
    HoldsAny,
    Like,
    Not,
    OneOf,
    Or,
    Same,
    negation,
)
from gateway.model.entity import EntityUid
from gateway.policy import schema, vocabulary
from gateway.policy.residual import Reader, Untranslatable
from gateway.policy.truth import ERRS, Truth

SCHEMA = """
type Name = { first: String };
entity Org;
entity Team in [Org];
entity User in [Team];
@doc("a; b, c")
entity Doc, Draft in [Org] = {
  org: Org, owner: User, second?: User, "odd name": Bool, level: Long, size?: Long, price: decimal, name: String,
  nick?: String, tags: Set<String>, more?: Set<String>, nums: Set<Long>, fans: Set<User>, open: Bool, shut?: Bool, who: Name,
} tags String;
entity Page in [Org, Team] = { id: String, org: Org, other: Org };
entity Leaf in [Team] = { team: Team };
entity Bare = {};
action "read", "list" in ["all"] appliesTo { principal: [User], resource: [Doc, Page], context: {} };
action "all";
action "drop" appliesTo { principal: User, resource: Draft, context: {} };
namespace Far { entity Place; action "go" appliesTo { principal: [Place], resource: [Place], context: {} }; }
"""
VOCABULARY = vocabulary.of(schema.read(cedarpy.Schema.from_str(SCHEMA)))
ABOVE = {EntityUid("User", "ann"): frozenset((EntityUid("Team", "t"), EntityUid("Org", "o")))}


def truth_of(condition: str, *, kind: str = "when", scope: str = "resource", resource: str = "Doc") -> Truth:
    text = f"permit (principal, action, {scope}) {kind} {{ {condition} }};"
    [policy] = json.loads(cedarpy.policies_to_json_str(text))["staticPolicies"].values()
    return Reader(VOCABULARY, resource, lambda uid: ABOVE.get(uid, frozenset())).policy(policy)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("true", TRUE),
        ("resource.open", Equals("open", True)),
        ("!resource.open", Not(Equals("open", True))),
        ('resource["odd name"]', Equals("odd name", True)),
        ('resource.name == "a"', Equals("name", "a")),
        ('"a" != resource.name', Not(Equals("name", "a"))),
        ("resource.level == -3", Equals("level", -3)),
        ('resource.price == decimal("1.50")', Equals("price", Decimal("1.50"))),
        ('resource.owner == User::"ann"', Equals("owner", "ann")),
        ('resource.owner == Org::"ann"', FALSE),
        ('resource == Doc::"x"', Equals("id", "x")),
        ('resource == User::"x"', FALSE),
        ("resource.owner == resource.owner", Same("owner", "owner")),
        ("resource.level < 3", Compare("level", "<", 3)),
        ("3 < resource.level", Compare("level", ">", 3)),
        ("3 <= resource.level", Compare("level", ">=", 3)),
        ("resource.level >= 3", Compare("level", ">=", 3)),
        ("3 > resource.level", Compare("level", "<", 3)),
        ('resource.price.lessThan(decimal("1.5"))', Compare("price", "<", Decimal("1.5"))),
        ('decimal("1.5").greaterThanOrEqual(resource.price)', Compare("price", "<=", Decimal("1.5"))),
        ('resource.name like "a*b"', Like("name", ("a", "b"))),
        ('resource.name like "*"', Like("name", ("", ""))),
        ('resource.name like "a\\*%_"', Like("name", ("a*%_",))),
        ('resource.tags.contains("a")', HoldsAny("tags", ("a",))),
        ('resource.tags.containsAny(["a", "b"])', HoldsAny("tags", ("a", "b"))),
        ('["a", "b"].containsAny(resource.tags)', HoldsAny("tags", ("a", "b"))),
        ('resource.tags.containsAll(["a", "b"])', HoldsAll("tags", ("a", "b"))),
        ('["a", "b"].containsAll(resource.tags)', HeldBy("tags", ("a", "b"))),
        ("resource.tags.isEmpty()", Empty("tags")),
        ('resource.fans.contains(User::"ann")', HoldsAny("fans", ("ann",))),
        ('resource.fans.contains(Org::"ann")', FALSE),
        ('["a", "b"].contains(resource.name)', OneOf("name", ("a", "b"))),
        ('["a"].contains(resource.name)', Equals("name", "a")),
        ("resource has open", TRUE),
        ("resource has nick", Has("nick")),
        ("resource has nothing", FALSE),
        ("resource is Doc", TRUE),
        ("resource is Draft", FALSE),
        ('resource is Doc in Org::"o"', Equals("org", "o")),
        ("resource.owner is User", TRUE),
        ('resource in Org::"o"', Equals("org", "o")),
        ('resource in Doc::"x"', Equals("id", "x")),
        ('resource in Team::"t"', FALSE),
        ('resource in [Org::"o", Org::"p"]', OneOf("org", ("o", "p"))),
        ('resource.org in Org::"o"', Equals("org", "o")),
        ('User::"ann" in resource.org', Equals("org", "o")),
        ('User::"bob" in resource.org', FALSE),
        ('User::"ann" in resource.owner', Equals("owner", "ann")),
        ('resource.open && resource.name == "a"', And((Equals("open", True), Equals("name", "a")))),
        ('resource.open || resource.name == "a"', Or((Equals("open", True), Equals("name", "a")))),
        ("true && resource.open", Equals("open", True)),
        ("false || resource.open", Equals("open", True)),
        ("true || resource.owner.level == 1", TRUE),
        ("false && resource.owner.level == 1", FALSE),
        ("if resource has open then resource.open else resource.owner.level == 1", Equals("open", True)),
        ("if resource has nothing then resource.owner.level == 1 else resource.open", Equals("open", True)),
        ("resource.open == true", Equals("open", True)),
        ("(if resource has nothing then true else resource.open) == true", Equals("open", True)),
        ("false == resource.open", Not(Equals("open", True))),
        ("resource.open == (resource.level == 1)", None),
    ],
)
def test_a_boolean_that_cannot_err_is_true_or_false_of_every_row(condition: str, expected: Condition | None) -> None:
    if expected is None:
        on, one = Equals("open", True), Equals("level", 1)
        expected = Or((And((on, one)), And((Not(on), Not(one)))))
    assert truth_of(condition) == Truth(expected, negation(expected), True)
    assert truth_of(condition, kind="unless") == Truth(negation(expected), expected, True)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("resource is Doc", TRUE),
        ("resource is Draft", FALSE),
        ('resource == Doc::"x"', Equals("id", "x")),
        ('resource in Org::"o"', Equals("org", "o")),
        ('resource is Doc in Org::"o"', Equals("org", "o")),
        ('resource is Draft in Org::"o"', FALSE),
    ],
)
def test_the_scope_is_a_part_of_the_condition(scope: str, expected: Condition) -> None:
    assert truth_of("true", scope=scope) == Truth(expected, negation(expected), True)


def test_an_optional_attribute_is_neither_true_nor_false_of_a_row_without_it() -> None:
    here, small = Has("size"), Compare("size", "<", 3)
    assert truth_of("resource.size < 3") == Truth(And((here, small)), And((here, Not(small))), False)
    assert truth_of("resource.nick == resource.name") == Truth(
        And((Has("nick"), Same("nick", "name"))), And((Has("nick"), Not(Same("nick", "name")))), False
    )


@pytest.mark.parametrize(
    "condition",
    [
        "resource has size && resource.size < 3",
        "resource.open && resource has size && resource.open && resource.size < 3",
        "resource.open && (resource has size && resource.size < 3)",
        "(if resource has size && resource.open then resource.size < 3 else true)",
        "!(resource has size && !(resource.size < 3))",
    ],
)
def test_an_optional_attribute_that_was_looked_for_does_not_err(condition: str) -> None:
    assert truth_of(condition).sure


@pytest.mark.parametrize(
    "condition",
    [
        "!(resource has size) && resource.size < 3",
        "(resource has size || resource.open) && resource.size < 3",
        "(if resource has size then true else resource.size < 3)",
        "resource has nick && resource.size < 3",
    ],
)
def test_an_optional_attribute_that_may_be_absent_errs(condition: str) -> None:
    assert not truth_of(condition).sure


def test_what_errs_is_reached_only_past_what_stands_before_it() -> None:
    on = Equals("open", True)
    assert truth_of("resource.open && context.n") == Truth(FALSE, Not(on), False)
    assert truth_of("resource.open || context.n") == Truth(on, FALSE, False)
    assert truth_of("if resource.open then context.n else true") == Truth(Not(on), FALSE, False)
    assert truth_of("context.n && resource.open") == truth_of("context.n || resource.open") == ERRS
    assert truth_of("resource.open == context.n") == truth_of("resource.level < context.n") == ERRS
    assert truth_of("!context.n") == ERRS
    assert truth_of('["a", context.n].contains(resource.name)') == ERRS


@pytest.mark.parametrize(
    ("condition", "resource"),
    [
        ("resource.who == context.n", "Doc"),
        ('resource.hasTag("a")', "Doc"),
        ("resource.owner.level == 1", "Doc"),
        ("resource.nothing == 1", "Doc"),
        ("resource.level + 1 == 2", "Doc"),
        ("resource.name < 3", "Doc"),
        ("resource.level < resource.size", "Doc"),
        ('resource.level < "a"', "Doc"),
        ("[resource.level] == [1]", "Doc"),
        ("resource.tags.contains(resource.name)", "Doc"),
        ("[resource.name].contains(context.n)", "Doc"),
        ("resource in resource.org", "Doc"),
        ('resource in [Org::"o", resource.org]', "Doc"),
        ('resource.owner in Org::"o"', "Doc"),
        ('resource in Org::"o"', "Page"),
        ('resource == Page::"x"', "Page"),
        ('resource in Team::"t"', "Leaf"),
        ("resource in context.n", "Leaf"),
        ("resource.who has first", "Doc"),
        ("[resource.level < 3].contains(true)", "Doc"),
    ],
)
def test_what_no_query_can_ask_is_refused(condition: str, resource: str) -> None:
    with pytest.raises(Untranslatable):
        truth_of(condition, resource=resource)


def test_a_scope_that_is_not_known_is_refused() -> None:
    with pytest.raises(Untranslatable, match="a scope"):
        Reader(VOCABULARY, "Doc").policy({"resource": {"op": "new"}, "conditions": []})


def test_the_vocabulary_knows_what_each_type_is_in_and_what_actions_are_about() -> None:
    assert VOCABULARY.above("User") == {"Team", "Org"}
    assert VOCABULARY.above("Org") == VOCABULARY.above("Far::Place") == frozenset()
    assert VOCABULARY.entities.keys() == {"Org", "Team", "User", "Doc", "Draft", "Page", "Leaf", "Bare"}
    assert VOCABULARY.entities["Doc"] == VOCABULARY.entities["Draft"]
    assert VOCABULARY.entities["Page"].parents == ("Org", "Team")
    assert VOCABULARY.resources == {
        "read": frozenset(("Doc", "Page")),
        "list": frozenset(("Doc", "Page")),
        "drop": frozenset(("Draft",)),
    }
