"""Written rules: every combination of agent, rule and action, against the same rules written out in Python."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest

from gateway.model.decision import Query, Verdict
from gateway.model.entity import Entity, EntityUid, Value
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine, one_reason
from gateway.policy.slice import Slice

ROOT = Path(__file__).parents[2]
HOME, AWAY = EntityUid("Org", "home"), EntityUid("Org", "away")
PERSON = EntityUid("Human", "person")
LIMIT = Decimal(50)
CONTEXT: dict[str, Value] = {
    "now": datetime(2026, 3, 4, 10, tzinfo=UTC),
    "clock": {"minute": 600, "weekday": 3, "date": "2026-03-04"},
}


@dataclass(frozen=True)
class Asker:
    """Who asks: `mode` and `limit` are of the rule for the action; without a `default`, its rules are not known at all."""

    kind: str
    org: EntityUid = HOME
    active: bool = True
    default: str | None = None
    mode: str | None = None
    limit: Decimal | None = None


@dataclass(frozen=True)
class Act:
    """What is asked about."""

    amount: Decimal | None = None
    tier: int = 1
    sensitive: bool = False
    paused: bool = False
    platform_made: bool = False
    asked_always: bool = False


POLICIES = [
    {"default": None},
    *({"default": default} for default in ("approve", "allow", "deny")),
    *(
        {"default": d, "mode": m, "limit": n}
        for d, m, n in product(("approve", "deny"), ("allow", "approve", "deny"), (None, LIMIT))
    ),
]
ASKERS = [
    Asker("Human"),
    Asker("Platform"),
    *(Asker("Agent", org, active, **policy) for org, active, policy in product((HOME, AWAY), (True, False), POLICIES)),  # type: ignore[arg-type]
]
AMOUNTS = (None, Decimal(0), LIMIT - Decimal("0.0001"), LIMIT, LIMIT + Decimal("0.0001"))
AUTOMATIC = [Act(a, t, s, p) for a, t, s, p in product(AMOUNTS, (0, 1, 2, 3), (False, True), (False, True))]
REQUESTS = [Act(platform_made=m, asked_always=a, paused=p) for m, a, p in product((False, True), repeat=3)]


def may_be_automatic(asker: Asker, act: Act) -> bool:
    below = asker.limit is None or (act.amount is not None and act.amount < asker.limit)
    ruled = asker.kind == "Agent" and asker.active and asker.org == HOME and asker.mode == "allow"
    return ruled and below and act.tier == 1 and not act.sensitive and not act.paused


def why_not(asker: Asker, act: Act) -> str:
    """The one reason for an action of the asker's own organisation that may not be automatic."""
    if act.sensitive:
        return "action_is_sensitive"
    if asker.mode is None or not asker.active:
        return "no_matching_rule"
    if asker.mode != "allow":
        return "rule_requires_approval"
    if asker.limit is not None and (act.amount is None or act.amount >= asker.limit):
        return "above_configured_threshold"
    if act.tier != 1:
        return "risk_tier_requires_step_up"
    return "rule_requires_approval"


def may_be_requested(asker: Asker, act: Act) -> bool:
    known = asker.kind == "Agent" and asker.active and asker.org == HOME and asker.default is not None
    denied = not act.asked_always and (asker.mode or asker.default) == "deny"
    return known and not act.platform_made and not denied


@pytest.fixture(scope="module")
def engine() -> PolicyEngine:
    return PolicyEngine(Bundle.load(ROOT / "schema.cedarschema", ROOT / "policies"), salt=b"")


def test_an_action_is_automatic_only_where_a_written_rule_says_so(engine: PolicyEngine) -> None:
    verdicts = _ask(engine, "suggest_auto", AUTOMATIC)
    assert [pair for pair, verdict in verdicts.items() if verdict.allowed != may_be_automatic(*pair)] == []


def test_an_action_that_is_not_automatic_has_exactly_one_reason(engine: PolicyEngine) -> None:
    wrong = []
    for (asker, act), verdict in _ask(engine, "suggest_auto", AUTOMATIC).items():
        reason = one_reason(verdict)
        if asker.org == HOME and not verdict.allowed and (reason is None or reason.code != why_not(asker, act)):
            wrong.append((asker, act, reason))
    assert wrong == []


def test_an_approval_is_requested_unless_a_rule_or_the_default_denies(engine: PolicyEngine) -> None:
    verdicts = _ask(engine, "approval.request", REQUESTS)
    assert [pair for pair, verdict in verdicts.items() if verdict.allowed != may_be_requested(*pair)] == []


@pytest.mark.parametrize(("action", "acts"), [("suggest_auto", AUTOMATIC), ("approval.request", REQUESTS)])
def test_a_guardrail_explains_each_denial(engine: PolicyEngine, action: str, acts: list[Act]) -> None:
    verdicts = _ask(engine, action, acts)
    assert [pair for pair, v in verdicts.items() if not v.allowed and (v.errors or one_reason(v) is None)] == []


def _ask(engine: PolicyEngine, action: str, acts: list[Act]) -> dict[tuple[Asker, Act], Verdict]:
    pairs = list(product(ASKERS, acts))
    queries = [Query(_asker(asker), action, _act(act), CONTEXT) for asker, act in pairs]
    return dict(zip(pairs, engine.decide_all(queries, _slice(engine, acts)), strict=True))


def _asker(asker: Asker) -> EntityUid:
    return PERSON if asker.kind == "Human" else EntityUid(asker.kind, f"asker-{ASKERS.index(asker)}")


def _act(act: Act) -> EntityUid:
    return EntityUid("ProposedAction", f"act-{[*AUTOMATIC, *REQUESTS].index(act)}")


def _slice(engine: PolicyEngine, acts: list[Act]) -> Slice:
    entities = [Entity(HOME), Entity(AWAY), Entity(PERSON, {"org": HOME}, (HOME,))]
    for asker in ASKERS:
        entities += _asker_entities(asker)
    for act in acts:
        attrs: dict[str, Value] = {
            "org": HOME,
            "action_type": "refund.create",
            "risk_tier": act.tier,
            "sensitive": act.sensitive,
            "platform_made": act.platform_made,
            "asked_always": act.asked_always,
            "person_paused": act.paused,
        }
        entities.append(Entity(_act(act), attrs | ({} if act.amount is None else {"amount_usd": act.amount}), (HOME,)))
    return engine.slice(*entities)


def _asker_entities(asker: Asker) -> list[Entity]:
    uid = _asker(asker)
    if asker.kind == "Human":
        return []
    if asker.kind == "Platform":
        return [Entity(uid, {"org": asker.org}, (asker.org,))]
    attrs: dict[str, Value] = {"org": asker.org, "active": asker.active, "registered_by": PERSON}
    if asker.default is None:
        return [Entity(uid, attrs, (asker.org,))]
    policy, rule = EntityUid("ApprovalPolicy", uid.id), EntityUid("ApprovalRule", uid.id)
    found: list[Entity] = [Entity(uid, attrs | {"approval": policy}, (asker.org,))]
    if asker.mode is None:
        return [*found, Entity(policy, {"default_mode": asker.default})]
    limit: dict[str, Value] = {} if asker.limit is None else {"require_for_amount_above_usd": asker.limit}
    return [
        *found,
        Entity(policy, {"default_mode": asker.default}, tags={"refund.create": rule}),
        Entity(rule, {"mode": asker.mode} | limit),
    ]
