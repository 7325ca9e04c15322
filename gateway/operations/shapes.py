"""Shapes: peers, observers and facts as the wire shows them."""

from __future__ import annotations

from derive.provenance import Entry, redact_for_agent
from gateway.model.caller import Caller
from gateway.model.records import Observer, Peer
from gateway.operations.call import Call
from gateway.operations.fields import optional_stamp, stamp
from gateway.store.facts import FactWithBasis


def peer_object(call: Call, peer: Peer) -> dict[str, object]:
    """A peer; of its observers only how many there are now."""
    return {
        "id": peer.id,
        "peer_type": peer.peer_type,
        "peer_ref": peer.peer_ref,
        "display_name": peer.display_name,
        "platform_connection_id": peer.connection_id,
        "profile": {},
        "status": "archived" if peer.archived else "active",
        "observer_count": len(call.state.live_observers(peer.id, call.now)),
        "created_at": stamp(peer.created_at),
    }


def observer_object(call: Call, entry: Observer) -> dict[str, object]:
    """One entry of an observer list, for the person and those who act for them."""
    agent = call.state.agents.get(entry.agent_id)
    return {
        "agent_id": entry.agent_id,
        "agent_name": None if agent is None else agent.name,
        "added_by": entry.added_by,
        "added_at": stamp(entry.added_at),
        "observer_expires_at": optional_stamp(entry.expires_at),
    }


def fact_object(fact: FactWithBasis, viewer: Caller) -> dict[str, object]:
    """A fact with its provenance, as this viewer sees it."""
    belief = fact.belief
    return {
        "fact_key": belief.fact_key,
        "fact_value": belief.fact_value,
        "confidence": belief.confidence,
        "provenance": _seen_by(viewer, fact.provenance),
        "edited_by_human": belief.edited_by_human,
        "disputed": belief.disputed,
        "updated_at": stamp(belief.updated_at),
    }


def _seen_by(viewer: Caller, entries: list[Entry]) -> list[Entry]:
    return redact_for_agent(entries, viewer.id) if viewer.type == "Agent" else entries
