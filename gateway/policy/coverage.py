"""Coverage: what the cases of a policy set leave unasked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case, CaseResult, judge, prepare
from gateway.policy.engine import PolicyEngine


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is missing, each sorted: actions that no case allows, that no case denies, policies that never decided."""

    without_allow: tuple[str, ...]
    without_deny: tuple[str, ...]
    undecisive: tuple[str, ...]


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
