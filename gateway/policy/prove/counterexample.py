"""A counterexample: a model of the solver made into a case, and put to the engine before anybody is shown it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.model.decision import Verdict
from gateway.policy import cases
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case
from gateway.policy.engine import PolicyEngine
from gateway.policy.prove import store
from gateway.policy.prove.logic import always
from gateway.policy.prove.scene import Scene
from gateway.policy.slice import SliceError

#: What bundles answer that no claim lets them: each beside whether it allows.
Answers = Sequence[tuple[Bundle, bool]]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A case that a claim says does not exist.

    `case` holds what the first of the bundles answers; `confirmed` is whether the engine answers under all of them as the
    encoding does, and `said`, what it said.
    """

    case: Case
    confirmed: bool
    said: tuple[str, ...]


def made(scene: Scene, model: Any, answers: Answers, name: str) -> Counterexample:
    """Returns the case of a model, decided by the engine; raises `Unprovable` where it has no spelling."""
    read = store.Store(scene.symbols, model)
    asked, types = scene.question, scene.types
    principal = read.uid(scene.symbols.variable("principal", asked.principal))
    resource = read.uid(scene.symbols.variable("resource", asked.resource))
    request = {
        "principal": str(principal),
        "action": f'Action::"{asked.action}"',
        "resource": str(resource),
        "context": store.context(read, types.actions[asked.action].context),
    }
    grants: list[Mapping[str, Any]] = []
    if always(model.eval(scene.covered, model_completion=True)):
        row = scene.symbols.record(scene.symbols.variable("resource", asked.resource))
        project, tier = (read.string(scene.symbols.get(row, field)) for field in ("project", "classification"))
        action = asked.action.removeprefix("memory.")
        grants.append({"id": "g1", "actions": [action], "project_id": project, "classifications": [tier]})
    raw = {"name": name, "request": request, "entities": read.entities(), "decision": "deny", "reason": [], "num_errors": 0}
    return tried(cases.from_json({**raw, "grants": grants} if grants else raw), answers)


def tried(case: Case, answers: Answers) -> Counterexample:
    """Returns a case as the first of the bundles answers it, decided by the engine under each."""
    verdicts = [_decided(bundle, case) for bundle, _ in answers]
    confirmed = all(
        verdict is not None and verdict.allowed == wanted for verdict, (_, wanted) in zip(verdicts, answers, strict=True)
    )
    said = tuple(_said(verdict) for verdict in verdicts)
    if (first := verdicts[0]) is None:
        return Counterexample(case, confirmed, said)
    answer = {
        "decision": "allow" if first.allowed else "deny",
        "reason": list(first.policies),
        "num_errors": len(first.errors),
    }
    asked = {key: value for key, value in cases.expand(case).items() if key != "deny_kind"}
    return Counterexample(cases.from_json({**asked, **answer}), confirmed, said)


def _decided(bundle: Bundle, case: Case) -> Verdict | None:
    try:
        engine = PolicyEngine(bundle, salt=b"")
        [(_, query, slice)] = cases.prepare(engine, [case])
    except SliceError:
        return None
    return engine.decide(query, slice, case.grants)


def _said(verdict: Verdict | None) -> str:
    if verdict is None:
        return "does not take the entities"
    if verdict.allowed:
        return "allows"
    return f"denies ({verdict.deny_kind}{': ' + ', '.join(verdict.policies) if verdict.policies else ''})"
