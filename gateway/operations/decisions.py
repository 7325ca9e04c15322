"""The decision log as security teams and auditors read it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from gateway import limits
from gateway.operations.call import Call, Services
from gateway.operations.explanation import explain_recorded
from gateway.operations.fields import is_id, stamp
from gateway.operations.operation import Operation, Reply
from gateway.operations.operator import as_operator, put_down
from gateway.operations.replay import bundle_of
from gateway.operations.wire import records as wire
from gateway.store import evidence, replaying
from gateway.store.entities import Installation, LogEntry, Missing
from gateway.store.evidence import DecisionFilter
from gateway.store.logged import Logged


async def list_decisions(call: Call) -> Reply:
    """A page of decisions that match every condition of the query, newest first."""
    query = call.query
    which = DecisionFilter(
        principal=query.optional_text("principal", longest=limits.REF_CHARACTERS),
        action=query.optional_text("action", longest=limits.REF_CHARACTERS),
        resource=query.optional_text("resource", longest=limits.REF_CHARACTERS),
        outcome=query.optional_choice("decision", ("allow", "deny")),
        deny_kind=query.optional_choice("deny_kind", wire.DENY_KINDS),
        policy=query.optional_text("policy", longest=limits.REF_CHARACTERS),
        since=query.optional_timestamp("from"),
        until=query.optional_timestamp("to"),
    )
    limit = query.count("limit", least=1, most=limits.PAGE, default=50)
    offset = query.count("offset", least=0, most=10**9, default=0)
    grant = call.access.authorize(call.session, "decision.list", call.org)
    page, total = await call.read(evidence.decisions, grant, which, limit=limit, offset=offset)
    return Reply({"decisions": [shape_of(entry) for entry in page], "total": total})


async def read_decision(call: Call) -> Reply:
    """One decision, explained."""
    target = await _target(call, call.path["decision_id"])
    grant = call.access.authorize(call.session, "decision.read", target)
    logged = await call.read(evidence.decision, grant, grant.target.id)
    page = await call.read(replaying.answers, grant, logged)
    deciding = partial(bundle_of, call.services, grant)
    explanation = await asyncio.to_thread(explain_recorded, call.services, page, deciding)
    return Reply({"decision": {**shape_of(logged), "explanation": explanation}})


async def explain_data(services: Services, decision_id: str) -> dict[str, Any]:
    """As the operator, what `read_decision` answers, of a decision of any organisation.

    Raises:
        NotFound: it is not in the log.
    """
    async with as_operator(services) as session:
        grant = services.access.authorize(session, "admin.take_evidence", Installation())
        await put_down(services, session)
        logged = await services.database.read(lambda rows: evidence.decision(rows, grant, decision_id))
        page = await services.database.read(lambda rows: replaying.answers(rows, grant, logged))
        explanation = await asyncio.to_thread(explain_recorded, services, page, partial(bundle_of, services, grant))
    return {**shape_of(logged), "explanation": explanation}


async def _target(call: Call, decision_id: str) -> LogEntry | Missing:
    if not is_id(decision_id):
        return Missing("Decision", "-")
    org_id = await call.services.database.read(lambda rows: evidence.decision_org(rows, decision_id))
    if org_id != call.session.caller.org_id:
        return Missing("Decision", decision_id)
    return LogEntry(decision_id, org_id)


def shape_of(entry: Logged) -> dict[str, object]:
    """A decision as the wire shows it."""
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


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "decision.list",
        "GET",
        "/v1/decisions",
        "List decisions of the organisation, newest first.",
        list_decisions,
        actions=("decision.list",),
        query=wire.DECISIONS_ASKED,
        strict=True,
        answers={200: wire.DECISIONS},
    ),
    Operation(
        "decision.read",
        "GET",
        "/v1/decisions/{decision_id}",
        "Show one decision with its explanation.",
        read_decision,
        actions=("decision.read",),
        strict=True,
        answers={200: wire.DECISION},
    ),
)
