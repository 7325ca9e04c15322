"""Coverage: what the cases of a policy set leave unasked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from cedarpy import pst

from gateway.model.decision import DenyKind
from gateway.policy import clauses as written
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case, CaseResult, judge, prepare
from gateway.policy.clauses import Clause
from gateway.policy.engine import PolicyEngine
from gateway.policy.finding import Finding
from gateway.policy.holding import Probes
from gateway.policy.source import PolicyInfo


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is missing, each sorted: actions that no case allows, that no case denies, policies that never decided."""

    without_allow: tuple[str, ...]
    without_deny: tuple[str, ...]
    undecisive: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """One level: of `total` things, `covered` were seen; `missing` are the others, each where it stands, sorted."""

    name: str
    covered: int
    total: int
    missing: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Levels:
    """How deep the cases go into the policies.

    `fired`: policies whose scope and clauses were all true in some case. `decisive`: policies that were among the
    determining ones. `clauses`: each `when` and `unless` counts twice, once seen true and once seen false, in cases that
    its policy's scope matches. `forbids`: the forbids among `fired`.
    """

    fired: Level
    decisive: Level
    clauses: Level
    forbids: Level

    @property
    def all(self) -> tuple[Level, ...]:
        """The levels in order."""
        return self.fired, self.decisive, self.clauses, self.forbids

    @property
    def percent(self) -> int:
        """How much of all levels together is covered, rounded down: 100 only when nothing is missing."""
        total = sum(level.total for level in self.all)
        return 100 * sum(level.covered for level in self.all) // total if total else 100


def levels(bundle: Bundle, cases: Iterable[Case]) -> Levels:
    """Returns how deep the cases go; a case of a request that is not valid counts for nothing; raises `SliceError`."""
    engine = PolicyEngine(bundle, salt=b"")
    clauses = [clause for info in bundle.policies.values() for clause in written.clauses(info)]
    probes = Probes(bundle, dict(_probes(bundle, clauses)))
    fired: set[str] = set()
    decisive: set[str] = set()
    seen: set[tuple[Clause, bool]] = set()
    for case, query, slice in prepare(engine, cases):
        verdict = engine.decide(query, slice, case.grants)
        if verdict.deny_kind is DenyKind.INVALID_REQUEST:
            continue
        held = probes.held(query, slice)
        fired |= {id_ for id_ in bundle.policies if held.of(("whole", id_))}
        decisive.update(verdict.policies)
        for clause in clauses:
            truth = held.of(("clause", clause))
            if truth is not None and held.of(("scope", clause.policy_id)):
                seen.add((clause, truth))
    return Levels(
        fired=_level("fired", bundle.policies.values(), fired, "never fires"),
        decisive=_level("decisive", bundle.policies.values(), decisive, "never decides"),
        clauses=_of_clauses(bundle, clauses, seen),
        forbids=_level("forbids", [i for i in bundle.policies.values() if i.effect == "forbid"], fired, "never forbids"),
    )


def coverage(bundle: Bundle, results: Iterable[CaseResult]) -> Coverage:
    """Returns what the results of all cases leave uncovered."""
    allowed: set[str] = set()
    denied: set[str] = set()
    decisive: set[str] = set()
    for result in results:
        (allowed if result.verdict.allowed else denied).add(result.case.action)
        decisive.update(result.verdict.policies)
    return Coverage(
        without_allow=tuple(sorted(bundle.actions - allowed)),
        without_deny=tuple(sorted(bundle.actions - denied)),
        undecisive=tuple(sorted(bundle.policies.keys() - decisive)),
    )


def unnoticed(bundle: Bundle, cases: Iterable[Case]) -> tuple[str, ...]:
    """Returns the ids of the policies that can be removed without a case that fails, sorted; raises `SliceError`.

    A case can only notice a policy that decides it or errs in it, so no other case is run again.
    """
    engine = PolicyEngine(bundle, salt=b"")
    asked = prepare(engine, cases)
    verdicts = [engine.decide(query, slice, case.grants) for case, query, slice in asked]
    silent = []
    for policy_id in bundle.policies:
        without = PolicyEngine(bundle.without(policy_id), salt=b"")
        touched = (
            item
            for item, verdict in zip(asked, verdicts, strict=True)
            if policy_id in verdict.policies or policy_id in verdict.errors
        )
        if not any(any(judge(case, without.decide(query, slice, case.grants))) for case, query, slice in touched):
            silent.append(policy_id)
    return tuple(silent)


def _level(name: str, policies: Iterable[PolicyInfo], covered: set[str], message: str) -> Level:
    infos = list(policies)
    missing = sorted(Finding(info.file, info.line, info.id, message) for info in infos if info.id not in covered)
    return Level(name, len(infos) - len(missing), len(infos), tuple(missing))


def _of_clauses(bundle: Bundle, clauses: list[Clause], seen: set[tuple[Clause, bool]]) -> Level:
    missing = sorted(_unseen(bundle, clauses, seen))
    return Level("clauses", 2 * len(clauses) - len(missing), 2 * len(clauses), tuple(missing))


def _unseen(bundle: Bundle, clauses: list[Clause], seen: set[tuple[Clause, bool]]) -> Iterator[Finding]:
    for clause in clauses:
        for truth in (True, False):
            if (clause, truth) not in seen:
                info = bundle.policies[clause.policy_id]
                yield Finding(info.file, clause.line, info.id, f"its `{clause.kind}` is never seen {str(truth).lower()}")


def _probes(bundle: Bundle, clauses: list[Clause]) -> Iterator[tuple[tuple[str, str | Clause], pst.Template]]:
    """Each policy as it is, each without its clauses, and each clause's body with the scope of its policy."""
    for id_, tree in bundle.trees.items():
        yield ("whole", id_), tree
        yield ("scope", id_), replace(tree, clauses=())
    for clause in clauses:
        tree = bundle.trees[clause.policy_id]
        yield ("clause", clause), replace(tree, clauses=(pst.When(tree.clauses[clause.number - 1].expr),))
