"""Predictions: the history of one bucket, which is all that a prediction is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from derive.buckets import bucket_of, fact_key, is_action_type
from derive.facts import Belief
from derive.recipients import read_recipient
from gateway.model.grant import Grant
from gateway.model.records import Peer
from gateway.store.approvals import known_recipient
from gateway.store.facts import live_belief
from gateway.store.rows import Rows

COUNTS = """SELECT decision, count(*) FROM (
  SELECT decision FROM events WHERE peer_id = $1 AND fact_key = $2 AND learned
  UNION ALL SELECT decision FROM provenance WHERE peer_id = $1 AND fact_key = $2 AND kind = 'tombstone') AS decided
  GROUP BY decision"""
SUPPRESSED = "SELECT 1 FROM suppressions WHERE peer_id = $1 AND fact_key = $2"


@dataclass(frozen=True, slots=True)
class BucketHistory:
    """How often each way, the live fact, whether it may be learned at all; and whether the agent knows the recipient."""

    known_recipient: bool
    approved: int = 0
    rejected: int = 0
    belief: Belief | None = None
    suppressed: bool = False


def history(
    rows: Rows, grant: Grant[Peer], agent_id: str | None, action_type: str, payload: Mapping[str, object]
) -> BucketHistory:
    """The history of the bucket in which this agent's action would be. Without an agent, every recipient is new."""
    recipient = read_recipient(payload)
    known = recipient is not None and agent_id is not None and known_recipient(rows, agent_id, recipient)
    if not is_action_type(action_type):
        return BucketHistory(known)
    key = fact_key(bucket_of(action_type, payload, known_recipient=known))
    counts: dict[str, int] = dict(rows.all(COUNTS, grant.target.id, key))
    return BucketHistory(
        known,
        counts.get("approved", 0),
        counts.get("rejected", 0),
        live_belief(rows, grant, key),
        rows.one(SUPPRESSED, grant.target.id, key) is not None,
    )
