"""Retaking one recorded decision: its question, the entities and the grants laid out as they were when it was taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.model.decision import DenyKind, Query
from gateway.model.memory import MemoryGrant
from gateway.model.recorded import Recorded
from gateway.policy.bundle import Bundle
from gateway.policy.context import Context
from gateway.policy.engine import PolicyEngine
from gateway.policy.explain import Explanation, explain_plan, explain_verdict
from gateway.policy.grants import HOLDER, ROW
from gateway.policy.slice import Slice, SliceError, from_texts
from gateway.policy.value import ValueRefused

#: Why a decision cannot be taken again: nobody asked Cedar, or the gateway withdrew its answer; the entities were erased; those
#: of a row that was denied are never kept; the record lacks what was asked; a grant is not known any more; the entities are of
#: another schema; and, when it was taken again, another answer came out.
Lost = Literal["withdrawn", "not_asked", "erased", "never_kept", "not_recorded", "grant_unknown", "other_schema", "differs"]
WITHDRAWN = frozenset({DenyKind.STALE, DenyKind.DEADLINE})


@dataclass(frozen=True, slots=True)
class _Laid:
    query: Query
    slice: Slice
    grants: tuple[MemoryGrant, ...]


def retake(bundle: Bundle, row: Recorded, bodies: Mapping[str, str], grants: Mapping[str, MemoryGrant]) -> Explanation | Lost:
    """Returns why a decision was taken, by taking it again under the bundle that decided, or why that cannot be.

    `bodies` are the entities of slices as canonical JSON, by hash; `grants` are all that there were, by id. An explanation is
    of the recorded answer: where another one comes out, there is none.
    """
    laid = _lay_out(bundle, row, bodies, grants)
    if isinstance(laid, str):
        return laid
    engine = PolicyEngine(bundle, salt=b"")
    if row.planned is not None:
        verdict = engine.plan(laid.query, row.planned, laid.slice, laid.grants).verdict
        found = explain_plan(bundle, verdict, laid.query, row.planned, laid.slice, laid.grants)
    else:
        verdict = engine.decide(laid.query, laid.slice, laid.grants)
        found = explain_verdict(bundle, verdict, laid.query, laid.slice, laid.grants)
    same = (verdict.allowed, verdict.policies, verdict.errors) == (row.allowed, row.policies, row.errors)
    return found if same else "differs"


def _lay_out(bundle: Bundle, row: Recorded, bodies: Mapping[str, str], grants: Mapping[str, MemoryGrant]) -> _Laid | Lost:
    if row.deny_kind in WITHDRAWN:
        return "withdrawn"
    if row.deny_kind == DenyKind.INVALID_REQUEST:
        return "not_asked"
    if not row.slices or row.context is None:
        return "not_recorded"
    if any(hash_ not in bodies for hash_ in row.slices):
        return "never_kept" if row.resource.type == ROW and not row.allowed else "erased"
    try:
        slice = from_texts(bundle, [bodies[hash_] for hash_ in row.slices], salt=b"")
        query = Query(row.principal, row.action, row.resource, Context.from_record(row.context))
    except (SliceError, ValueRefused, KeyError, ValueError):
        return "other_schema"
    held = _held(row, slice)
    if not all(id_ in grants for id_ in held):
        return "grant_unknown"
    return _Laid(query, slice, tuple([grants[id_] for id_ in held]))


def _held(row: Recorded, slice: Slice) -> tuple[str, ...]:
    """The grants that decide a row: those that its principal held, where it is a remote agent that asks about rows."""
    if row.principal.type != HOLDER or ROW not in (row.planned, row.resource.type):
        return ()
    uid = {"id": row.principal.id, "type": HOLDER}
    return tuple([id_ for entity in json.loads(slice.text) if entity["uid"] == uid for id_ in entity["attrs"]["grants"]])
