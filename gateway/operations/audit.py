"""Audit events, and the check that nobody changed the log behind our back."""

from __future__ import annotations

from gateway import limits
from gateway.operations.call import Call
from gateway.operations.fields import stamp
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import records as wire
from gateway.store import evidence
from gateway.store.evidence import EventFilter
from gateway.store.logged import Logged

SCHEME = {
    "algorithm": "SHA-256",
    "chain_structure": "one chain a data directory; each row's hash covers the row before it",
    "hash_field": "hash",
    "link_field": "seq",
    "documentation": "unkeyed, so that anyone who holds the rows can verify it: "
    "sha256(previous hash, newline, canonical JSON of the row)",
}


async def list_events(call: Call) -> Reply:
    """A page of audit events, each with its place and hash in the chain."""
    query = call.query
    actor = query.optional_text("actor_id", longest=limits.REF_CHARACTERS)
    which = EventFilter(
        actor=actor,
        action=query.optional_text("action", longest=limits.REF_CHARACTERS),
        resource=query.optional_text("resource_id", longest=limits.REF_CHARACTERS),
        since=query.optional_timestamp("from"),
        until=query.optional_timestamp("to"),
    )
    limit = query.count("limit", least=1, most=limits.AUDIT_PAGE, default=100)
    offset = query.count("offset", least=0, most=10**9, default=0)
    grant = call.access.authorize_first(call.session, ("audit.list", "audit.list_own"), call.org)
    own = call.session.caller.id if grant.action == "audit.list_own" else None
    page, total = await call.read(evidence.audit_events, grant, which, only_actor=own, limit=limit, offset=offset)
    return Reply({"events": [_shape(event, grant.target.id) for event in page], "count": len(page), "total": total})


async def verify(call: Call) -> Reply:
    """Walk a stretch of the chain."""
    query = call.query
    since, until = query.optional_timestamp("from"), query.optional_timestamp("to")
    limit = query.count("limit", least=1, most=limits.AUDIT_VERIFY, default=1_000)
    grant = call.access.authorize(call.session, "audit.verify", call.org)
    found = await call.read(evidence.verify_chain, grant, since=since, until=until, limit=limit)
    return Reply(
        {
            "chain_valid": found.valid,
            "events_verified": found.verified,
            "events_checked": found.checked,
            "broken_at_event_id": found.broken_at,
            "scheme": SCHEME,
        }
    )


def _shape(event: Logged, org_id: str) -> dict[str, object]:
    """An event under both pairs of names that clients of this wire read."""
    return {
        "id": event.id,
        "action": event.action,
        "actor_id": event.principal_id,
        "actor_type": event.principal_type.lower(),
        "resource_type": event.resource_type.lower(),
        "resource_id": event.resource_id,
        "org_id": org_id,
        "details": event.details,
        "metadata": event.details,
        "created_at": stamp(event.at),
        "timestamp": stamp(event.at),
        "seq": event.seq,
        "hash": event.hash,
    }


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "audit.list",
        "GET",
        "/v1/audit/events",
        "List audit events of the organisation, newest first; agents and members see their own.",
        list_events,
        actions=("audit.list", "audit.list_own"),
        query=wire.EVENTS_ASKED,
        answers={200: wire.EVENTS},
    ),
    Operation(
        "audit.verify",
        "GET",
        "/v1/audit/verify",
        "Verify the hash chain of the log, newest rows first.",
        verify,
        actions=("audit.verify",),
        query=wire.VERIFIED,
        answers={200: wire.VERIFICATION},
    ),
)
