"""Deciding and withdrawing approvals."""

from __future__ import annotations

from derive.events import Decision, decision_of
from gateway import limits
from gateway.errors import Forbidden
from gateway.model.grant import Grant
from gateway.model.records import ApprovalHeader
from gateway.operations.approval_shape import shape, target
from gateway.operations.call import Call
from gateway.operations.confirmation import confirm
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import approvals as wire
from gateway.operations.wire.approvals import WORDS
from gateway.store import approval_outcomes, approvals
from gateway.store.entities import Missing


async def decide(call: Call) -> Reply:
    decision = decision_of(call.body.members.get("decision"))
    if decision is None:
        raise call.body.wrong("decision", f"one of {', '.join(WORDS)}")
    return await _decide(call, decision)


async def approve(call: Call) -> Reply:
    return await _decide(call, "approved")


async def deny(call: Call) -> Reply:
    return await _decide(call, "rejected")


async def _decide(call: Call, decision: Decision) -> Reply:
    reason = call.body.optional_text("reason", longest=limits.TEXT_CHARACTERS)
    grant = _authorized(call, await target(call, call.path["approval_id"]))
    # Before the second factor, so that a single-use proof is not spent on what cannot be decided any more.
    approval_outcomes.check_pending(await call.read(approvals.approval, grant))
    if grant.target.risk_tier >= 2:
        await confirm(call, "approval.decide", totp="required" if grant.target.risk_tier == 3 else "no")
    return Reply(shape(await call.write(approval_outcomes.decide, grant, decision=decision, reason=reason)))


def _authorized(call: Call, about: ApprovalHeader | Missing) -> Grant[ApprovalHeader]:
    """The grant to decide. To a human who may not even read an approval, there is none."""
    try:
        return call.access.authorize(call.session, "approval.decide", about)
    except Forbidden:
        if call.session.caller.type == "Human":
            call.access.authorize(call.session, "approval.read", about, hide=True)
        raise


async def cancel(call: Call) -> Reply:
    reason = call.body.optional_text("reason", longest=limits.TEXT_CHARACTERS)
    about = await target(call, call.path["approval_id"])
    grant = call.access.authorize(call.session, "approval.cancel", about, hide=call.session.caller.type == "Human")
    return Reply(shape(await call.write(approval_outcomes.cancel, grant, reason=reason)))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "approval.decide",
        "POST",
        "/v1/approvals/{approval_id}/decide",
        "Approve or reject an approval that is pending.",
        decide,
        actions=("approval.decide", "approval.read"),
        fields=wire.DECIDED,
        answers={200: wire.APPROVAL},
        confirmed=True,
    ),
    Operation(
        "approval.approve",
        "POST",
        "/v1/approvals/{approval_id}/approve",
        "Approve an approval, at the address that some clients use.",
        approve,
        actions=("approval.decide", "approval.read"),
        fields=wire.REASON,
        answers={200: wire.APPROVAL},
        confirmed=True,
    ),
    Operation(
        "approval.deny",
        "POST",
        "/v1/approvals/{approval_id}/deny",
        "Reject an approval, at the address that some clients use.",
        deny,
        actions=("approval.decide", "approval.read"),
        fields=wire.REASON,
        answers={200: wire.APPROVAL},
        confirmed=True,
    ),
    Operation(
        "approval.cancel",
        "POST",
        "/v1/approvals/{approval_id}/cancel",
        "Withdraw an approval; one that has an outcome keeps it.",
        cancel,
        actions=("approval.cancel",),
        fields=wire.REASON,
        answers={200: wire.APPROVAL},
    ),
)
