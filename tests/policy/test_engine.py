from __future__ import annotations

from decimal import Decimal

import cedarpy
import pytest

from gateway.model.decision import DenyKind, Reason, Verdict
from gateway.model.entity import Entity, EntityUid, Value
from gateway.policy.engine import PolicyEngine, one_reason
from gateway.policy.slice import Slice
from tests.policy import builders as b

OWNER = """@id("owner") @reason("It is yours.")
permit (principal, action in [Action::"read", Action::"edit"], resource) when { resource.owner == principal };"""
LOW = """@id("low") @reason("Too low.") @reason_code("low") @precedence("2")
forbid (principal, action in Action::"write", resource) when { principal.level < 1 };"""
OFF = """@id("off") @reason("Switched off.") @precedence("1")
forbid (principal, action, resource) unless { principal.active };"""
TWO = """@id("two") @reason("Also off.")
forbid (principal, action == Action::"edit", resource) unless { principal.active };"""


def everything(engine: PolicyEngine, *, active: bool = True, level: int = 1) -> Slice:
    return engine.slice(b.an_org(), b.a_user(active=active, level=level), b.a_user("bob"), b.a_doc())


def test_an_allow_names_the_policies_that_gave_it() -> None:
    engine = b.an_engine(OWNER, LOW, OFF)
    assert engine.decide(b.a_query(), everything(engine)) == Verdict(
        allowed=True,
        deny_kind=None,
        policies=("owner",),
        reasons=(Reason("owner", "permit", "It is yours."),),
        errors=(),
    )


def test_a_deny_by_forbids_names_all_of_them_in_order() -> None:
    engine = b.an_engine(OWNER, OFF, LOW)
    assert engine.decide(b.a_query("edit"), everything(engine, active=False, level=0)) == Verdict(
        allowed=False,
        deny_kind=DenyKind.FORBIDDEN,
        policies=("low", "off"),
        reasons=(Reason("low", "forbid", "Too low.", "low", 2), Reason("off", "forbid", "Switched off.", None, 1)),
        errors=(),
    )


def test_a_deny_that_nothing_permits_is_not_permitted() -> None:
    engine = b.an_engine(OWNER)
    verdict = engine.decide(b.a_query(principal=EntityUid("User", "bob")), everything(engine))
    assert verdict == Verdict(allowed=False, deny_kind=DenyKind.NOT_PERMITTED, policies=(), reasons=(), errors=())


def test_an_action_that_no_policy_speaks_of_is_not_permitted() -> None:
    engine = b.an_engine(OWNER)
    assert engine.decide(b.a_query("list"), everything(engine)).deny_kind is DenyKind.NOT_PERMITTED


def test_an_error_wins_over_a_forbid_and_over_an_allow() -> None:
    errs = '@id("errs") permit (principal, action, resource) when { resource.level + 9223372036854775807 > 0 };'
    engine = b.an_engine(errs, OFF, OWNER)
    for active, policies in ((True, ("owner",)), (False, ("off",))):
        verdict = engine.decide(b.a_query(), everything(engine, active=active))
        assert (verdict.allowed, verdict.deny_kind) == (False, DenyKind.EVALUATION_ERROR)
        assert (verdict.policies, verdict.errors) == (policies, ("errs",))


def test_the_one_reason_is_the_forbid_of_lowest_precedence() -> None:
    engine = b.an_engine(OWNER, LOW, OFF, TWO)
    slice = everything(engine, active=False, level=0)
    verdict = engine.decide(b.a_query("edit"), slice)
    assert verdict.policies == ("low", "off", "two")
    assert one_reason(verdict) == Reason("off", "forbid", "Switched off.", None, 1)
    assert one_reason(engine.decide(b.a_query(), everything(engine))) is None


def test_each_query_of_many_gets_its_own_verdict_in_order() -> None:
    engine = b.an_engine(OWNER, LOW)
    slice = everything(engine)
    bob, eve = EntityUid("User", "bob"), EntityUid("User", "eve")
    queries = [
        b.a_query("read"),
        b.a_query("read", principal=bob),
        b.a_query("read", principal=eve),
        b.a_query("read", n="text"),
        b.a_query("read"),
        b.a_query("nothing"),
        b.a_query("list"),
        b.a_query("edit"),
    ]
    verdicts = engine.decide_all(queries, slice)
    assert verdicts == [engine.decide(query, slice) for query in queries]
    assert [verdict.allowed for verdict in verdicts] == [True, False, False, False, True, False, False, True]
    assert engine.decide_all([], slice) == []


class PanicException(BaseException):
    """Stands for pyo3's class of this name, which cannot be imported."""


def test_a_panic_of_the_engine_denies_and_anything_else_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = b.an_engine(OWNER)
    slice = everything(engine)

    def fails(error: BaseException) -> None:
        def raises(*_: object) -> None:
            raise error

        monkeypatch.setattr(cedarpy, "is_authorized_batch", raises)

    fails(PanicException())
    assert [v.deny_kind for v in engine.decide_all([b.a_query()] * 2, slice)] == [DenyKind.EVALUATION_ERROR] * 2
    fails(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        engine.decide(b.a_query(), slice)


PRICED = """entity User; entity Doc;
action "read" appliesTo { principal: User, resource: Doc, context: { offer: { price: decimal, note: String } } };"""


@pytest.mark.parametrize("price", ["1.5", Decimal("1.5")], ids=["a text", "a decimal"])
def test_a_text_that_the_schema_makes_a_decimal_is_one_however_often_it_is_asked_with(price: Value) -> None:
    half = '@id("half") forbid (principal, action, resource) when { context.offer.price == decimal("1.5") };'
    engine = b.an_engine('@id("all") permit (principal, action, resource);', half, schema=PRICED)
    slice = engine.slice(Entity(b.ANN), Entity(b.DOC))
    query = b.a_query(offer={"price": price, "note": "as agreed"})
    assert [engine.decide(query, slice).policies for _ in range(3)] == [("half",)] * 3
    assert [verdict.deny_kind for verdict in engine.decide_all([query] * 2, slice)] == [DenyKind.FORBIDDEN] * 2
