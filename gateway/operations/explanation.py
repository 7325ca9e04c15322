"""Explanations: why a recorded decision was taken, under the policies that took it, as every surface shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.model.recorded import Recorded, RecordedPage
from gateway.operations.call import Services
from gateway.operations.fields import is_id
from gateway.policy import redaction
from gateway.policy.bundle import Bundle
from gateway.policy.explain import Cited, Explanation, Nearest, cite
from gateway.policy.grants import RESERVED
from gateway.policy.organisation import stored_id
from gateway.policy.retake import retake

BundleOf = Callable[[str], Bundle | None]

#: What each kind of denial means.
NOTES = {
    "forbidden": "a forbid holds, and wins over every permit",
    "not_permitted": "no policy permits this",
    "evaluation_error": "a policy could not be evaluated, so nothing is allowed",
    "invalid_request": "the request does not fit the schema, or something that it names was not there: Cedar was not asked",
    "stale": "Cedar allowed it, and what that rested on changed before the answer: the gateway withdrew it",
    "deadline": "Cedar allowed it, and the answer came too late: the gateway withdrew it",
    "paused": "the person has paused reading: to the caller it looked like an empty history",
}
#: Why an explanation is of the record alone.
MISSING = {
    "withdrawn": "no policy caused this, so there is nothing to decide again",
    "not_asked": "Cedar was not asked, so there is nothing to decide again",
    "erased": "the entities that it was decided over were erased since; this is what the record holds",
    "never_kept": "the labels of a row that was denied are kept nowhere; this is what the record holds",
    "unreadable": "the record was changed after it was written, and cannot be read; verify the log",
    "not_recorded": "the record does not hold what was asked; this is what it does hold",
    "grant_unknown": "a grant that decided is not kept any more; this is what the record holds",
    "other_schema": "the entities do not fit the schema of the policies that decided; this is what the record holds",
    "differs": "decided again, the answer is another one than the recorded; this is what the record holds",
    "bundle_gone": "the policies that decided are not kept any more; this is what the record holds",
}


def explain_recorded(services: Services, page: RecordedPage, deciding: BundleOf) -> dict[str, Any]:
    """The explanation of the first answer of a page, decided again under the bundle that decided.

    It parses policies when they are not those of now: not for the event loop. `missing` says why it is of the record alone,
    and is None when it is whole.
    """
    row = page.rows[0]
    bundle = _standing(services, row) or deciding(row.bundle)
    found = "bundle_gone" if bundle is None else retake(bundle, row, page.bodies, services.state.memory_grants)
    missing = MISSING[found] if isinstance(found, str) else None
    whole = _of_record(bundle, row) if isinstance(found, str) else found
    names = {policy.id: policy.name for policy in list(services.state.org_policies.values()) if policy.org_id == row.org_id}
    made = shape(whole, names=names, redacted=True)
    return {**made, "deny_kind": row.deny_kind, "note": _note(row), "missing": missing}


def shape(found: Explanation, *, names: Mapping[str, str], redacted: bool) -> dict[str, Any]:
    """An explanation as every surface shows it; `names` are those of the organisation's policies, by stored id.

    `redacted` keeps back what a person chose as a label, and says of which paths.
    """
    return {
        "deny_kind": found.deny_kind,
        "reasons": [_cited(cited, names) for cited in found.policies],
        "errors": [_cited(cited, names) for cited in found.errors],
        "nearest": None if found.nearest is None else _nearest(found.nearest, names, redacted=redacted),
    }


def _standing(services: Services, row: Recorded) -> Bundle | None:
    """The bundle that decided, when it still does."""
    engines = services.access.engines
    return next((b for b in (engines.of(row.org_id).bundle, engines.base.bundle) if b.hash == row.bundle), None)


def _of_record(bundle: Bundle | None, row: Recorded) -> Explanation:
    policies, errors = ([cite(bundle, id_) for id_ in ids] for ids in (row.policies or (), row.errors))
    return Explanation(row.allowed, None, tuple(policies), tuple(errors), None)


def _note(row: Recorded) -> str | None:
    if row.planned is None:
        return None if row.deny_kind is None else NOTES[row.deny_kind]
    if row.allowed:
        return f"a listing: these are left to decide each row of `{row.planned}`, and each was decided by itself"
    return f"a listing: whatever the row of `{row.planned}`, {NOTES[row.deny_kind or 'not_permitted']}"


def _cited(cited: Cited, names: Mapping[str, str]) -> dict[str, object]:
    """A policy with where it is: in a file of the product's policies, in the text of one of the organisation's, or in a grant."""
    origin, owner = _origin(cited.policy_id)
    return {
        "policy_id": cited.policy_id,
        "effect": cited.effect or None,
        "reason": cited.reason or None,
        "reason_code": cited.code,
        "precedence": cited.precedence,
        "origin": origin,
        "organisation_policy": None if owner is None else {"id": owner, "name": names.get(owner)},
        "file": None if owner is not None else cited.file or None,
        "line": cited.line or None,
    }


def _origin(policy_id: str) -> tuple[str, str | None]:
    owner = stored_id(policy_id)
    if owner is not None and is_id(owner):
        return "organisation", owner
    if RESERVED.fullmatch(policy_id):
        return "grant", None
    return "guardrail" if policy_id.startswith("guardrails/") else "policy", None


def _nearest(near: Nearest, names: Mapping[str, str], *, redacted: bool) -> dict[str, object]:
    unmet, policy = near.unmet, _cited(near.policy, names)
    values, hidden = redaction.split(unmet.values) if redacted else (dict(unmet.values), ())
    return {
        "policy": policy,
        "lacking": near.lacking,
        "unmet": {
            "text": redaction.unlabelled(unmet.text) if redacted and policy["origin"] == "grant" else unmet.text,
            "file": policy["file"],
            "line": unmet.line or None,
            "reads": list(unmet.reads),
            "values": values,
            "redacted": list(hidden),
            "erred": unmet.erred,
        },
    }
