"""Approvals: what an agent asked a human for, as it was asked, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.errors import NotFound
from gateway.model.grant import Grant
from gateway.model.records import ApprovalHeader, Org, PlatformConnection
from gateway.store.canonical import canonical
from gateway.store.loading import parse_json
from gateway.store.rows import Rows, Tx

#: A pending approval whose end has come is expired for every reader, also before the sweep writes it down. $1 is now.
STATUS = "CASE WHEN status = 'pending' AND expires_at <= $1::TIMESTAMP THEN 'expired' ELSE status END"
COLUMNS = f"""id, org_id, agent_id, user_id, connection_id, action, target_type, target_id, risk_tier, declared_risk_tier,
  {STATUS} AS standing, human_summary, payload_hash, reason, decision_reason, decided_by, decided_at, created_at, expires_at,
  summary, payload, understood"""

#: A change of policy is asked for by a human: the agent it is about has not requested it and cannot withdraw it.
HEADER = """SELECT id, org_id, CASE WHEN action <> 'policy_change' THEN agent_id END, asked_by, user_id, connection_id, risk_tier
  FROM approvals WHERE id = $1"""
KNOWN_RECIPIENT = """SELECT 1 FROM approvals WHERE agent_id = $1 AND recipient = $2 AND status = 'approved'
  AND decided_at IS NOT NULL AND ($3::TIMESTAMP IS NULL OR decided_at < $3::TIMESTAMP) LIMIT 1"""
ONE = f"SELECT {COLUMNS} FROM approvals WHERE id = $2"  # noqa: S608  # constants only
INSERT = """INSERT INTO approvals (id, org_id, agent_id, user_id, connection_id, action, target_type, target_id, risk_tier,
  declared_risk_tier, status, summary, human_summary, payload, payload_hash, understood, recipient, reason, decision_reason,
  decided_by, decided_at, created_at, expires_at, asked_by)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)"""

_LISTED = f"($3::VARCHAR IS NULL OR {STATUS} = $3)"
_WHOSE = {
    "addressee": "user_id = $2",
    "requester": "agent_id = $2 AND action <> 'policy_change'",
    "connection": "connection_id = $2",
    "org": "org_id = $2",
}
PAGES = {
    whose: f"SELECT {COLUMNS} FROM approvals WHERE {owned} AND {_LISTED} ORDER BY created_at DESC, id LIMIT $4 OFFSET $5"  # noqa: S608  # constants only
    for whose, owned in _WHOSE.items()
}
TOTALS = {
    whose: f"SELECT count(*) FROM approvals WHERE {owned} AND {_LISTED}"  # noqa: S608  # constants only
    for whose, owned in _WHOSE.items()
}


@dataclass(frozen=True, slots=True)
class Approval:
    """One request with its content. `status` is what holds at the time of reading."""

    id: str
    org_id: str
    agent_id: str
    user_id: str
    connection_id: str | None
    action: str
    target_type: str
    target_id: str
    risk_tier: int
    declared_risk_tier: int | None
    status: str
    human_summary: str | None
    payload_hash: str
    reason: str | None
    decision_reason: str | None
    decided_by: str | None
    decided_at: datetime | None
    created_at: datetime
    expires_at: datetime
    summary: str | Mapping[str, object]
    payload: Mapping[str, object]
    understood: Mapping[str, object]


def header(rows: Rows, approval_id: str) -> ApprovalHeader | None:
    """What a decision about an approval needs of it: the one read that comes before a grant. No content."""
    found = rows.one(HEADER, approval_id)
    return None if found is None else ApprovalHeader(*found)


def known_recipient(rows: Rows, agent_id: str, recipient: str, before: datetime | None = None) -> bool:
    """Whether this agent has an approved approval to the same recipient, decided before `before`; None is so far."""
    return rows.one(KNOWN_RECIPIENT, agent_id, recipient, before) is not None


def load(rows: Rows, approval_id: str, now: datetime) -> Approval | None:
    """An approval whole, for the other functions of the store."""
    found = rows.one(ONE, now, approval_id)
    return None if found is None else _approval(found)


def approval(rows: Rows, grant: Grant[ApprovalHeader]) -> Approval:
    """The granted approval.

    Raises:
        NotFound: it was erased since the decision.
    """
    found = load(rows, grant.target.id, grant.now)
    if found is None:
        raise NotFound
    return found


def page(
    rows: Rows, grant: Grant[Org] | Grant[PlatformConnection], *, status: str | None, limit: int, offset: int
) -> tuple[list[Approval], int]:
    """A page of the approvals that the grant covers, newest first, and how many there are.

    What is covered follows from the granted action alone, so no argument of a caller can widen it.
    """
    match grant.action, grant.caller.type:
        case "approval.list", _:
            whose, of = "org", grant.target.id
        case "approval.list_own", "Human":
            whose, of = "addressee", grant.caller.id
        case "approval.list_own", "Agent":
            whose, of = "requester", grant.caller.id
        case "platform.list_approvals", _:
            whose, of = "connection", grant.target.id
        case action, kind:
            raise AssertionError(f"`{action}` of `{kind}` lists no approvals")
    found = rows.all(PAGES[whose], grant.now, of, status, limit, offset)
    grant.note(served=len(found))
    return [_approval(row) for row in found], rows.value(TOTALS[whose], grant.now, of, status)


def insert(tx: Tx, asked: Approval, *, recipient: str | None, asked_by: str | None = None) -> None:
    """Write the row of a request; `asked_by` is the human who wants it, where it is not the agent's own."""
    tx.run(
        INSERT,
        asked.id,
        asked.org_id,
        asked.agent_id,
        asked.user_id,
        asked.connection_id,
        asked.action,
        asked.target_type,
        asked.target_id,
        asked.risk_tier,
        asked.declared_risk_tier,
        asked.status,
        canonical(asked.summary),
        asked.human_summary,
        canonical(asked.payload),
        asked.payload_hash,
        canonical(asked.understood),
        recipient,
        asked.reason,
        asked.decision_reason,
        asked.decided_by,
        asked.decided_at,
        asked.created_at,
        asked.expires_at,
        asked_by,
    )


def _approval(row: tuple[Any, ...]) -> Approval:
    *plain, summary, payload, understood = row
    return Approval(*(*plain, parse_json(summary), parse_json(payload), parse_json(understood)))
