"""Approvals on the wire."""

from __future__ import annotations

from gateway import limits
from gateway.operations.schema import (
    COUNT,
    FLAG,
    ID,
    OBJECT,
    TEXT,
    TIME,
    Maybe,
    Members,
    choice,
    either,
    members,
    or_null,
    shape,
    some,
    text,
    unset,
)
from gateway.operations.wire.agents import ASKABLE, TIER, UNDERSTOOD_MEMBERS
from gateway.operations.wire.pages import page

SUMMARY_CHARACTERS = 2_000
KIND_CHARACTERS = 64
STATUSES = ("pending", "approved", "rejected", "expired", "cancelled")
#: The decision words of the published clients and guides.
WORDS = ("approve", "approved", "reject", "rejected", "deny", "denied")

_LINE = unset(text(SUMMARY_CHARACTERS, 0))
_SUMMARY = members({"title": _LINE, "body": _LINE, "fields": unset(some(OBJECT, limits.PAGE))})
_REASON = unset(text(limits.TEXT_CHARACTERS, 0))
REASON: Members = {"reason": _REASON}
REQUEST: Members = {
    "action": ASKABLE,
    "target_type": text(KIND_CHARACTERS),
    "target_id": text(limits.REF_CHARACTERS),
    "summary": either(text(SUMMARY_CHARACTERS), _SUMMARY),
    "payload": unset(OBJECT),
    "reason": _REASON,
    "declared_risk_tier": unset(TIER),
    "risk_tier": unset(TIER),
}
DECIDED: Members = {"decision": choice(*WORDS), "reason": _REASON}
_STATUS = Maybe(choice(*STATUSES, "denied"))
LISTED: Members = {"status": _STATUS, **page()}
QUEUE: Members = {"status": _STATUS, "scope": Maybe(choice("own", "org")), **page()}

#: Of a change of rules that waits, also which one it is, and when it was made.
_UNDERSTOOD = shape("UnderstoodRequest", **UNDERSTOOD_MEMBERS, revision_id=Maybe(ID), applied_at=Maybe(or_null(TIME)))
APPROVAL = shape(
    "Approval",
    id=ID,
    org_id=ID,
    user_id=ID,
    agent_id=ID,
    connection_id=or_null(ID),
    action=TEXT,
    target_type=TEXT,
    target_id=TEXT,
    risk_tier=TIER,
    declared_risk_tier=or_null(TIER),
    declared_below_floor=FLAG,
    status=choice(*STATUSES),
    summary=or_null(either(TEXT, OBJECT)),
    human_summary=or_null(TEXT),
    payload=or_null(OBJECT),
    payload_hash=TEXT,
    understood=or_null(_UNDERSTOOD),
    reason=or_null(TEXT),
    decision_reason=or_null(TEXT),
    decided_by=or_null(ID),
    decided_at=or_null(TIME),
    created_at=TIME,
    expires_at=TIME,
)
APPROVALS = shape(approvals=some(APPROVAL), total=COUNT)
STATUS = shape(status=choice(*STATUSES), expires_at=TIME)
