"""Samples: requests by chance, of one kind, that mostly fit the schema and come near what policies say."""

from __future__ import annotations

from itertools import islice
from random import Random

from gateway.model.decision import DenyKind
from gateway.policy.cases import Case, expand, prepare
from gateway.policy.engine import PolicyEngine
from gateway.policy.folder import find
from gateway.policy.samples import Samples
from gateway.policy.schema import Question
from gateway.policy.slice import SliceError
from tests.policy import builders as b
from tests.world import ROOT, shipped

CASES = find(ROOT).cases()
READ = Question("peer.read_context", "Agent", "Peer")
NEAR = '@id("near") forbid (principal == User::"eve", action, resource) when { resource.level > 41 };'


def made(kind: Question, seed: int = 0, count: int = 200) -> list[Case]:
    return list(islice(Samples(CASES, shipped().trees.values()).of(kind, Random(seed)), count))


def test_a_seed_makes_the_same_requests_again_and_another_one_others() -> None:
    first, again, other = ([expand(case) for case in made(READ, seed)] for seed in (1, 1, 2))
    assert first == again != other


def test_requests_are_of_their_kind_and_mostly_fit_the_schema_and_are_answered_in_more_than_one_way() -> None:
    for kind in (READ, Question("suggest_auto", "Agent", "ProposedAction"), Question("memory.search", "Connection", "Memory")):
        cases = made(kind)
        assert {(c.action, c.principal.type, c.resource.type) for c in cases} == {(kind.action, kind.principal, kind.resource)}
        answers = [answer for case in cases if (answer := answered(case)) != DenyKind.INVALID_REQUEST]
        assert len(answers) > len(cases) // 3
        assert len(set(answers)) > 1


def answered(case: Case) -> str:
    engine = PolicyEngine(shipped(), salt=b"")
    try:
        [(_, query, slice)] = prepare(engine, [case])
    except SliceError:
        return DenyKind.INVALID_REQUEST
    return engine.decide(query, slice, case.grants).deny_kind or "allow"


def test_values_and_names_of_policies_are_asked_about() -> None:
    engine = b.an_engine(b.PERMIT, NEAR)
    cases = list(islice(Samples([b.a_case()], engine.bundle.trees.values()).of(Question("read", "User", "Doc"), Random(0)), 200))
    assert {case.principal.id for case in cases} == {"ann", "eve"}
    levels = {entity["attrs"]["level"] for case in cases for entity in case.entities if entity["uid"]["type"] == "Doc"}
    assert levels == {1, 40, 41, 42}
    forbidden = [q for q in prepare(engine, cases) if engine.decide(q[1], q[2]).policies == ("near",)]
    assert forbidden


def test_nothing_is_made_of_cases_without_the_types() -> None:
    assert not list(islice(Samples([b.a_case()], ()).of(Question("read", "Team", "Doc"), Random(0)), 1))
