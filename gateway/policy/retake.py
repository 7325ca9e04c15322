"""Retaking one recorded decision, to say why it was taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from gateway.model.decision import DenyKind
from gateway.model.memory import MemoryGrant
from gateway.model.recorded import Recorded
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.explain import Explanation, explain_plan, explain_verdict
from gateway.policy.laid import Lost, cedars_kind, lay_out


def retake(
    bundle: Bundle, row: Recorded, bodies: Mapping[str, str], grants: Mapping[str, MemoryGrant]
) -> Explanation | Lost | Literal["differs"]:
    """Returns why a decision was taken, by taking it again under the bundle that decided, or why that cannot be.

    `bodies` are the entities of slices as canonical JSON, by hash; `grants` are all that there were, by id. An explanation is
    of the recorded answer: where another one comes out, it `differs` and there is none.
    """
    if row.deny_kind == DenyKind.INVALID_REQUEST:
        return "not_asked"
    laid = lay_out(bundle, row, bodies, grants)
    if isinstance(laid, str):
        return laid
    engine = PolicyEngine(bundle, salt=b"")
    if row.planned is not None:
        verdict = engine.plan(laid.query, row.planned, laid.slice, laid.grants).verdict
        found = explain_plan(bundle, verdict, laid.query, row.planned, laid.slice, laid.grants)
    else:
        verdict = engine.decide(laid.query, laid.slice, laid.grants)
        found = explain_verdict(bundle, verdict, laid.query, laid.slice, laid.grants)
    answer = (verdict.allowed, verdict.deny_kind, verdict.policies, verdict.errors)
    return found if answer == (row.allowed, cedars_kind(row), row.policies, row.errors) else "differs"
