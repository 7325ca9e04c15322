"""Cedar skips a policy that errs, forbids included: each way there, first as cedarpy alone allows it, then as we deny."""

from __future__ import annotations

import json

import cedarpy
import pytest

from gateway.model.decision import DenyKind, Verdict
from gateway.model.entity import Entity, EntityUid
from gateway.policy.bundle import Bundle
from gateway.policy.finding import PolicyError
from gateway.policy.slice import SliceError
from tests.policy import builders as b

ORG, ANN = b.uid("Org", "o"), {"__entity": b.uid("User", "ann")}
ANN_ROW = b.a_row("User", "ann", ORG, org={"__entity": ORG}, active=True, level=1)
INVALID = Verdict(allowed=False, deny_kind=DenyKind.INVALID_REQUEST, policies=(), reasons=(), errors=())


def doc_row(**attrs: object) -> dict[str, object]:
    return b.a_row("Doc", "d", ORG, **{"org": {"__entity": ORG}, "owner": ANN, "level": 1} | attrs)


def test_an_unknown_from_user_data_is_refused_before_it_disarms_a_forbid() -> None:
    forbid = '@id("no") forbid (principal, action, resource) when { resource.level >= 0 };'
    unknown = {"__extn": {"fn": "unknown", "arg": "x"}}
    rows = [b.a_row("Org", "o"), ANN_ROW, doc_row(level=unknown)]
    assert b.bare(b.PERMIT + forbid, rows, {}) == (True, 1)

    engine = b.an_engine(b.PERMIT, forbid)
    with pytest.raises(SliceError, match="an unknown is not a value"):
        engine.slice_json(rows)
    with pytest.raises(SliceError, match="reserved key `__extn`"):
        engine.slice(b.a_doc(box=unknown))


def test_an_unknown_spelled_without_its_key_is_refused_too() -> None:
    with pytest.raises(SliceError, match="an unknown is not a value"):
        b.an_engine(b.PERMIT).slice_json([doc_row(price={"fn": "unknown", "arg": "x"})])


def test_what_a_user_wrote_stays_a_string() -> None:
    engine = b.an_engine(
        '@id("x") permit (principal, action, resource) when { principal has nick && principal.nick like "*unknown*" };'
    )
    user = b.a_user()
    named = Entity(user.uid, {**user.attrs, "nick": '{"__extn":{"fn":"unknown","arg":"x"}}'}, user.parents)
    assert engine.decide(b.a_query(), engine.slice(b.an_org(), named, b.a_doc())).allowed


def test_a_missing_principal_denies_where_the_forbid_would_be_skipped_in_silence() -> None:
    forbid = '@id("no") forbid (principal, action, resource) when { principal in Group::"blocked" };'
    rows = [b.a_row("Org", "o"), doc_row()]
    assert b.bare(b.PERMIT + forbid, rows, {}) == (True, 0)

    engine = b.an_engine(b.PERMIT, forbid)
    assert engine.decide(b.a_query(), engine.slice(b.an_org(), b.a_user("bob"), b.a_doc(owner="bob"))) == INVALID


def test_a_missing_resource_denies() -> None:
    forbid = '@id("no") forbid (principal, action, resource) when { resource has price };'
    assert b.bare(b.PERMIT + forbid, [b.a_row("Org", "o"), ANN_ROW], {}) == (True, 0)

    engine = b.an_engine(b.PERMIT, forbid)
    assert engine.decide(b.a_query(), engine.slice(b.an_org(), b.a_user())) == INVALID


def test_a_missing_group_between_denies() -> None:
    forbid = '@id("no") forbid (principal in Group::"blocked", action, resource);'
    ann = ANN_ROW | {"parents": [ORG, b.uid("Group", "team")]}
    assert b.bare(b.PERMIT + forbid, [b.a_row("Org", "o"), ann, doc_row()], {}) == (True, 0)

    engine = b.an_engine(b.PERMIT, forbid)
    entities = b.an_org(), b.a_user(groups=("team",)), b.a_doc()
    torn = engine.slice(*entities)
    assert torn.missing == {EntityUid("Group", "team")}
    assert engine.decide(b.a_query(), torn) == INVALID
    whole = engine.slice(*entities, b.a_group("team", "blocked"), b.a_group("blocked"))
    assert engine.decide(b.a_query(), whole).deny_kind is DenyKind.FORBIDDEN


def test_a_forbid_on_a_group_of_actions_applies_because_the_schema_is_always_there() -> None:
    forbid = '@id("no") forbid (principal, action in Action::"write", resource);'
    rows = [b.a_row("Org", "o"), ANN_ROW, doc_row()]
    without_schema = cedarpy.Entities.from_json_str(json.dumps(rows))
    assert b.bare(b.PERMIT + forbid, without_schema, {}, action="edit") == (True, 0)

    engine = b.an_engine(b.PERMIT, forbid)
    verdict = engine.decide(b.a_query("edit"), engine.slice_json(rows))
    assert (verdict.deny_kind, verdict.policies) == (DenyKind.FORBIDDEN, ("no",))


def test_an_attribute_of_a_missing_entity_denies() -> None:
    forbid = '@id("no") forbid (principal, action, resource) when { resource.owner.active };'
    bob = {"__entity": b.uid("User", "bob")}
    rows = [b.a_row("Org", "o"), ANN_ROW, doc_row(owner=bob)]
    assert b.bare(b.PERMIT + forbid, rows, {}) == (True, 1)

    engine = b.an_engine(b.PERMIT, forbid)
    assert engine.decide(b.a_query(), engine.slice_json(rows)) == INVALID
    assert engine.decide(b.a_query(), engine.slice(b.an_org(), b.a_user(), b.a_doc(owner="bob"))) == INVALID


def test_a_handle_built_without_the_schema_cannot_turn_a_price_into_a_string() -> None:
    forbid = (
        '@id("no") forbid (principal, action, resource) when { resource has price && resource.price.lessThan(decimal("9.0")) };'
    )
    rows = [b.a_row("Org", "o"), ANN_ROW, doc_row(price="5.0")]
    assert b.bare(b.PERMIT + forbid, cedarpy.Entities.from_json_str(json.dumps(rows)), {}) == (True, 1)

    engine = b.an_engine(b.PERMIT, forbid)
    assert engine.decide(b.a_query(), engine.slice_json(rows)).deny_kind is DenyKind.FORBIDDEN


@pytest.mark.parametrize(
    ("sum_", "entities", "context"),
    [
        ("resource.level", (b.a_user(), b.a_doc(level=2**63 - 1)), {}),
        ("principal.level", (b.a_user(level=2**63 - 1), b.a_doc()), {}),
        ("context.n", (b.a_user(), b.a_doc()), {"n": 2**63 - 1}),
    ],
)
def test_a_forbid_that_errs_denies_and_is_named(sum_: str, entities: tuple[Entity, ...], context: dict[str, int]) -> None:
    guard = "context has n && " if context else ""
    forbid = f'@id("no") forbid (principal, action, resource) when {{ {guard}{sum_} + 1 > 0 }};'
    engine = b.an_engine(b.PERMIT, forbid)
    slice = engine.slice(b.an_org(), *entities)
    assert b.bare(b.PERMIT + forbid, json.loads(slice.text), context) == (True, 1)

    verdict = engine.decide(b.a_query(**context), slice)
    assert (verdict.allowed, verdict.deny_kind, verdict.errors) == (False, DenyKind.EVALUATION_ERROR, ("no",))


def test_a_policy_that_calls_unknown_is_refused_though_it_validates() -> None:
    forbid = '@id("no") forbid (principal, action, resource) when { unknown("x") };'
    assert cedarpy.validate_policies(forbid, b.SCHEMA).validation_passed
    assert b.bare(b.PERMIT + forbid, [b.a_row("Org", "o"), ANN_ROW, doc_row()], {}) == (True, 1)

    with pytest.raises(PolicyError, match=r"store\.cedar:2: .*Unknown"):
        b.an_engine(b.PERMIT, forbid)


CHAIN = """
import cedarpy, json
from tests.policy import builders as b
from tests.policy.test_fail_closed import ANN_ROW, doc_row
rows = [b.a_row("Org", "o"), ANN_ROW, doc_row()]
chain = " || ".join(["resource.level == 2"] * 1800 + ["true"])
forbid = '@id("no") forbid (principal, action, resource) when { ' + chain + ' };'
print(cedarpy.validate_policies(forbid, b.SCHEMA).validation_passed, b.bare(b.PERMIT + forbid, rows, {}))
"""


def test_a_long_chain_is_refused_though_it_validates_and_then_fails() -> None:
    assert b.in_a_process(CHAIN).stdout == "True (True, 1)\n"

    chain = " || ".join(["resource.level == 2"] * 1800)
    with pytest.raises(PolicyError, match="more than 600 operators"):
        b.an_engine(f'@id("no") forbid (principal, action, resource) when {{ {chain} }};')


ILL_TYPED = """
import cedarpy
from tests.policy import builders as b
chain = " || ".join(["resource.level == 2"] * 5000 + ["resource.level"])
print(cedarpy.validate_policies("forbid (principal, action, resource) when { " + chain + " };", b.SCHEMA).validation_passed)
"""


def test_an_ill_typed_chain_that_validation_passes_is_refused() -> None:
    assert b.in_a_process(ILL_TYPED).stdout == "True\n"

    chain = " || ".join(["resource.level == 2"] * 5000 + ["resource.level"])
    with pytest.raises(PolicyError, match="more than 600 operators"):
        b.an_engine(f"forbid (principal, action, resource) when {{ {chain} }};")


def test_the_answer_of_cedarpy_is_true_for_python_even_when_it_denies() -> None:
    request = {"principal": b.uid("User", "ann"), "action": b.uid("Action", "read"), "resource": b.uid("Doc", "d"), "context": {}}
    answer = cedarpy.is_authorized(request, "", "[]")
    assert (bool(answer), answer.allowed) == (True, False)

    engine = b.an_engine('@id("no") forbid (principal, action, resource);')
    assert engine.decide(b.a_query(), engine.slice(b.an_org(), b.a_user(), b.a_doc())).allowed is False


def test_a_request_that_breaks_the_schema_denies() -> None:
    engine = b.an_engine(b.PERMIT)
    slice = engine.slice(b.an_org(), b.a_user(), b.a_doc())
    assert engine.decide(b.a_query(n="text"), slice) == INVALID
    assert engine.decide(b.a_query(n=2**63), slice) == INVALID
    assert engine.decide(b.a_query(resource=b.ANN), slice) == INVALID
    assert engine.decide(b.a_query("write"), slice) == INVALID
    assert engine.decide(b.a_query("nothing"), slice) == INVALID
    assert engine.decide(b.a_query(n=1.5), slice) == INVALID  # type: ignore[arg-type]
    assert engine.decide(b.a_query(n="\ud800"), slice) == INVALID


def test_an_entity_that_only_the_context_names_must_be_there() -> None:
    forbid = '@id("no") forbid (principal, action, resource) when { context has friend && context.friend in Group::"blocked" };'
    engine = b.an_engine(b.PERMIT, forbid)
    slice = engine.slice(b.an_org(), b.a_user(), b.a_doc())
    assert b.bare(b.PERMIT + forbid, json.loads(slice.text), {"friend": {"__entity": b.uid("User", "eve")}}) == (True, 0)

    assert engine.decide(b.a_query(friend=EntityUid("User", "eve")), slice) == INVALID
    assert engine.decide(b.a_query(friend=b.ANN), slice).allowed


def test_a_slice_of_another_schema_decides_nothing() -> None:
    engine, other = b.an_engine(b.PERMIT), b.an_engine(b.PERMIT, schema=b.SCHEMA + "entity More;")
    slice = other.slice(b.an_org(), b.a_user(), b.a_doc())
    assert other.decide(b.a_query(), slice).allowed
    assert engine.decide(b.a_query(), slice) == INVALID


def test_ids_that_differ_in_normalisation_are_different_people() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    engine = b.an_engine(f'@id("x") permit (principal == User::"{composed}", action, resource);')
    slice = engine.slice(b.an_org(), b.a_user(), b.a_user(composed), b.a_user(decomposed), b.a_doc())
    assert engine.decide(b.a_query(principal=EntityUid("User", composed)), slice).allowed
    assert not engine.decide(b.a_query(principal=EntityUid("User", decomposed)), slice).allowed


def test_an_id_cannot_break_out_of_the_request() -> None:
    id_ = 'x", "type": "User\n::"ann" \\ \u0000'
    engine = b.an_engine('@id("x") permit (principal == User::"ann", action, resource);')
    slice = engine.slice(b.an_org(), b.a_user(), b.a_user(id_), b.a_doc())
    assert engine.decide(b.a_query(principal=EntityUid("User", id_)), slice).deny_kind is DenyKind.NOT_PERMITTED


def test_without_any_policy_nothing_loads() -> None:
    with pytest.raises(PolicyError, match="no policy at all"):
        Bundle.from_text(b.SCHEMA, {})
    with pytest.raises(PolicyError, match="holds no policy"):
        b.an_engine("// permit (principal, action, resource);")
