"""Planning: policies are evaluated in part, the resource unknown, and what is left of them becomes one condition.

Cedar labels its partial evaluation experimental: nothing else in the product asks for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import cedarpy

from gateway.model.condition import FALSE, TRUE, negation, weight
from gateway.model.decision import DenyKind, Reason, Verdict
from gateway.model.entity import EntityUid
from gateway.model.gather import gather
from gateway.policy.bundle import Bundle
from gateway.policy.panic import unless_it_panics
from gateway.policy.plan import Plan
from gateway.policy.residual import Reader, Untranslatable
from gateway.policy.source import failed
from gateway.policy.truth import MAX_WEIGHT, Truth, every, some
from gateway.policy.value import ValueRefused

SAFE_ID = re.compile(r"[A-Za-z0-9_-]+")
#: Actions are the schema's own, and have dots.
SAFE_ACTION = re.compile(r"[A-Za-z0-9_.-]+")
Say = Callable[[str], Reason]


@dataclass(frozen=True)
class Entities:
    """The entities of a slice, and on demand which of them each is in."""

    handle: cedarpy.Entities

    def above(self, uid: EntityUid) -> frozenset[EntityUid]:
        return self._above.get(uid, frozenset())

    @cached_property
    def _above(self) -> dict[EntityUid, frozenset[EntityUid]]:
        """Cedar writes all ancestors of an entity as its parents."""
        return {
            EntityUid(**entity["uid"]): frozenset(EntityUid(**parent) for parent in entity["parents"])
            for entity in json.loads(str(self.handle))
        }


def uid_text(uid: EntityUid, ids: re.Pattern[str] = SAFE_ID) -> str:
    """Returns a uid as the text that partial evaluation wants; raises `ValueRefused` for an id that could end its quotes."""
    if not ids.fullmatch(uid.id):
        raise ValueRefused("an id that has no plain spelling")
    return f'{uid.type}::"{uid.id}"'


def plan(
    bundle: Bundle,
    principal: EntityUid,
    action: str,
    context: str,
    policies: cedarpy.PolicySet,
    entities: cedarpy.Entities,
    *,
    resource: str,
    reason: Say,
    reader: Reader | None = None,
) -> Plan:
    """Returns what is left to be asked of resources of a type; `reason` gives that of a policy by its id.

    A `reader` of one's own knows more of the rows than their attributes say.
    """
    if resource not in bundle.vocabulary.resources.get(action, ()):
        return _deny(DenyKind.INVALID_REQUEST)
    try:
        request = {
            "principal": uid_text(principal),
            "action": uid_text(bundle.action_uids[action], SAFE_ACTION),
            "resource": None,
            "context": context,
        }
    except ValueRefused:
        return _deny(DenyKind.INVALID_REQUEST)
    answer = unless_it_panics(lambda: cedarpy.is_authorized_partial(request, policies, entities, bundle.schema))
    if answer is None:
        return _deny(DenyKind.EVALUATION_ERROR)
    # INVARIANT: every policy is among the residuals, the trivial ones too, unless the request is not valid; `decision`
    # says nothing of rows.
    if len(answer.residuals) != len(policies):
        return _deny(DenyKind.INVALID_REQUEST)
    # A forbid that errs on the principal or the context is left as `false`: after an error nothing is known of any row.
    if answer.diagnostics.errors or answer.diagnostics.unknown_entities:
        return _deny(DenyKind.EVALUATION_ERROR, errors=failed(answer.diagnostics.errors))
    reader = reader or Reader(bundle.vocabulary, resource, Entities(entities).above)
    permits: dict[str, Truth] = {}
    forbids: dict[str, Truth] = {}
    for id_, residual in answer.residuals.items():
        try:
            truth = reader.policy(residual)
        except Untranslatable:
            return _deny(DenyKind.EVALUATION_ERROR, errors=(id_,))
        (permits if residual["effect"] == "permit" else forbids)[id_] = truth
    return _joined(permits, forbids, reason)


def _joined(permits: dict[str, Truth], forbids: dict[str, Truth], say: Say) -> Plan:
    truths = {**permits, **forbids}
    erring = tuple(sorted(id_ for id_, truth in truths.items() if not truth.sure and some(truth.true, truth.false) == FALSE))
    if erring:
        return _deny(DenyKind.EVALUATION_ERROR, errors=erring)
    if holding := [id_ for id_, truth in forbids.items() if truth.true == TRUE]:
        return _deny(DenyKind.FORBIDDEN, *_said(holding, say))
    could = [id_ for id_, truth in permits.items() if truth.true != FALSE]
    if not could:
        return _deny(DenyKind.NOT_PERMITTED)
    condition = every(
        some(*(permits[id_].true for id_ in sorted(could))),
        *(negation(forbids[id_].true) for id_ in sorted(forbids)),
        *(some(truth.true, truth.false) for _, truth in sorted(truths.items()) if not truth.sure),
    )
    if weight(condition) > MAX_WEIGHT:  # which nothing goes through first
        return _deny(DenyKind.EVALUATION_ERROR)
    return Plan(Verdict(True, None, *_said(could, say), ()), gather(condition))


def _said(ids: list[str], say: Say) -> tuple[tuple[str, ...], tuple[Reason, ...]]:
    ordered = tuple(sorted(ids))
    return ordered, tuple([say(id_) for id_ in ordered])


def _deny(
    kind: DenyKind, policies: tuple[str, ...] = (), reasons: tuple[Reason, ...] = (), *, errors: tuple[str, ...] = ()
) -> Plan:
    return Plan(Verdict(False, kind, policies, reasons, errors), FALSE)
