"""Proofs: what the shipped policies keep, what keeps it, and what is said where a proof does not reach."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache

import pytest
from cedarpy import pst

from gateway.model.entity import EntityUid
from gateway.policy import guard, schema
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case, from_json, run_case
from gateway.policy.finding import PolicyError
from gateway.policy.grants import compile_grants

pytest.importorskip("z3")

from gateway.policy.prove import claim, counterexample, like
from gateway.policy.prove.invariants import EVERYTHING, INVARIANTS, Invariant
from gateway.policy.prove.logic import no, some
from gateway.policy.prove.proof import Proof, changes, equivalent, implies, prove
from gateway.policy.prove.scene import COVERED, Question, Scene
from gateway.policy.prove.schema import Unprovable
from gateway.policy.prove.trial import tried
from tests.memory.rows import a_grant
from tests.policy import builders as b
from tests.world import ROOT

POLICIES = ROOT / "policies"
SCHEMA = (ROOT / "schema.cedarschema").read_text()
NAMED = {invariant.name: invariant for invariant in INVARIANTS}
#: What each guardrail keeps when everything is permitted: without it the invariant does not hold any more.
RESTS_ON = [
    ("observers", "observers"),
    ("observers", "human_only"),
    ("organisation", "organisation"),
    ("sensitive", "suggest_auto/action_is_sensitive"),
    ("human_only", "human_only"),
    ("granted_rows", "memory/project"),
    ("granted_rows", "memory/tier"),
    ("granted_rows", "connection/nothing_else"),
    ("own_actions", "platform/nothing_else"),
    ("own_actions", "platform/only_platforms"),
    ("own_actions", "connection/nothing_else"),
    ("own_actions", "bridge/nothing_else"),
    ("own_actions", "bridge/only_bridges"),
    ("roles", "content"),
    ("roles", "memory/humans"),
]


@cache
def texts() -> dict[str, str]:
    return {path.relative_to(POLICIES).as_posix(): path.read_text() for path in sorted(POLICIES.rglob("*.cedar"))}


@cache
def shipped(*added: str) -> Bundle:
    """The shipped policies, and some that an organisation adds."""
    return Bundle.from_text(
        SCHEMA, {**texts(), **{f"added{n}.cedar": policy for n, policy in enumerate(added)}}, house_rules=False
    )


def small(*policies: str) -> Bundle:
    return Bundle.from_text(b.SCHEMA, {"store.cedar": "\n".join(policies)}, house_rules=False)


def without(bundle: Bundle, *ids: str) -> Bundle:
    for id_ in ids:
        bundle = bundle.without(id_)
    return bundle


def proved(proofs: Iterable[Proof]) -> dict[str, tuple[str, bool]]:
    return {proof.claim: (proof.status, proof.whatever) for proof in proofs}


def case_of(proof: Proof) -> Case:
    """The counterexample of a proof that the engine confirmed."""
    assert proof.status == "refuted"
    assert proof.counterexample is not None
    assert proof.counterexample.confirmed
    return proof.counterexample.case


def test_every_invariant_holds_of_the_shipped_policies_whatever_else_is_permitted() -> None:
    proofs = prove(shipped())
    assert proved(proofs) == {name: ("proved", True) for name in NAMED}
    assert [proof for proof in proofs if proof.assumed or proof.open or not proof.questions] == []


@pytest.mark.parametrize(("name", "guardrail"), RESTS_ON)
def test_an_invariant_fails_without_the_guardrail_that_it_rests_on(name: str, guardrail: str) -> None:
    bundle = shipped(EVERYTHING)
    [proof] = prove(without(bundle, f"guardrails/{guardrail}"), [NAMED[name]])
    case = case_of(proof)
    assert case.decision == "allow"
    assert run_case(without(bundle, f"guardrails/{guardrail}"), case).failures == ()
    assert run_case(bundle, case).verdict.policies == (f"guardrails/{guardrail}",)


@pytest.mark.parametrize("guardrail", ["memory/untagged", "memory/connected_agent"])
def test_what_every_grant_asks_too_is_kept_twice(guardrail: str) -> None:
    """Without the guardrail the proof needs what grants compile to, and does not hold of every permit any more."""
    proofs = prove(without(shipped(EVERYTHING), f"guardrails/{guardrail}"), [NAMED["granted_rows"]])
    assert proved(proofs) == {"granted_rows": ("proved", False)}


def test_without_a_guardrail_the_permits_alone_still_keep_their_invariant() -> None:
    proofs = prove(without(shipped(), "guardrails/observers"), [NAMED["observers"]])
    assert proved(proofs) == {"observers": ("proved", False)}


def test_what_every_grant_asks_is_asked_by_each_grant() -> None:
    chance = random.Random(7)
    bundle = shipped()
    types = schema.read(bundle.schema)
    for action in ("memory.search", "memory.read", "memory.query", "memory.remember"):
        scene = Scene(bundle, Question(action, "Connection", "Memory"), types)
        [covered] = [scene.encoder.policy(tree) for tree in small_tree(COVERED)]
        for number in range(6):
            grant = a_grant(chance, f"g{number}")
            compiled = compile_grants(EntityUid("Connection", grant.connection_id), [grant])
            judged = {id_: scene.encoder.policy(tree) for id_, tree in compiled.items()}
            permits = [found.satisfied for id_, found in judged.items() if compiled[id_].effect == "permit"]
            assert scene.model(some(*permits), no(covered.satisfied)) is None
            assert scene.model(some(*(found.errs for found in judged.values()))) is None


def test_a_candidate_without_a_permit_grants_nothing_new_and_the_other_way_round_it_does() -> None:
    narrower = without(shipped(), "peer/read/observer")
    assert implies(narrower, shipped()).status == "proved"
    case = case_of(implies(shipped(), narrower))
    assert case.action == "peer.read"
    assert case.reason == {"peer/read/observer"}


def test_a_dropped_guardrail_behind_full_permits_changes_nothing() -> None:
    assert equivalent(without(shipped(), "guardrails/observers"), shipped()).status == "proved"


def test_one_condition_written_in_two_ways_is_equivalent_and_two_are_not() -> None:
    owner = "resource.owner == principal"
    one = small(f'@id("a") permit (principal, action, resource is Doc) when {{ principal.level > 1 && {owner} }};')
    two = small(f'@id("b") permit (principal, action, resource is Doc) when {{ {owner} }} unless {{ principal.level <= 1 }};')
    three = small(f'@id("b") permit (principal, action, resource is Doc) when {{ principal.level >= 1 && {owner} }};')
    assert equivalent(one, two).status == "proved"
    assert case_of(equivalent(one, three)).action in {"read", "edit", "drop", "list"}


def test_groups_within_groups_are_followed() -> None:
    """Whoever is in a group is in what the group is in."""
    through = small('@id("a") permit (principal in Group::"low", action, resource);')
    both = small('@id("a") permit (principal in Group::"low", action, resource) when { principal in Group::"top" };')
    outside = (
        '@id("f") forbid (principal, action, resource) when { Group::"low" in Group::"top" && !(principal in Group::"top") };'
    )
    assert case_of(equivalent(through, both)).decision == "allow"
    assert (
        equivalent(through, small('@id("a") permit (principal in Group::"low", action, resource);', outside)).status == "proved"
    )


def test_an_error_denies_as_it_does_in_the_engine() -> None:
    plain = small(b.PERMIT)
    wide = small(b.PERMIT, '@id("f") forbid (principal, action, resource) when { principal.level + 1 > principal.level + 2 };')
    case = case_of(implies(plain, wide))
    level = next(entity["attrs"]["level"] for entity in case.entities if entity["uid"]["id"] == case.principal.id)
    assert level > 2**63 - 3


def test_policies_that_narrow_where_it_is_said_are_proved_to() -> None:
    hours = 'forbid (principal is Connection, action in Action::"memory_rows", resource) unless { context.clock.minute >= 540 };'
    new = shipped(hours)
    for only in ("Connection, memory_rows", "Connection", "principal is Connection && context.clock.minute < 540"):
        assert changes(shipped(), new, claim.read(new, only)).status == "proved"
    elsewhere = changes(shipped(), new, claim.read(new, "Agent, memory.search"))
    assert case_of(elsewhere).principal.type == "Connection"


def test_policies_that_widen_are_refuted_even_where_it_is_said() -> None:
    new = shipped('@id("org/wide") permit (principal is Human, action == Action::"decision.list", resource is Org);')
    case = case_of(changes(shipped(), new, claim.read(new, "decision.list")))
    assert (case.decision, case.reason) == ("allow", {"org/wide"})


def test_a_permit_that_a_guardrail_shuts_widens_nothing() -> None:
    new = shipped('@id("org/wide") permit (principal is Agent, action == Action::"decision.list", resource is Org);')
    assert equivalent(shipped(), new).status == "proved"


def test_a_claim_that_is_no_condition_of_the_schema_is_refused() -> None:
    with pytest.raises(PolicyError, match="nobody"):
        claim.read(shipped(), "nobody")


def test_what_cannot_be_encoded_is_named_and_an_invariant_is_proved_whatever_it_answers() -> None:
    odd = '@id("org/odd") permit (principal is Agent, action, resource is Peer) when { context.now.toTime() < duration("9h") };'
    [proof] = prove(shipped(odd), [NAMED["observers"]])
    assert (proof.status, proof.whatever, proof.assumed) == ("proved", True, ())
    [proof] = prove(without(shipped(odd), "guardrails/observers"), [NAMED["observers"]])
    assert proof.status == "refuted" or all("`to_time`" in why for why in proof.open)
    assert proof.assumed == ("`org/odd` holds `to_time`",)


def test_a_difference_that_cannot_be_encoded_is_not_called_proved_and_cases_may_refute_it() -> None:
    old = small(b.PERMIT)
    new = small(
        b.PERMIT, '@id("f") forbid (principal, action, resource) when { context has now && context.now.toDate() == context.now };'
    )
    both = changes(old, new, claim.read(old, "drop"))
    assert both.status == "refuted" or all("`f` holds `to_date`" in why for why in both.open)
    assert equivalent(new, new).status == "proved"


def test_the_cases_refute_what_a_proof_does_not_reach() -> None:
    """The solver knows nothing of the pattern but its text; the case has a value for it."""
    old = small(b.PERMIT)
    when = 'principal has nick && principal.nick == "ab" && context has now && context.now.toTime() == duration("1h")'
    new = small(b.PERMIT, f'@id("f") forbid (principal, action, resource) when {{ {when} }};')
    entities = [
        {"uid": {"type": "Org", "id": "o"}, "attrs": {}, "parents": []},
        b.a_row("User", "ann", org=b.uid("Org", "o"), active=True, level=1, nick="ab"),
        b.a_row("Doc", "d", org=b.uid("Org", "o"), owner=b.uid("User", "ann"), level=1),
    ]
    request = {"principal": 'User::"ann"', "action": 'Action::"read"', "resource": 'Doc::"d"'}
    moment = {"now": {"__extn": {"fn": "datetime", "arg": "2026-01-01T01:00:00Z"}}}
    case = from_json(
        {"request": {**request, "context": moment}, "entities": entities, "decision": "allow", "reason": [], "num_errors": 0}
    )
    only = claim.read(old, "drop")
    proof = changes(old, new, only)
    assert (proof.status, tried(proof, old, new, only, [], samples=0).proof) == ("open", proof)
    found = tried(proof, old, new, only, [case], samples=0).proof
    assert (found.status, case_of(found).request["context"]) == ("refuted", moment)


def test_two_schemas_are_not_compared() -> None:
    assert implies(small(b.PERMIT), shipped()).open == ("the schemas differ",)


def test_an_invariant_of_another_schema_is_not_called_proved() -> None:
    [proof] = prove(small(b.PERMIT), [NAMED["sensitive"]])
    assert proof.status == "open"


def test_an_organisation_may_claim_invariants_of_its_own() -> None:
    text = 'forbid (principal, action == Action::"peer.erase", resource) unless { principal is Human };'
    own = Invariant("erasure", "Only a human erases.", text)
    assert proved(prove(shipped(), [own])) == {"erasure": ("proved", True)}


def test_a_pattern_is_met_by_a_string_that_fits_it() -> None:
    one = small('@id("a") permit (principal, action, resource) when { principal has nick && principal.nick like "a*z\\*" };')
    case = case_of(equivalent(one, small('@id("a") forbid (principal, action, resource);')))
    nick = next(entity["attrs"]["nick"] for entity in case.entities if entity["uid"]["id"] == case.principal.id)
    assert (nick[0], nick[-2:]) == ("a", "z*")


def test_an_encoding_that_knows_too_little_is_told_apart_by_the_engine() -> None:
    """Of two patterns nothing is known together: what starts with `ab` starts with `a`."""
    one = small('@id("a") permit (principal, action, resource) when { principal has nick && principal.nick like "ab*" };')
    two = small('@id("a") permit (principal, action, resource) when { principal has nick && principal.nick like "a*" };')
    proof = implies(one, two)
    assert proof.status == "open"
    assert proof.open != ()


@pytest.mark.parametrize(
    ("added", "named"),
    [
        ('entity Colour enum ["red"];', "the enumerated type `Colour`"),
        ("entity Log = { did: Action };", "the type `Action`"),
        ("entity Log = { last?: { did: Set<Action> } };", "the type `Action`"),
        ("entity Log tags Action;", "the type `Action`"),
        ('action "log" appliesTo { principal: User, resource: User, context: { did: Action } };', "the type `Action`"),
        ("namespace Far { entity Place; }", "a schema with `namespace`"),
        ('namespace Far { action "go"; }', "a schema with `namespace`"),
    ],
)
def test_a_schema_that_cannot_be_encoded_is_named(added: str, named: str) -> None:
    bundle = Bundle.from_text(f"{b.SCHEMA} {added}", {"store.cedar": b.PERMIT}, house_rules=False)
    with pytest.raises(Unprovable, match=named):
        equivalent(bundle, bundle)


def test_what_the_engine_does_not_say_is_not_confirmed() -> None:
    bundle = small(b.PERMIT)
    case = case_of(implies(bundle, small('@id("f") forbid (principal, action, resource);')))
    assert [counterexample.tried(case, ((bundle, wanted),)).confirmed for wanted in (True, False)] == [True, False]


def test_a_pattern_is_told_by_its_text() -> None:
    patterns = ((pst.Char("a"), pst.Wildcard()), (pst.Char("a"), pst.Char("*")))
    assert [like.shown(pattern) for pattern in patterns] == ["a*", "a\\*"]


def small_tree(*policies: str) -> list[pst.Template]:
    return [guard.parse(policy) for policy in policies]
