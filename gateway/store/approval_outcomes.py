"""Outcomes of approvals: decided, cancelled or expired, each of them once."""

from __future__ import annotations

from datetime import datetime

from derive.buckets import is_action_type
from derive.events import Decision
from derive.recipients import read_recipient
from gateway.errors import Conflict
from gateway.model.caller import OPERATOR
from gateway.model.entity import EntityUid
from gateway.model.evidence import LogRow, audit_row
from gateway.model.grant import Grant
from gateway.model.records import Agent, ApprovalHeader
from gateway.store.approvals import Approval, approval, known_recipient
from gateway.store.events import observe_decision
from gateway.store.rows import Rows, Tx

DECIDE = """UPDATE approvals SET status = $2, decided_by = $3, decided_at = $4, decision_reason = $5
  WHERE id = $1 AND status = 'pending' AND expires_at > $4::TIMESTAMP"""
CANCEL = """UPDATE approvals SET status = 'cancelled', decision_reason = $2
  WHERE id = $1 AND status = 'pending' AND expires_at > $3::TIMESTAMP"""
PENDING_OF_AGENT = """SELECT id FROM approvals WHERE agent_id = $1 AND status = 'pending' AND expires_at > $2::TIMESTAMP
  ORDER BY id"""
DUE = """SELECT id, org_id, agent_id FROM approvals WHERE status = 'pending' AND expires_at <= $1::TIMESTAMP
  ORDER BY expires_at, id"""
EXPIRE = "UPDATE approvals SET status = 'expired' WHERE status = 'pending' AND expires_at <= $1::TIMESTAMP"


def check_pending(standing: Approval) -> None:
    """Refuse to decide what is not waiting any more.

    Raises:
        Conflict: with the status that holds.
    """
    if standing.status != "pending":
        raise Conflict(f"this approval is `{standing.status}`; only a pending one can be decided")


def decide(tx: Tx, grant: Grant[ApprovalHeader], *, decision: Decision, reason: str | None) -> Approval:
    """Decide a pending approval, and let the peers of the decider learn from it, in one transaction.

    Raises:
        Conflict: it is not pending: of many decisions at a time, the first is the one.
    """
    asked = approval(tx, grant)
    check_pending(asked)
    recipient = read_recipient(asked.payload)
    # Before the update, so that this decision is not its own history.
    known = recipient is not None and known_recipient(tx, asked.agent_id, recipient)
    tx.run(DECIDE, asked.id, decision, grant.caller.id, grant.now, reason)
    tx.append(grant.audit("approval.decided", {**_about(asked), "decision": decision, "risk_tier": asked.risk_tier}))
    # The gateway's own kinds of request are about authority, not about anything that happens twice.
    if is_action_type(asked.action):
        observe_decision(
            tx,
            grant,
            approval_id=asked.id,
            agent_id=asked.agent_id,
            decider_id=grant.caller.id,
            decision=decision,
            action=asked.action,
            payload=asked.payload,
            at=grant.now,
            known_recipient=known,
        )
    return approval(tx, grant)


def cancel(tx: Tx, grant: Grant[ApprovalHeader], *, reason: str | None) -> Approval:
    """Withdraw a pending approval; one that has an outcome keeps it."""
    asked = approval(tx, grant)
    if tx.run(CANCEL, asked.id, reason, grant.now):
        tx.append(grant.audit("approval.cancelled", _about(asked)))
    return approval(tx, grant)


def cancel_pending_of(tx: Tx, grant: Grant[Agent], agent_id: str) -> None:
    """Withdraw everything that an agent is waiting for."""
    for (approval_id,) in tx.all(PENDING_OF_AGENT, agent_id, grant.now):
        tx.run(CANCEL, approval_id, "the agent was deleted", grant.now)
        about = {"approval_id": approval_id, "agent_id": agent_id}
        tx.append(grant.audit("approval.cancelled", about, resource=EntityUid("Approval", approval_id)))


def expire_due(tx: Tx, now: datetime, *, bundle: str = "") -> int:
    """Write down the end of every approval that nobody decided in time, and return how many there were.

    No policy decided this and nobody asked for it, so the rows name the installation's own principal; `bundle` is the hash
    of the policies that were loaded.
    """
    due = tx.all(DUE, now)
    for approval_id, org_id, agent_id in due:
        tx.append(_expired(approval_id, org_id, agent_id, now, bundle))
    if due:
        tx.run(EXPIRE, now)
    return len(due)


def due(rows: Rows, now: datetime) -> bool:
    """Whether the sweep has anything to do."""
    return rows.one(DUE, now) is not None


def _about(asked: Approval) -> dict[str, object]:
    return {"approval_id": asked.id, "agent_id": asked.agent_id}


def _expired(approval_id: str, org_id: str, agent_id: str, now: datetime, bundle: str) -> LogRow:
    return audit_row(
        at=now,
        org_id=org_id,
        principal=OPERATOR.uid,
        action="approval.expired",
        resource=EntityUid("Approval", approval_id),
        details={"approval_id": approval_id, "agent_id": agent_id},
        bundle=bundle,
    )
