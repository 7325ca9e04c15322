"""Grants as policies: what they open, to whom, and that nothing else opens it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import get_args

import cedarpy
import pytest

from gateway.model.condition import FALSE
from gateway.model.decision import DenyKind, Query, Reason, Verdict
from gateway.model.entity import Entity, EntityUid, Value
from gateway.model.floor import granted_floor
from gateway.model.memory import MEMORY_ACTIONS, NO_LIMITS, PROVENANCES, TIERS, Match, MemoryAction, MemoryGrant
from gateway.policy import sets
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.grants import FORBID, FORBIDDEN, PERMITTED, as_text, compile_grants
from gateway.policy.probe import GrantRefused
from gateway.policy.slice import Slice
from tests.policy.conditions import columns, holds
from tests.world import ROOT

ORG, OTHER_ORG = EntityUid("Org", "o"), EntityUid("Org", "p")
PERSON, AGENT, OTHER_AGENT = EntityUid("Human", "ann"), EntityUid("Agent", "ag"), EntityUid("Agent", "ag2")
PEER = EntityUid("Connection", "conn-1")
MOMENT = {"now": datetime(2026, 3, 4, tzinfo=UTC), "clock": {"minute": 0, "weekday": 3, "date": "2026-03-04"}}
HOSTILE = 'a" ) ; permit(principal,action,resource);//'
EVERYTHING = '@id("open") @reason("Open.") permit (principal, action, resource);'


SCHEMA = (ROOT / "schema.cedarschema").read_text()


@cache
def a_bundle(*policies: str) -> Bundle:
    text = "\n".join(policies) or '@id("none") permit (principal, action, resource) when { false };'
    return Bundle.from_text(SCHEMA, {"own.cedar": text}, house_rules=False)


def an_engine(*policies: str) -> PolicyEngine:
    """An engine that nothing guards: by itself it allows what its policies say, without any nothing."""
    return PolicyEngine(a_bundle(*policies), salt=b"")


def a_grant(
    id_: str = "g1",
    *,
    actions: tuple[MemoryAction, ...] = ("search",),
    project: str = "alpha",
    tags: tuple[str, ...] = (),
    **changes: object,
) -> MemoryGrant:
    grant = MemoryGrant(
        id=id_,
        org_id="o",
        connection_id="conn-1",
        actions=actions,
        project_id=project,
        tags=tags,
        tags_match="any",
        classifications=("public", "internal"),
        provenance="any",
        expires_at=None,
        limits=NO_LIMITS,
        template_version=1,
        created_by="ann",
        created_at=datetime(2026, 3, 1, tzinfo=UTC),
    )
    return replace(grant, **changes)  # type: ignore[arg-type]  # a test names what it changes


def a_row(id_: str = "m", *, project: str | None = "alpha", agent: EntityUid = AGENT, **changes: Value) -> Entity:
    attrs: dict[str, Value] = {
        "org": ORG,
        "agent": agent,
        "layer": "fact",
        "tags": (),
        "classification": "internal",
        "sources": (),
        "retracted": False,
        "superseded": False,
        "expired": False,
    }
    attrs |= {} if project is None else {"project": project}
    attrs |= changes
    org = attrs["org"]
    assert isinstance(org, EntityUid)
    return Entity(EntityUid("Memory", id_), attrs, (org,))


def a_slice(engine: PolicyEngine, *rows: Entity, active: bool = True) -> Slice:
    def agent(uid: EntityUid) -> Entity:
        return Entity(uid, {"org": ORG, "active": True, "registered_by": PERSON}, (ORG,))

    held: dict[str, Value] = {"org": ORG, "agent": AGENT, "active": active, "grants": (), "projects": (), "tiers": ()}
    people = [Entity(PERSON, {"org": ORG}, (ORG,)), agent(AGENT), agent(OTHER_AGENT)]
    peers = [Entity(EntityUid("Connection", id_), held, (ORG,)) for id_ in ("conn-1", "conn-2")]
    return engine.slice(Entity(ORG), Entity(OTHER_ORG), *people, *peers, *rows)


def asked(row: Entity, action: str = "search", principal: EntityUid = PEER) -> Query:
    return Query(principal, f"memory.{action}", row.uid, MOMENT)


def decided(
    row: Entity, *grants: MemoryGrant, action: str = "search", policies: Sequence[str] = (), principal: EntityUid = PEER
) -> Verdict:
    engine = an_engine(*policies)
    return engine.decide(asked(row, action, principal), a_slice(engine, row), grants)


def test_a_grant_permits_its_rows_and_says_so() -> None:
    assert decided(a_row(), a_grant()) == Verdict(True, None, ("grant/g1",), (Reason("grant/g1", "permit", PERMITTED),), ())


def test_what_no_grant_covers_is_forbidden_and_says_so() -> None:
    expected = Verdict(False, DenyKind.FORBIDDEN, (FORBID,), (Reason(FORBID, "forbid", FORBIDDEN),), ())
    assert decided(a_row(project="beta"), a_grant()) == expected
    assert decided(a_row(), policies=(EVERYTHING,)) == expected


@pytest.mark.parametrize(
    "row",
    [
        a_row(project=None),
        a_row(project="alpha2"),
        a_row(project="ALPHA"),
        a_row(classification="confidential"),
        a_row(classification="pii"),
        a_row(agent=OTHER_AGENT),
        a_row(org=OTHER_ORG),
        a_row(retracted=True),
        a_row(superseded=True),
        a_row(expired=True),
    ],
    ids=lambda row: str(row.attrs),
)
def test_a_policy_that_permits_everything_opens_no_row_outside_the_grant(row: Entity) -> None:
    assert decided(row, a_grant(), policies=(EVERYTHING,)).policies == (FORBID,)
    assert decided(a_row(), a_grant(), policies=(EVERYTHING,)).policies == ("grant/g1", "open")


def test_a_policy_of_the_organisation_narrows_what_is_granted() -> None:
    forbid = (
        '@id("no") @reason("No.") forbid (principal is Connection, action, resource is Memory) when { resource.layer == "fact" };'
    )
    assert decided(a_row(), a_grant(), policies=(forbid,)).policies == ("no",)
    assert decided(a_row(layer="chunk"), a_grant(), policies=(forbid,)).allowed


@pytest.mark.parametrize("action", MEMORY_ACTIONS)
def test_a_grant_is_of_its_actions_alone(action: MemoryAction) -> None:
    allowed = [other for other in MEMORY_ACTIONS if decided(a_row(), a_grant(actions=(action,)), action=other).allowed]
    assert allowed == [action]


def test_two_grants_are_a_union_row_by_row_and_action_by_action() -> None:
    grants = (a_grant("g1"), a_grant("g2", project="beta", actions=("read",)))
    allowed = [
        (project, action)
        for project in ("alpha", "beta")
        for action in ("search", "read")
        if decided(a_row(project=project), *grants, action=action, policies=(EVERYTHING,)).allowed
    ]
    assert allowed == [("alpha", "search"), ("beta", "read")]


def test_a_grant_is_nothing_to_another_connection_or_kind_of_principal() -> None:
    assert decided(a_row(), a_grant(), principal=EntityUid("Connection", "conn-2")).policies == (FORBID,)
    assert decided(a_row(), a_grant(connection_id="conn-2")).policies == (FORBID,)
    assert decided(a_row(), a_grant(), principal=AGENT).deny_kind is DenyKind.NOT_PERMITTED


def test_each_connection_of_a_batch_is_decided_with_its_own_grants() -> None:
    engine = an_engine()
    grants = (a_grant(), a_grant("g2", connection_id="conn-2", project="beta"))
    rows = (a_row("a"), a_row("b", project="beta"))
    queries = [asked(row, principal=EntityUid("Connection", id_)) for id_ in ("conn-1", "conn-2") for row in rows]
    verdicts = engine.decide_all(queries, a_slice(engine, *rows), grants)
    assert [verdict.policies for verdict in verdicts] == [("grant/g1",), (FORBID,), (FORBID,), ("grant/g2",)]


def test_a_connection_that_is_not_active_is_granted_nothing() -> None:
    engine = an_engine(EVERYTHING)
    assert engine.decide(asked(a_row()), a_slice(engine, a_row(), active=False), (a_grant(),)).policies == (FORBID,)


def test_a_row_that_has_ended_may_be_written_and_not_be_read() -> None:
    grant = a_grant(actions=("search", "remember"))
    row = a_row(expired=True)
    assert decided(row, grant, action="remember").allowed
    assert not decided(row, grant, action="search").allowed


def test_questions_that_are_asked_together_are_not_open_to_a_connection_without_a_grant() -> None:
    engine = an_engine(EVERYTHING)
    verdicts = engine.decide_together(asked(a_row()), "memory.read", a_slice(engine, a_row()))
    assert [verdict.policies for verdict in verdicts] == [(FORBID,), (FORBID,)]


@pytest.mark.parametrize("text", [HOSTILE, "*", "%", "a\\", 'a"', "\u2028", "{{x}}", "principal.org"])
def test_what_a_grant_holds_stays_text(text: str) -> None:
    grant = a_grant(project=text, tags=(text,))
    assert decided(a_row(project=text, tags=(text,)), grant).allowed
    assert not decided(a_row(project="alpha", tags=(text,)), grant).allowed
    assert not decided(a_row(project=text, tags=("alpha",)), grant).allowed
    compiled = compile_grants(PEER, (grant,))
    assert compiled.keys() == {"grant/g1", FORBID}
    assert len(cedarpy.PolicySet.from_str(as_text(compiled))) == 2


def test_five_hundred_grants_are_decided() -> None:
    grants = tuple(a_grant(f"g{number}", project=f"p{number}") for number in range(500))
    assert decided(a_row(project="p499"), *grants).policies == ("grant/g499",)
    assert decided(a_row(project="p500"), *grants).policies == (FORBID,)


def test_a_policy_that_is_called_as_a_grant_does_not_take_its_place() -> None:
    policy = '@id("grant/g1") permit (principal, action, resource);'
    with pytest.raises(ValueError, match="grant/g1"):
        decided(a_row(), a_grant(), policies=(policy,))


def test_the_sets_of_the_connections_asked_about_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "KEPT", 2)
    kept = sets.PolicySets(an_engine().bundle)

    def made(id_: str) -> cedarpy.PolicySet:
        return kept.of(("memory.search",), PEER, "Memory", (a_grant(id_),))

    first, second = made("g1"), made("g2")
    assert made("g1") is first
    made("g3")
    assert (made("g1") is first, made("g2") is second) == (True, False)


def test_sets_are_kept_for_as_many_policies_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = sets.PolicySets(an_engine().bundle)

    def made(action: str, *grants: MemoryGrant) -> cedarpy.PolicySet:
        return kept.of((action,), PEER if grants else AGENT, "Memory", grants)

    plain, own = made("memory.search"), made("memory.search", a_grant("g1"))
    assert (made("memory.search") is plain, made("memory.search", a_grant("g1")) is own) == (True, True)
    monkeypatch.setattr(sets, "HELD", 1)
    made("memory.read")
    made("memory.read", a_grant("g1"))
    assert (made("memory.search") is plain, made("memory.search", a_grant("g1")) is own) == (False, False)


# ---- the same, of rows that nobody has looked at ---------------------------------------------------------------------


def test_a_connection_without_a_grant_is_planned_nothing() -> None:
    engine = an_engine(EVERYTHING)
    plan = engine.plan(asked(a_row()), "Memory", a_slice(engine))
    assert (plan.verdict.policies, plan.condition) == ((FORBID,), FALSE)


def test_a_plan_names_the_grants_that_cover_the_action() -> None:
    engine = an_engine()
    grants = (a_grant("g1"), a_grant("g2", actions=("read",)), a_grant("g3", project="beta"))
    assert engine.plan(asked(a_row()), "Memory", a_slice(engine), grants).verdict.policies == ("grant/g1", "grant/g3")


def a_random_grant(id_: str, chance: random.Random) -> MemoryGrant:
    return a_grant(
        id_,
        project=chance.choice(("alpha", "beta")),
        tags=tuple(chance.sample(("x", "y", HOSTILE), chance.choice((0, 0, 1, 2)))),
        tags_match=chance.choice(get_args(Match)),
        classifications=tuple(chance.sample(TIERS, chance.randrange(1, 5))),
        provenance=chance.choice(PROVENANCES),
    )


def a_random_row(id_: str, chance: random.Random) -> Entity:
    return a_row(
        id_,
        project=chance.choice(("alpha", "alpha", "beta", None, "gamma")),
        agent=chance.choice((AGENT, AGENT, AGENT, OTHER_AGENT)),
        org=chance.choice((ORG, ORG, ORG, OTHER_ORG)),
        tags=tuple(chance.sample(("x", "y", "z", HOSTILE), chance.randrange(4))),
        classification=chance.choice(TIERS),
        sources=tuple(chance.sample(("conn-1", "conn-2"), chance.randrange(3))),
        **{name: chance.random() < 0.1 for name in ("retracted", "superseded", "expired")},
    )


@pytest.mark.parametrize("policies", [(), (EVERYTHING,)], ids=["grants alone", "everything permitted"])
def test_cedar_a_plan_and_the_floor_agree_on_every_row(policies: tuple[str, ...]) -> None:
    engine = an_engine(*policies)
    chance = random.Random(7)
    allowed = 0
    for turn in range(40):
        grants = [a_random_grant(f"g{turn}-{number}", chance) for number in range(chance.randrange(4))]
        rows = [a_random_row(f"m{number}", chance) for number in range(100)]
        plan = engine.plan(asked(rows[0]), "Memory", a_slice(engine), grants)
        verdicts = engine.decide_all(list(map(asked, rows)), a_slice(engine, *rows), grants)
        decisions = [verdict.allowed for verdict in verdicts]
        floor = granted_floor("o", "ag", "conn-1", grants)
        assert [holds(plan.condition, columns(row)) for row in rows] == decisions
        assert [holds(floor, columns(row)) for row in rows] == decisions
        allowed += sum(decisions)
    assert allowed > 100


# ---- the probe -------------------------------------------------------------------------------------------------------


def a_product_engine() -> PolicyEngine:
    return PolicyEngine(Bundle.load(ROOT / "schema.cedarschema", ROOT / "policies"), salt=b"")


@pytest.mark.parametrize(
    "grant",
    [
        a_grant(actions=MEMORY_ACTIONS),
        a_grant(project=HOSTILE, tags=(HOSTILE, "y"), tags_match="all"),
        *(a_grant(provenance=provenance, classifications=("pii",)) for provenance in PROVENANCES),
    ],
    ids=lambda grant: f"{grant.project_id} {grant.provenance}",
)
def test_a_grant_that_opens_something_passes_the_probe(grant: MemoryGrant) -> None:
    a_product_engine().probe(grant, "ag")


@pytest.mark.parametrize("grant", [a_grant(actions=()), a_grant(classifications=())], ids=["no action", "no tier"])
def test_a_grant_that_opens_nothing_is_refused(grant: MemoryGrant) -> None:
    with pytest.raises(GrantRefused):
        a_product_engine().probe(grant, "ag")


def test_a_grant_that_is_no_valid_policy_is_refused() -> None:
    schema = SCHEMA.replace("  project?: String,", "  project?: Long,")
    bundle = Bundle.from_text(schema, {"own.cedar": EVERYTHING}, house_rules=False)
    with pytest.raises(GrantRefused, match="types Long and String"):
        PolicyEngine(bundle, salt=b"").probe(a_grant(), "ag")


def test_a_grant_that_a_guardrail_forbids_is_refused() -> None:
    guardrail = '@id("guardrails/no") forbid (principal, action, resource) when { principal is Connection };'
    with pytest.raises(GrantRefused, match="does not allow `search`"):
        an_engine(guardrail).probe(a_grant(), "ag")


def test_a_policy_of_the_organisation_does_not_count_in_the_probe() -> None:
    an_engine('@id("no") forbid (principal, action, resource);').probe(a_grant(), "ag")
    with pytest.raises(GrantRefused):
        an_engine(EVERYTHING).probe(a_grant(actions=()), "ag")
