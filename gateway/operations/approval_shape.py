"""What the wire shows of an approval, and how its path names one."""

from __future__ import annotations

from gateway.model.records import ApprovalHeader
from gateway.operations.call import Call
from gateway.operations.fields import Fields, is_id, optional_stamp, stamp
from gateway.operations.wire.approvals import STATUSES
from gateway.store import approvals
from gateway.store.approvals import Approval
from gateway.store.entities import Missing


def shape(asked: Approval) -> dict[str, object]:
    """An approval as clients of this wire read it."""
    declared = asked.declared_risk_tier
    return {
        "id": asked.id,
        "org_id": asked.org_id,
        "user_id": asked.user_id,
        "agent_id": asked.agent_id,
        "connection_id": asked.connection_id,
        "action": asked.action,
        "target_type": asked.target_type,
        "target_id": asked.target_id,
        "risk_tier": asked.risk_tier,
        "declared_risk_tier": declared,
        # The tier is the greater of the declared and the derived one, so a declared one below it was below the floor.
        "declared_below_floor": declared is not None and declared < asked.risk_tier,
        "status": asked.status,
        "summary": asked.summary,
        "human_summary": asked.human_summary,
        "payload": asked.payload,
        "payload_hash": asked.payload_hash,
        "understood": asked.understood,
        "reason": asked.reason,
        "decision_reason": asked.decision_reason,
        "decided_by": asked.decided_by,
        "decided_at": optional_stamp(asked.decided_at),
        "created_at": stamp(asked.created_at),
        "expires_at": stamp(asked.expires_at),
    }


async def target(call: Call, approval_id: str) -> ApprovalHeader | Missing:
    """The approval of the caller's own organisation that a path names; another's is the same as none."""
    if not is_id(approval_id):
        return Missing("Approval", "-")
    found = await call.services.database.read(lambda rows: approvals.header(rows, approval_id))
    if found is None or found.org_id != call.session.caller.org_id:
        return Missing("Approval", approval_id)
    return found


def status_filter(query: Fields) -> str | None:
    """The status to list; one client says denied for rejected."""
    status = query.optional_choice("status", (*STATUSES, "denied"))
    return "rejected" if status == "denied" else status
