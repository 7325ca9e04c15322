"""A person's data: exported whole, or erased whole."""

from __future__ import annotations

from dataclasses import replace

from gateway.operations.call import Call
from gateway.operations.confirmation import confirm
from gateway.operations.fields import stamp
from gateway.operations.operation import Operation, Reply
from gateway.operations.shapes import observer_object, peer_object
from gateway.operations.wire import peers as wire
from gateway.store import erasure
from gateway.store.erasure import ExportedEvent, ExportedFact, PersonData

NOTE = (
    "This is everything that is kept under this peer, and what DELETE /v1/peers/{id}/data removes. Approvals and the log of "
    "decisions are the organisation's own records and name the peer by its id only."
)


async def export(call: Call) -> Reply:
    """Everything that is kept about a person, for the person."""
    grant = call.access.authorize(call.session, "peer.export", call.peer(call.path["id"]))
    await confirm(call, "peer.export", totp="when enrolled")
    # Not on the writer, where every change would wait for it; one snapshot, so that all of it is of one moment.
    data = await call.services.database.read(lambda rows: erasure.export_person(rows, grant), snapshot=True)
    grant.note(kind="export", facts_served=len(data.facts))
    counted = {"facts": len(data.facts), "observations": len(data.events)}
    call.session.answer_rows.append(grant.audit("peer.exported", counted))
    return Reply({"peer": peer_object(call, grant.target), **_exported(call, data), "note": NOTE})


async def erase(call: Call) -> Reply:
    """Delete everything that is kept about a person."""
    grant = call.access.authorize(call.session, "peer.erase", call.peer(call.path["id"]))
    await confirm(call, "peer.erase", totp="when enrolled")
    # The slice of this very decision would name who is erased: it is not kept either.
    call.session.rows = [replace(row, slice_bodies={}) for row in call.session.rows]
    erased = await call.write_alone(erasure.erase_person, grant, grant.target)
    return Reply({"deleted": True, "facts_deleted": erased.facts, "observations_deleted": erased.events})


def _exported(call: Call, data: PersonData) -> dict[str, object]:
    pending = [{"fact_key": key, "since": stamp(since)} for key, since in data.pending]
    removed = [{"agent_id": agent_id, "removed_at": stamp(at)} for agent_id, at in data.removed_observers]
    suppressed = [{"fact_key": each.fact_key, "at": stamp(each.at), "by": each.by} for each in data.suppressions]
    return {
        "facts": [_fact(fact) for fact in data.facts],
        "raw_observations": [_event(event) for event in data.events],
        "suppressions": suppressed,
        "observers": [observer_object(call, entry) for entry in data.observers],
        "removed_observers": removed,
        "pending_derivations": pending,
    }


def _fact(fact: ExportedFact) -> dict[str, object]:
    return {
        "fact_key": fact.fact_key,
        "fact_value": fact.fact_value,
        "confidence": fact.confidence,
        "why_we_believe_this": fact.provenance,
        "corrected_by_a_human": fact.edited_by_human,
        "believed": fact.live,
        "disputed": fact.disputed,
        "replaced": fact.replaced,
        "updated_at": stamp(fact.updated_at),
    }


def _event(event: ExportedEvent) -> dict[str, object]:
    return {
        "event_id": event.id,
        "event_type": event.event_type,
        "content": event.content,
        "at": stamp(event.at),
        "source": event.source,
        "fact_key": event.fact_key,
        "decision": event.decision,
        "learned": event.learned,
    }


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "peer.export",
        "GET",
        "/v1/peers/{id}/export",
        "Export everything that is kept about a person.",
        export,
        actions=("peer.export",),
        answers={200: wire.EXPORT},
        confirmed=True,
    ),
    Operation(
        "peer.erase",
        "DELETE",
        "/v1/peers/{id}/data",
        "Erase everything that is kept about a person.",
        erase,
        actions=("peer.erase",),
        answers={200: wire.ERASED},
        confirmed=True,
    ),
)
