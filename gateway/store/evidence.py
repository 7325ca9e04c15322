"""Reading the log: decisions, audit events, and what a chain verification says of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime

from gateway.errors import NotFound
from gateway.model.grant import Grant
from gateway.model.records import Org
from gateway.store import log, logged
from gateway.store.entities import Installation, LogEntry
from gateway.store.logged import COLUMNS, Logged
from gateway.store.rows import Rows

WHERE_DECISION = """FROM log WHERE kind = 'decision' AND org_id = $1
  AND ($2::VARCHAR IS NULL OR principal_id = $2) AND ($3::VARCHAR IS NULL OR action = $3)
  AND ($4::VARCHAR IS NULL OR resource_id = $4) AND ($5::VARCHAR IS NULL OR outcome = $5)
  AND ($6::VARCHAR IS NULL OR deny_kind = $6) AND ($7::VARCHAR IS NULL OR strpos(policies, $7) > 0)
  AND ($8::TIMESTAMP IS NULL OR "at" >= $8) AND ($9::TIMESTAMP IS NULL OR "at" < $9)"""
DECISIONS = f"SELECT {COLUMNS} {WHERE_DECISION} ORDER BY seq DESC LIMIT $10 OFFSET $11"  # constants only
DECISIONS_TOTAL = f"SELECT count(*) {WHERE_DECISION}"  # constants only
DECISION = f"""SELECT {COLUMNS} FROM log
  WHERE kind = 'decision' AND id = $1 AND ($2::VARCHAR IS NULL OR org_id = $2)"""  # noqa: S608  # constants only
DECISION_ORG = "SELECT org_id FROM log WHERE kind = 'decision' AND id = $1"

WHERE_EVENT = """FROM log WHERE kind = 'audit' AND org_id = $1
  AND ($2::VARCHAR IS NULL OR principal_id = $2) AND ($3::VARCHAR IS NULL OR action = $3)
  AND ($4::VARCHAR IS NULL OR resource_id = $4)
  AND ($5::TIMESTAMP IS NULL OR "at" >= $5) AND ($6::TIMESTAMP IS NULL OR "at" < $6)
  AND ($7::VARCHAR IS NULL OR principal_id = $7)"""
EVENTS = f"SELECT {COLUMNS} {WHERE_EVENT} ORDER BY seq DESC LIMIT $8 OFFSET $9"  # constants only
EVENTS_TOTAL = f"SELECT count(*) {WHERE_EVENT}"  # constants only

FIRST_SINCE = 'SELECT min(seq) FROM log WHERE "at" >= $1'
LAST_UNTIL = 'SELECT max(seq) FROM log WHERE $1::TIMESTAMP IS NULL OR "at" < $1'
OWN_BETWEEN = "SELECT count(*) FROM log WHERE org_id = $1 AND seq BETWEEN $2 AND $3"
OWN_ID = "SELECT count(*) FROM log WHERE org_id = $1 AND id = $2"


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What a walk along the chain found, in rows of the asking organisation. `broken_at` is null for another's row."""

    valid: bool
    checked: int
    verified: int
    broken_at: str | None


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Which decisions to list; None is no condition. `since` is inclusive, `until` exclusive."""

    principal: str | None = None
    action: str | None = None
    resource: str | None = None
    outcome: str | None = None
    deny_kind: str | None = None
    policy: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which audit events to list; None is no condition."""

    actor: str | None = None
    action: str | None = None
    resource: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def decision_org(rows: Rows, decision_id: str) -> str | None:
    """The organisation a decision belongs to: what is needed to decide whether it may be read."""
    found = rows.one(DECISION_ORG, decision_id)
    return found[0] if found is not None else None


def decisions(rows: Rows, grant: Grant[Org], which: DecisionFilter, *, limit: int, offset: int) -> tuple[list[Logged], int]:
    """A page of the organisation's decisions, newest first, and how many there are."""
    policy = None if which.policy is None else json.dumps(which.policy)
    conditions = (
        grant.target.id,
        which.principal,
        which.action,
        which.resource,
        which.outcome,
        which.deny_kind,
        policy,
        which.since,
        which.until,
    )
    page = [logged.read(row) for row in rows.all(DECISIONS, *conditions, limit, offset)]
    return page, rows.value(DECISIONS_TOTAL, *conditions)


def decision(rows: Rows, grant: Grant[LogEntry] | Grant[Installation], decision_id: str) -> Logged:
    """One decision: of the granted organisation or, for the operator, of any.

    Raises:
        NotFound: it is not in the log.
    """
    org_id = grant.target.org_id if isinstance(grant.target, LogEntry) else None
    found = rows.one(DECISION, decision_id, org_id)
    if found is None:
        raise NotFound
    return logged.read(found)


def audit_events(
    rows: Rows, grant: Grant[Org], which: EventFilter, *, only_actor: str | None, limit: int, offset: int
) -> tuple[list[Logged], int]:
    """A page of the organisation's audit events, newest first, and how many there are; `only_actor` narrows to one's own."""
    conditions = (grant.target.id, which.actor, which.action, which.resource, which.since, which.until, only_actor)
    page = [logged.read(row) for row in rows.all(EVENTS, *conditions, limit, offset)]
    return page, rows.value(EVENTS_TOTAL, *conditions)


def verify_chain(rows: Rows, grant: Grant[Org], *, since: datetime | None, until: datetime | None, limit: int) -> ChainReport:
    """Verify at most `limit` rows: from `since` on, or else the newest ones. The chain runs through all organisations."""
    last = rows.value(LAST_UNTIL, until) or 0
    first = max(1, last - limit + 1) if since is None else rows.value(FIRST_SINCE, since) or last + 1
    if first > last:
        return ChainReport(True, 0, 0, None)
    walk = log.verify(rows, from_seq=first, limit=min(limit, last - first + 1))
    return own_part(rows, grant, walk, first)


def chain_end(rows: Rows, grant: Grant[Installation] | Grant[Org]) -> int:
    """The last place of the log."""
    return log.read_head(rows).seq


def verify_on(
    rows: Rows, grant: Grant[Installation] | Grant[Org], so_far: log.Verification | None, limit: int
) -> log.Verification:
    """Walk the chain on from where a walk has come to, or from its start, over `limit` rows; what is returned is of both."""
    if so_far is None:
        return log.verify(rows, limit=limit)
    page = log.verify(rows, limit=limit, after=log.Head(so_far.head_seq, so_far.head_hash))
    return replace(page, checked=so_far.checked + page.checked, verified=so_far.verified + page.verified)


def own_part(rows: Rows, grant: Grant[Org], walk: log.Verification, first: int = 1) -> ChainReport:
    """What a walk from the place `first` found, in rows of the granted organisation."""
    verified = rows.value(OWN_BETWEEN, grant.target.id, first, walk.head_seq)
    own = walk.broken_at_id is not None and rows.value(OWN_ID, grant.target.id, walk.broken_at_id) > 0
    return ChainReport(walk.valid, verified + (1 if own else 0), verified, walk.broken_at_id if own else None)
