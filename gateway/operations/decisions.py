"""The decision log as security teams and auditors read it."""

from __future__ import annotations

from gateway import limits
from gateway.operations.call import Call
from gateway.operations.fields import is_id, stamp
from gateway.operations.operation import Operation, Reply
from gateway.store import evidence
from gateway.store.entities import LogEntry, Missing
from gateway.store.evidence import DecisionFilter, Logged

DENY_KINDS = ("forbidden", "not_permitted", "evaluation_error", "invalid_request", "stale", "deadline", "paused")


async def list_decisions(call: Call) -> Reply:
    """A page of decisions that match every condition of the query, newest first."""
    query = call.query
    which = DecisionFilter(
        principal=query.optional_text("principal", longest=limits.REF_CHARACTERS),
        action=query.optional_text("action", longest=limits.REF_CHARACTERS),
        resource=query.optional_text("resource", longest=limits.REF_CHARACTERS),
        outcome=query.optional_choice("decision", ("allow", "deny")),
        deny_kind=query.optional_choice("deny_kind", DENY_KINDS),
        policy=query.optional_text("policy", longest=limits.REF_CHARACTERS),
        since=query.optional_timestamp("from"),
        until=query.optional_timestamp("to"),
    )
    limit = query.count("limit", least=1, most=limits.PAGE, default=50)
    offset = query.count("offset", least=0, most=10**9, default=0)
    grant = call.access.authorize(call.session, "decision.list", call.org)
    page, total = await call.read(evidence.decisions, grant, which, limit=limit, offset=offset)
    return Reply({"decisions": [_shape(entry) for entry in page], "total": total})


async def read_decision(call: Call) -> Reply:
    """One decision, explained."""
    target = await _target(call, call.path["decision_id"])
    grant = call.access.authorize(call.session, "decision.read", target)
    logged = await call.read(evidence.decision, grant)
    return Reply({"decision": {**_shape(logged), "explanation": _explain(call, logged)}})


async def _target(call: Call, decision_id: str) -> LogEntry | Missing:
    if not is_id(decision_id):
        return Missing("Decision", "-")
    org_id = await call.services.database.read(lambda rows: evidence.decision_org(rows, decision_id))
    if org_id != call.session.caller.org_id:
        return Missing("Decision", decision_id)
    return LogEntry(decision_id, org_id)


def _shape(entry: Logged) -> dict[str, object]:
    return {
        "id": entry.id,
        "seq": entry.seq,
        "at": stamp(entry.at),
        "principal": {"type": entry.principal_type, "id": entry.principal_id},
        "action": entry.action,
        "resource": {"type": entry.resource_type, "id": entry.resource_id},
        "decision": entry.outcome,
        "deny_kind": entry.deny_kind,
        "policies": entry.policies,
        "bundle": entry.bundle,
        "data_version": entry.data_version,
        "slices": entry.slices,
        "request_id": entry.request_id,
        "details": entry.details,
    }


def _explain(call: Call, entry: Logged) -> dict[str, object]:
    """Why: the determining policies with their sentences and places, as the deciding bundle has them."""
    bundle = call.access.engines.of(call.org.id).bundle
    if entry.bundle != bundle.hash:
        return {"reasons": [{"policy_id": policy} for policy in entry.policies], "note": "decided by an earlier bundle"}
    found = [bundle.policies[policy] for policy in entry.policies]
    reasons = [
        {
            "policy_id": info.id,
            "effect": info.effect,
            "reason": info.reason,
            "reason_code": info.reason_code,
            "file": info.file,
            "line": info.line,
        }
        for info in found
    ]
    note = "no policy permits this" if entry.deny_kind == "not_permitted" else None
    return {"reasons": reasons, "note": note}


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "decision.list",
        "GET",
        "/v1/decisions",
        "List decisions of the organisation, newest first.",
        list_decisions,
        actions=("decision.list",),
        query=("principal", "action", "resource", "decision", "deny_kind", "policy", "from", "to", "limit", "offset"),
        strict=True,
    ),
    Operation(
        "decision.read",
        "GET",
        "/v1/decisions/{decision_id}",
        "Show one decision with its explanation.",
        read_decision,
        actions=("decision.read",),
        strict=True,
    ),
)
