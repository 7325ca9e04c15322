"""A plan says of every row what the engine says of it, decided alone."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal

import cedarpy
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gateway.model.condition import FALSE, TRUE, Equals, weight
from gateway.model.decision import DenyKind, Query, Reason, Verdict
from gateway.model.entity import Entity, EntityUid, Value
from gateway.policy import partition
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.plan import Plan
from gateway.policy.planning import Entities, uid_text
from gateway.policy.residual import Reader
from gateway.policy.truth import EITHER
from gateway.policy.value import ValueRefused
from tests.policy.conditions import columns, holds

SCHEMA = """
entity Org;
entity User in [Org] = { org: Org, level: Long, words: Set<String>, limit: decimal, nick?: String };
entity Doc in [Org] = {
  org: Org, owner: User, reader?: User, level: Long, size?: Long, price: decimal, cost?: decimal, name: String,
  nick?: String, tags: Set<String>, more?: Set<String>, nums: Set<Long>, fans: Set<User>, open: Bool, shut?: Bool,
};
action "read" appliesTo { principal: [User], resource: [Doc], context: { n: Long, word?: String } };
"""
ANN = EntityUid("User", "ann")
ORGS = (EntityUid("Org", "o"), EntityUid("Org", "p"))
USERS = (ANN, EntityUid("User", "bob"), EntityUid("User", "eve"))
WORDS = ("a", "b", "ab", "a*b", "", "É", 'x" ) ; //')
BIG = 9_223_372_036_854_775_807
ROWS = 96

texts = st.sampled_from(['"a"', '"b"', '"ab"', '"a*b"', '""', '"É"', '"x\\" ) ; //"'])
numbers = st.sampled_from(["0", "1", "2", "-1", "principal.level", "context.n", "context.n + 1"])
decimals = st.sampled_from(['decimal("1.0")', 'decimal("1.5000")', 'decimal("-0.0001")', "principal.limit"])
orgs = st.sampled_from(['Org::"o"', 'Org::"p"', "principal.org"])
users = st.sampled_from(['User::"ann"', 'User::"bob"', "principal"])
sets = st.one_of(st.lists(texts, min_size=1, max_size=3).map(lambda items: f"[{', '.join(items)}]"), st.just("principal.words"))
EQUALITY = st.sampled_from(["==", "!="])
ORDER = st.sampled_from(["<", "<=", ">", ">="])
LESS = st.sampled_from(["lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual"])
PATTERN = st.sampled_from(['"a*"', '"*b"', '"*"', '"a\\\\*b"', '"a*b*"', '"ab"', '"_"', '"%"'])


def said(form: str, /, **parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.fixed_dictionaries(parts).map(lambda values: form.format(**values))


def guarded(name: str, atom: st.SearchStrategy[str], other: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        said(f"(resource has {name} && {{atom}})", atom=atom),
        said(f"(if resource has {name} then {{atom}} else {{other}})", atom=atom, other=other),
        said(f"(if {{other}} && resource has {name} then {{atom}} else {{other}})", atom=atom, other=other),
    )


def about_text(path: str) -> st.SearchStrategy[str]:
    return st.one_of(
        said(f"{path} {{op}} {{text}}", op=EQUALITY, text=texts),
        said(f"{{text}} {{op}} {path}", op=EQUALITY, text=texts),
        said(f"{path} like {{pattern}}", pattern=PATTERN),
        said(f"{{set}}.contains({path})", set=sets),
    )


def about_number(path: str) -> st.SearchStrategy[str]:
    return st.one_of(
        said(f"{path} {{op}} {{number}}", op=st.one_of(ORDER, EQUALITY), number=numbers),
        said(f"{{number}} {{op}} {path}", op=st.one_of(ORDER, EQUALITY), number=numbers),
        said(f"[1, 2].contains({path})"),
    )


def about_decimal(path: str) -> st.SearchStrategy[str]:
    return st.one_of(
        said(f"{path}.{{op}}({{number}})", op=LESS, number=decimals),
        said(f"{{number}}.{{op}}({path})", op=LESS, number=decimals),
        said(f"{path} {{op}} {{number}}", op=EQUALITY, number=decimals),
    )


def about_set(path: str) -> st.SearchStrategy[str]:
    whole = st.sampled_from(["containsAny", "containsAll"])
    return st.one_of(
        said(f"{path}.contains({{text}})", text=texts),
        said(f"{path}.{{op}}({{set}})", op=whole, set=sets),
        said(f"{{set}}.{{op}}({path})", op=whole, set=sets),
        st.just(f"{path}.isEmpty()"),
    )


def about_user(path: str) -> st.SearchStrategy[str]:
    return st.one_of(
        said(f"{path} {{op}} {{user}}", op=EQUALITY, user=users),
        said(f"[{{user}}, {{other}}].contains({path})", user=users, other=users),
        said(f"{path} is {{type}}", type=st.sampled_from(["User"])),
        said(f"{{user}} in {path}", user=users),
    )


PLAIN = st.one_of(
    about_text("resource.name"),
    about_number("resource.level"),
    about_decimal("resource.price"),
    about_set("resource.tags"),
    about_user("resource.owner"),
    said("resource.nums.{op}([1, 2, {number}])", op=st.sampled_from(["containsAny", "containsAll"]), number=numbers),
    said("resource.fans.contains({user})", user=users),
    said("resource in {org}", org=orgs),
    said("resource in [{org}, {other}]", org=orgs, other=orgs),
    said("resource is Doc in {org}", org=orgs),
    said("{left} in resource.org", left=st.sampled_from(["principal", "principal.org", 'User::"bob"', 'User::"nobody"'])),
    said("resource.org {op} {org}", op=EQUALITY, org=orgs),
    said('resource {op} Doc::"1"', op=EQUALITY),
    st.sampled_from(
        [
            "resource.open",
            "resource has nick",
            "resource has size",
            "resource has open",
            "resource.owner == resource.owner",
            "principal.level == 1",
            'context has word && context.word == "a"',
            "context.n > 0",
            "true",
            "false",
        ]
    ),
)
LOOSE = st.one_of(
    guarded("nick", about_text("resource.nick"), PLAIN),
    guarded("nick", st.just("resource.nick == resource.name"), PLAIN),
    guarded("size", about_number("resource.size"), PLAIN),
    guarded("cost", about_decimal("resource.cost"), PLAIN),
    guarded("more", about_set("resource.more"), PLAIN),
    guarded("reader", about_user("resource.reader"), PLAIN),
    guarded("reader", st.just("resource.reader == resource.owner"), PLAIN),
    guarded("shut", st.sampled_from(["resource.shut", "!resource.shut", "resource.shut == false"]), PLAIN),
)
#: What errs when the context or the principal has some value: reached on some rows only, or not at all.
ERRING = st.sampled_from([f"context.n + {BIG} > 0", f"principal.level + {BIG} > 0", f"{BIG} + context.n > principal.level"])
CONDITIONS = st.recursive(
    st.one_of(PLAIN, PLAIN, LOOSE),
    lambda inner: st.one_of(
        said("({a} && {b})", a=inner, b=inner),
        said("({a} || {b})", a=inner, b=inner),
        said("!({a})", a=inner),
        said("(if {a} then {b} else {c})", a=inner, b=inner, c=inner),
        said("(({a}) == (!({b})))", a=inner, b=inner),
        said("({a} && {b})", a=inner, b=ERRING),
        said("({a} || {b})", a=inner, b=ERRING),
        said("(if {a} then {b} else {c})", a=inner, b=ERRING, c=inner),
    ),
    max_leaves=8,
)
POLICIES = st.lists(
    st.builds(
        "{} (principal, action, {}) {} {{ {} }};".format,
        st.sampled_from(["permit", "permit", "forbid"]),
        st.sampled_from(["resource", "resource", "resource is Doc", 'resource in Org::"o"', 'resource == Doc::"1"']),
        st.sampled_from(["when", "when", "unless"]),
        CONDITIONS,
    ),
    min_size=1,
    max_size=4,
)

DECIMAL_ORDERS = ("lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual")
OPTIONAL = (
    ("nick", 'resource.nick == "a"'),
    ("nick", "resource.nick == resource.name"),
    ("size", "resource.size > 0"),
    ("cost", 'resource.cost == decimal("1.5")'),
    ("more", "resource.more.isEmpty()"),
    ("reader", "resource.reader == resource.owner"),
    ("shut", "!resource.shut"),
)
ATOMS = (
    *(f"resource.level {op} 1" for op in ("==", "!=", "<", "<=", ">", ">=")),
    *(f"principal.level {op} resource.level" for op in ("==", "!=", "<", "<=", ">", ">=")),
    *(f'resource.price.{op}(decimal("1.5"))' for op in DECIMAL_ORDERS),
    *(f"principal.limit.{op}(resource.price)" for op in DECIMAL_ORDERS),
    *(f'resource.tags.{op}(["a", "b"])' for op in ("containsAny", "containsAll")),
    *(f"principal.words.{op}(resource.tags)" for op in ("containsAny", "containsAll")),
    *(f'resource.name like "{pattern}"' for pattern in ("a*", "*b", "a\\*b", "a*b", "ab", "")),
    *(f"resource has {name} && {atom}" for name, atom in OPTIONAL),
    *(f"if resource has {name} then {atom} else resource.open" for name, atom in OPTIONAL),
    'resource.tags.contains("a")',
    '["a", "b"].contains(resource.name)',
    "resource.tags.isEmpty()",
    "resource.nums.containsAll([1, principal.level])",
    "resource.fans.contains(principal)",
    "resource.owner == principal",
    '[User::"bob", principal].contains(resource.owner)',
    "resource in principal.org",
    "principal in resource.org",
    "principal.org in resource.org",
    'resource in [Org::"p", Org::"q"]',
    'resource is Doc in Org::"p"',
    'resource == Doc::"1"',
    'resource.price == decimal("1.5000")',
    "resource.open",
    "resource has nick",
    "resource.open == (resource.level == principal.level)",
    "(if resource has shut then resource.shut else resource.open) == (principal.level == 1)",
)
PERMIT = "permit (principal, action, resource);"
OVERFLOWS = f"context.n + {BIG} > 0"


def a_bundle(*policies: str, schema: str = SCHEMA) -> Bundle:
    text = "\n".join(f'@id("p{number}") {policy}' for number, policy in enumerate(policies))
    return Bundle.from_text(schema, {"store.cedar": text}, house_rules=False)


def a_row(number: int, chance: random.Random) -> Entity:
    def words() -> tuple[str, ...]:
        return tuple(sorted({chance.choice(WORDS) for _ in range(chance.randrange(4))}))

    org = chance.choice(ORGS)
    attrs: dict[str, Value] = {
        "org": org,
        "owner": chance.choice(USERS),
        "level": chance.choice((-1, 0, 1, 2, 3)),
        "price": chance.choice((Decimal("-0.0001"), Decimal(1), Decimal("1.5"), Decimal(2))),
        "name": chance.choice(WORDS),
        "tags": words(),
        "nums": tuple(sorted({chance.choice((0, 1, 2)) for _ in range(chance.randrange(4))})),
        "fans": tuple(sorted({chance.choice(USERS) for _ in range(chance.randrange(3))})),
        "open": chance.random() < 0.5,
    }
    optional: dict[str, Value] = {
        "reader": chance.choice(USERS),
        "size": chance.choice((0, 1, 2)),
        "cost": chance.choice((Decimal(1), Decimal("1.5"))),
        "nick": chance.choice((attrs["name"], chance.choice(WORDS))),
        "more": words(),
        "shut": chance.random() < 0.5,
    }
    attrs |= {name: value for name, value in optional.items() if chance.random() < 0.6}
    return Entity(EntityUid("Doc", str(number)), attrs, (org,))


def the_others(level: int) -> list[Entity]:
    def user(uid: EntityUid) -> Entity:
        attrs: dict[str, Value] = {"org": ORGS[0], "level": level, "words": ("a", "É"), "limit": Decimal("1.5")}
        return Entity(uid, attrs, (ORGS[0],))

    return [*map(Entity, ORGS), *map(user, USERS)]


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(POLICIES, st.integers(0, 2**32), st.sampled_from([0, 1, 2]), st.sampled_from([None, "a"]), st.integers(0, 1))
def test_a_plan_keeps_exactly_the_rows_that_are_allowed_one_by_one(
    policies: list[str], seed: int, level: int, word: str | None, n: int
) -> None:
    agreed(policies, level=level, n=n, word=word, seed=seed)


@example("resource.owner is User && context.n + 9223372036854775807 > 0", 0, "1")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(CONDITIONS, st.integers(0, 2), st.sampled_from(["1", '1, "word": "a"', "0"]))
def test_a_policy_weighs_no_more_when_it_is_asked_than_when_it_is_loaded(condition: str, level: int, n: str) -> None:
    bundle = a_bundle(f"forbid (principal, action, resource) when {{ {condition} }};")
    handle = PolicyEngine(bundle, salt=b"").slice(*the_others(level)).handle
    request = {"principal": 'User::"ann"', "action": 'Action::"read"', "resource": None, "context": f'{{"n": {n}}}'}
    policies = partition.whole(bundle.trees, ("p0",))
    [residual] = cedarpy.is_authorized_partial(request, policies, handle, bundle.schema).residuals.values()
    [written] = json.loads(cedarpy.policies_to_json_str(bundle.policies["p0"].text))["staticPolicies"].values()
    asked = Reader(bundle.vocabulary, "Doc", Entities(handle).above).policy(residual)
    loaded = Reader(bundle.vocabulary, "Doc", open=EITHER).policy(written)
    assert weight(asked.true) <= weight(loaded.true)
    assert weight(asked.false) <= weight(loaded.false)
    assert loaded.sure <= asked.sure


@pytest.mark.parametrize("atom", ATOMS)
def test_each_piece_of_cedar_alone_keeps_exactly_its_rows(atom: str) -> None:
    allowed = [verdict.allowed for verdict in agreed([f"permit (principal, action, resource) when {{ {atom} }};"])]
    assert any(allowed)
    assert not all(allowed)


@pytest.mark.parametrize("whole", ["{} && {}", "{} || {}", "if {} then {} else true", "({}) == ({})", "!({} && {})"])
@pytest.mark.parametrize("erring", [f"resource.open && {OVERFLOWS}", f"resource.open || {OVERFLOWS}"])
@pytest.mark.parametrize("effect", ["permit", "forbid"])
def test_a_policy_that_errs_on_some_rows_denies_them_though_another_permits_all(effect: str, erring: str, whole: str) -> None:
    condition = whole.format(f"({erring})", 'resource.name == "a"')
    verdicts = agreed([PERMIT, f"{effect} (principal, action, resource) when {{ {condition} }};"])
    assert any(verdict.errors for verdict in verdicts)


def agreed(policies: Sequence[str], *, level: int = 1, n: int = 1, word: str | None = None, seed: int = 7) -> list[Verdict]:
    """The decisions on random rows, one by one, after it was seen that a plan keeps exactly those that are allowed."""
    engine = PolicyEngine(a_bundle(*policies), salt=b"")
    chance = random.Random(seed)
    rows = [a_row(number, chance) for number in range(ROWS)]
    base = engine.slice(*the_others(level))
    context: dict[str, Value] = {"n": n} if word is None else {"n": n, "word": word}
    queries = [Query(ANN, "read", row.uid, context) for row in rows]
    verdicts = engine.decide_all(queries, engine.extend(base, *rows))
    plan = engine.plan(queries[0], "Doc", base)
    assert [holds(plan.condition, columns(row)) for row in rows] == [verdict.allowed for verdict in verdicts]
    assert plan.verdict.allowed or not any(verdict.allowed for verdict in verdicts)
    return verdicts


def a_plan(*policies: str, resource: str = "Doc", principal: EntityUid = ANN, **context: Value) -> Plan:
    engine = PolicyEngine(a_bundle(*policies), salt=b"")
    base = engine.slice(*the_others(1))
    return engine.plan(Query(principal, "read", ORGS[0], {"n": 1, **context}), resource, base)


def denied(kind: DenyKind, *errors: str) -> Plan:
    return Plan(Verdict(False, kind, (), (), errors), FALSE)


def test_a_plan_that_allows_names_the_permits_that_are_left_to_decide() -> None:
    plan = a_plan(
        "permit (principal, action, resource) when { resource.open };",
        "permit (principal, action, resource) when { principal.level == 7 };",
        "forbid (principal, action, resource) when { principal.level == 7 };",
    )
    assert plan == Plan(Verdict(True, None, ("p0",), (Reason("p0", "permit", ""),), ()), Equals("open", True))


def test_a_permit_of_everything_leaves_nothing_to_ask() -> None:
    assert a_plan(PERMIT).condition == TRUE


def test_a_plan_without_a_permit_is_not_permitted() -> None:
    assert a_plan("permit (principal, action, resource) when { context.n > 1 };") == denied(DenyKind.NOT_PERMITTED)


def test_a_forbid_that_holds_of_every_row_is_named() -> None:
    plan = a_plan(PERMIT, "forbid (principal, action, resource);", "forbid (principal, action, resource) when { resource.open };")
    assert plan == Plan(Verdict(False, DenyKind.FORBIDDEN, ("p1",), (Reason("p1", "forbid", ""),), ()), FALSE)


@pytest.mark.parametrize("scope", ["principal", 'principal == User::"ann"'])
def test_a_forbid_that_errs_on_the_context_denies_every_row(scope: str) -> None:
    forbid = f"forbid ({scope}, action, resource) when {{ {OVERFLOWS} }};"
    assert a_plan(PERMIT, forbid) == denied(DenyKind.EVALUATION_ERROR, "p1")
    answer = bare(PERMIT, forbid)
    assert answer.decision is cedarpy.Decision.Allow
    assert answer.residuals["policy1"]["conditions"] == [{"kind": "when", "body": {"Value": False}}]


def test_a_forbid_that_errs_on_the_principal_denies_every_row() -> None:
    forbid = f"forbid (principal, action, resource) when {{ principal.level + {BIG} > 0 }};"
    assert a_plan(PERMIT, forbid) == denied(DenyKind.EVALUATION_ERROR, "p1")
    assert bare(PERMIT, forbid).decision is cedarpy.Decision.Allow


def test_a_policy_about_an_entity_that_is_not_there_denies_every_row() -> None:
    forbid = 'forbid (principal, action, resource) when { User::"nobody".level > 0 };'
    assert a_plan(PERMIT, forbid) == denied(DenyKind.EVALUATION_ERROR)
    assert bare(PERMIT, forbid).diagnostics.unknown_entities == ['User::"nobody"']


def test_an_unconditional_forbid_counts_though_nothing_of_it_is_left_to_evaluate() -> None:
    assert bare(PERMIT, "forbid (principal, action, resource);").diagnostics.nontrivial_residuals == []
    assert a_plan(PERMIT, "forbid (principal, action, resource);").condition == FALSE


def test_a_policy_that_cannot_be_translated_denies_every_row() -> None:
    forbid = "forbid (principal, action, resource) when { resource.owner.level > 7 };"
    assert a_plan(PERMIT, forbid) == denied(DenyKind.EVALUATION_ERROR, "p1")


def test_a_plan_that_would_freeze_whoever_goes_through_it_denies_every_row() -> None:
    condition = "resource.open"
    for number in range(24):
        condition = f"({condition} == (resource.level == {number} || resource.open))"
    assert a_plan(PERMIT, f"forbid (principal, action, resource) when {{ {condition} }};") == denied(
        DenyKind.EVALUATION_ERROR, "p1"
    )


def test_policies_that_weigh_too_much_together_deny_every_row() -> None:
    chain = " || ".join(f'resource.name like "{number}"' for number in range(80))
    forbids = [f"forbid (principal, action, resource) when {{ {chain} }};"] * 51
    assert a_plan(PERMIT, *forbids[:50]).verdict.allowed
    assert a_plan(PERMIT, *forbids) == denied(DenyKind.EVALUATION_ERROR)


def test_a_plan_over_an_incomplete_slice_is_an_invalid_request() -> None:
    engine = PolicyEngine(a_bundle(PERMIT), salt=b"")
    query = Query(ANN, "read", ORGS[0], {"n": 1})
    assert engine.plan(query, "Doc", engine.slice(the_others(1)[-3])) == denied(DenyKind.INVALID_REQUEST)
    assert engine.plan(query, "Doc", engine.slice(*map(Entity, ORGS))) == denied(DenyKind.INVALID_REQUEST)


@pytest.mark.parametrize("context", [{}, {"n": "text"}, {"n": 1, "more": 1}, {"n": 1, "word": {"type": "User", "id": "x"}}])
def test_a_plan_with_a_context_that_breaks_the_schema_is_an_invalid_request(context: Mapping[str, Value]) -> None:
    engine = PolicyEngine(a_bundle(PERMIT), salt=b"")
    base = engine.slice(*the_others(1))
    assert engine.plan(Query(ANN, "read", ORGS[0], context), "Doc", base) == denied(DenyKind.INVALID_REQUEST)


def test_a_plan_of_what_the_action_is_not_about_is_an_invalid_request() -> None:
    assert a_plan(PERMIT, resource="User") == denied(DenyKind.INVALID_REQUEST)


@pytest.mark.parametrize("id_", ['a"', "a b", "", "a\n", "é", 'x", User::"ann', "a.b"])
def test_an_id_that_is_not_plain_never_becomes_text(id_: str) -> None:
    with pytest.raises(ValueRefused):
        uid_text(EntityUid("User", id_))
    engine = PolicyEngine(a_bundle(PERMIT), salt=b"")
    uid = EntityUid("User", id_)
    base = engine.slice(*the_others(1), Entity(uid, the_others(1)[-1].attrs, (ORGS[0],)))
    assert engine.plan(Query(uid, "read", ORGS[0], {"n": 1}), "Doc", base) == denied(DenyKind.INVALID_REQUEST)


def test_a_plan_is_made_once_for_what_it_comes_from() -> None:
    engine = PolicyEngine(a_bundle("permit (principal, action, resource) when { resource.level == principal.level };"), salt=b"")

    def planned(level: int, n: int = 1) -> Plan:
        return engine.plan(Query(ANN, "read", ORGS[0], {"n": n}), "Doc", engine.slice(*the_others(level)))

    assert planned(1) is planned(1)
    assert (planned(1).condition, planned(2).condition) == (Equals("level", 1), Equals("level", 2))
    assert planned(1, n=2) is not planned(1)


def test_plans_that_nobody_asks_for_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.policy.engine.PLANS", 2)
    engine = PolicyEngine(a_bundle(PERMIT), salt=b"")
    base = engine.slice(*the_others(1))

    def planned(n: int) -> Plan:
        return engine.plan(Query(ANN, "read", ORGS[0], {"n": n}), "Doc", base)

    first, second = planned(1), planned(2)
    assert planned(1) is first
    planned(3)
    assert (planned(1) is first, planned(2) is second) == (True, False)


class PanicException(BaseException):
    """Stands for pyo3's class of this name, which cannot be imported."""


def test_a_panic_of_the_partial_evaluation_denies_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def panics(*_: object) -> None:
        raise PanicException

    monkeypatch.setattr(cedarpy, "is_authorized_partial", panics)
    assert a_plan(PERMIT) == denied(DenyKind.EVALUATION_ERROR)


def bare(*policies: str) -> cedarpy.PartialAuthzResult:
    """What cedarpy alone says."""
    base = PolicyEngine(a_bundle(PERMIT), salt=b"").slice(*the_others(1))
    request = {"principal": 'User::"ann"', "action": 'Action::"read"', "resource": None, "context": {"n": 1}}
    return cedarpy.is_authorized_partial(request, "\n".join(policies), base.handle, SCHEMA)
