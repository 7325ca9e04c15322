"""Acts for these tests, and for each tool arguments that it takes."""

from __future__ import annotations

from collections.abc import Mapping

from tests.builders import Client, done

PAYLOAD = {"amount_usd": "5.00", "recipient": "a@b.example"}
REQUEST = {"action": "refund.create", "target_type": "order", "target_id": "1", "summary": "a refund", "payload": PAYLOAD}


def learn(agent: Client, peer_id: str, action: str = "refund.create") -> None:
    """Three approvals outside the gateway, from which a fact is made."""
    for _ in range(3):
        content = {"action": action, "decision": "approved", "payload": PAYLOAD}
        done(agent.post(f"/v1/peers/{peer_id}/events", {"event_type": "approval", "content": content}), 201)


def samples(peer_id: str, approval_id: str, memory_id: str) -> Mapping[str, dict[str, object]]:
    """Every tool with the arguments that it needs."""
    return {
        "get_peer_context": {},
        "record_event": {"peer_id": peer_id, "event_type": "message", "content": {"text": "hello"}},
        "predict_approval": {"peer_id": peer_id, "action_type": "refund.create"},
        "request_approval": {**REQUEST},
        "get_approval_status": {"approval_id": approval_id},
        "list_approvals": {},
        "cancel_approval": {"approval_id": approval_id},
        "remember": {"text": "tea at four", "project_id": "alpha"},
        "memory_search": {"query": "tea"},
        "memory_read": {"memory_id": memory_id},
        "memory_query": {"query": "tea", "project_id": "alpha"},
    }
