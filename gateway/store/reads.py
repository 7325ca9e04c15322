"""Reads: who has reached what is held about a person, as the decision log has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.model.grant import Grant
from gateway.model.records import Org
from gateway.store.loading import parse_json
from gateway.store.rows import Rows

COUNTED = timedelta(days=30)

#: What a decision about a peer was asked for, in the person's words: every action on a peer that there is but its opening, which
#: reaches nothing, and `peer.see_content`, which is asked inside another. The first four are what agents do.
KINDS = {
    "peer.read_context": "context",
    "peer.read": "peer",
    "peer.predict": "predict",
    "peer.record_event": "event",
    "peer.read_fact": "fact",
    "peer.edit_fact": "correction",
    "peer.delete_fact": "deletion",
    "peer.delete_event": "deletion",
    "peer.dispute_fact": "dispute",
    "peer.ask_me": "ask_me",
    "peer.read_suppressions": "suppressions",
    "peer.lift_suppression": "suppressions",
    "peer.read_pause": "pause",
    "peer.set_pause": "pause",
    "peer.export": "export",
    "peer.erase": "erasure",
    "peer.preview": "preview",
    "peer.read_observers": "observers",
    "peer.set_observers": "observers",
    "peer.link": "link",
}
_AGENTS_DO = ", ".join(f"'{action}'" for action in list(KINDS)[:4])

# Another organisation that guesses at an id is refused as for an unknown one, and is nobody the person could know. A
# person's own acts are no reads of them by others, but for a preview: it says what an agent would have been told. The
# decisions that were asked about an agent inside one say `asked_by`; the act is the human's. What a pause turned away is
# allowed as a request and denied as content: that is a row of its own beside it.
_READS = f"""FROM (SELECT r.seq, r.id, r."at", r.resource_id, r.principal_type, r.principal_id, r.details, r.action,
    CASE WHEN p.request_id IS NULL THEN r.outcome ELSE 'deny' END AS outcome,
    CASE WHEN p.request_id IS NULL THEN r.deny_kind ELSE p.deny_kind END AS deny_kind
  FROM log r LEFT JOIN (SELECT DISTINCT request_id, "at", principal_id, resource_id, deny_kind FROM log
    WHERE kind = 'decision' AND action = 'peer.see_content' AND outcome = 'deny'
      AND resource_id IN (SELECT unnest($1::VARCHAR[]))) p
    ON p.request_id = r.request_id AND p."at" = r."at" AND p.principal_id = r.principal_id AND p.resource_id = r.resource_id
  WHERE r.kind = 'decision' AND r.resource_type = 'Peer' AND r.resource_id IN (SELECT unnest($1::VARCHAR[]))
    AND r.org_id = (SELECT org_id FROM humans WHERE id = $2)
    AND ((r.principal_type = 'Agent' AND r.action IN ({_AGENTS_DO}) AND strpos(r.details, '"asked_by":') = 0)
      OR (r.principal_type = 'Human' AND (r.principal_id <> $2 OR r.action = 'peer.preview')
        AND r.action IN (SELECT unnest($3::VARCHAR[])))))
  AS reads WHERE ($4::TIMESTAMP IS NULL OR "at" >= $4) AND ($5::TIMESTAMP IS NULL OR "at" < $5)"""  # noqa: S608  # constants only
_OF_AGENT = """AND ($6::VARCHAR IS NULL OR (principal_type = 'Agent' AND principal_id = $6)
  OR (action = 'peer.preview' AND strpos(details, '"agent_id":"' || $6 || '"') > 0))"""
PAGE = f"""SELECT id, "at", resource_id, principal_type, principal_id, action, outcome, deny_kind, details {_READS} {_OF_AGENT}
  ORDER BY seq DESC LIMIT $7 OFFSET $8"""  # constants only
TOTAL = f"SELECT count(*) {_READS} {_OF_AGENT}"  # constants only
TALLY = f"""SELECT resource_id, principal_id, max(CASE WHEN outcome = 'allow' THEN "at" END),
  sum(CASE WHEN outcome = 'allow' THEN 1 ELSE 0 END)::BIGINT, sum(CASE WHEN outcome = 'deny' THEN 1 ELSE 0 END)::BIGINT
  {_READS} AND principal_type = 'Agent' GROUP BY resource_id, principal_id"""  # constants only


@dataclass(frozen=True, slots=True)
class ReadFilter:
    """Which reads to list; None is no condition. `since` is inclusive, `until` exclusive."""

    since: datetime | None = None
    until: datetime | None = None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """One attempt to reach a peer, by an agent or by a human who is not its person.

    A preview names both: the human who looked, and the agent through whose eyes.
    """

    id: str
    at: datetime
    peer_id: str
    agent_id: str | None
    user_id: str | None
    kind: str
    decision: str
    deny_kind: str | None
    facts_served: int


@dataclass(frozen=True, slots=True)
class Tally:
    """What one agent reached of one peer in the last 30 days."""

    last_read_at: datetime | None
    reads: int
    denials: int


def reads(
    rows: Rows, grant: Grant[Org], peer_ids: Sequence[str], which: ReadFilter, *, limit: int, offset: int
) -> tuple[list[Read], int]:
    """A page of the reads of the caller's peers, newest first, and how many there are."""
    conditions = (list(peer_ids), grant.caller.id, list(KINDS), which.since, which.until, which.agent_id)
    return [_read(row) for row in rows.all(PAGE, *conditions, limit, offset)], rows.value(TOTAL, *conditions)


def tallies(rows: Rows, grant: Grant[Org], peer_ids: Sequence[str]) -> dict[tuple[str, str], Tally]:
    """Counts by (peer, agent) for the caller's peers."""
    found = rows.all(TALLY, list(peer_ids), grant.caller.id, list(KINDS), grant.now - COUNTED, None)
    return {(peer_id, agent_id): Tally(*counts) for peer_id, agent_id, *counts in found}


def _read(row: tuple[object, ...]) -> Read:
    id_, at, peer_id, principal_type, principal_id, action, outcome, deny_kind, details = row
    by_agent = principal_type == "Agent"
    noted = parse_json(str(details))
    served = noted.get("facts_served", 0)
    return Read(
        id=str(id_),
        at=at,  # type: ignore[arg-type]  # a TIMESTAMP column
        peer_id=str(peer_id),
        agent_id=str(principal_id) if by_agent else noted.get("agent_id") if action == "peer.preview" else None,
        user_id=None if by_agent else str(principal_id),
        kind=KINDS[str(action)],
        decision=str(outcome),
        deny_kind=None if deny_kind is None else str(deny_kind),
        facts_served=served if outcome == "allow" else 0,
    )
