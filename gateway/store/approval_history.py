"""What an agent has asked for so far, as it was asked: to be read again under other rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.model.grant import Grant
from gateway.model.records import Org
from gateway.store.approvals import STATUS
from gateway.store.loading import parse_json
from gateway.store.rows import Rows

#: A change of policy is no request of its agent. Of a recipient counts what was known when the request was made.
COLUMNS = f"""a.id, a.action, a.declared_risk_tier, {STATUS},
  a.decided_at, EXISTS (SELECT 1 FROM approvals k WHERE k.agent_id = a.agent_id AND k.recipient = a.recipient
    AND k.status = 'approved' AND k.decided_at < a.created_at), a.payload"""  # noqa: S608  # constants only
_WHOSE = {"org": "a.org_id = $3", "addressee": "a.user_id = $3", "requester": "a.agent_id = $3"}
HISTORY = {
    whose: f"""SELECT {COLUMNS} FROM approvals a WHERE a.agent_id = $2 AND a.action <> 'policy_change' AND {owned}
  ORDER BY a.created_at DESC, a.id LIMIT $4"""  # noqa: S608  # constants only
    for whose, owned in _WHOSE.items()
}


@dataclass(frozen=True, slots=True)
class PastRequest:
    """One request of an agent; `status` is what holds at the time of reading."""

    id: str
    action: str
    declared_risk_tier: int | None
    status: str
    decided_at: datetime | None
    known_recipient: bool
    payload: Mapping[str, Any]


def requests_of(rows: Rows, grant: Grant[Org], agent_id: str, *, limit: int) -> list[PastRequest]:
    """Return the newest requests of an agent among the approvals that the grant covers, newest first."""
    match grant.action, grant.caller.type:
        case "approval.list", _:
            whose, of = "org", grant.target.id
        case "approval.list_own", "Human":
            whose, of = "addressee", grant.caller.id
        case "approval.list_own", "Agent":
            whose, of = "requester", grant.caller.id
        case action, kind:
            raise AssertionError(f"`{action}` of `{kind}` lists no approvals")
    found = rows.all(HISTORY[whose], grant.now, agent_id, of, limit)
    grant.note(served=len(found))
    return [_request([*row[:-1], parse_json(row[-1])]) for row in found]


def _request(cells: list[Any]) -> PastRequest:
    return PastRequest(*cells)
