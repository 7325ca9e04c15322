"""Events: what happened between a person and the agents, stored once each, and learned from where it is a decision."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from derive.buckets import Bucket, bucket_of, fact_key, is_action_type
from derive.events import Decision
from derive.recipients import read_recipient
from gateway.errors import Conflict, NotFound
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.ids import new_id
from gateway.model.records import Peer
from gateway.store.approvals import known_recipient
from gateway.store.canonical import canonical, digest
from gateway.store.derivation import rederive
from gateway.store.retention import bury_event
from gateway.store.rows import Rows, Tx

EventType = Literal["message", "approval", "action", "observation"]
EVENT_TYPES: tuple[EventType, ...] = ("message", "approval", "action", "observation")

#: Ids that callers choose become ids of ours under this name, so that the primary key holds each of them once.
_NAMESPACE = uuid.UUID("6f1a1b0e-5d0a-5c57-9a39-2f5f7c1c7d10")

SEEN = """SELECT content_hash FROM events WHERE peer_id = $1 AND id = $2
UNION ALL SELECT NULL FROM provenance WHERE peer_id = $1 AND id = $2 AND kind = 'tombstone'"""
SUPPRESSED = "SELECT 1 FROM suppressions WHERE peer_id = $1 AND fact_key = $2"
INSERT = """INSERT INTO events (peer_id, id, org_id, event_type, content, content_hash, "at", source, fact_key, decision, learned)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"""
FIND = "SELECT fact_key, learned FROM events WHERE peer_id = $1 AND id = $2"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The decision that an approval event tells of."""

    action: str
    decision: Decision
    payload: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class PostedEvent:
    """An event as a caller sent it. `chosen_id` is the caller's own id for it; `learn` is the organisation's setting."""

    event_type: EventType
    content: Mapping[str, object]
    judgement: Judgement | None
    chosen_id: str | None
    learn: bool


def observe_decision(
    tx: Tx,
    grant: Grant[Any],
    *,
    approval_id: str,
    agent_id: str,
    decider_id: str,
    decision: Literal["approved", "rejected"],
    action: str,
    payload: Mapping[str, object],
    at: datetime,
    known_recipient: bool,
) -> None:
    """Record a decision as the gateway's own evidence about whoever decided, and derive from it.

    It goes to every active peer that the agent observes and whose person is the decider, once by the approval's id.
    """
    content = {"action": action, "decision": decision, "payload": payload}
    bucket = bucket_of(action, payload, known_recipient=known_recipient) if is_action_type(action) else None
    for peer in tx.state.observed_peers(agent_id, at):
        person = tx.state.person_of(peer)
        if peer.archived or person is None or person.id != decider_id:
            continue
        row = _Row(peer, approval_id, "approval", content, at, "gateway", bucket, decision, learn=True)
        if tx.one(SEEN, peer.id, approval_id) is None:
            _keep(tx, grant, row)


def record_event(tx: Tx, grant: Grant[Peer], posted: PostedEvent) -> str:
    """Store what a caller posted and return its id; the same event twice is stored once and has one id.

    Raises:
        Conflict: the caller has used its id for another content.
        NotFound: the peer was erased in the meantime.
    """
    peer = tx.state.peers.get(grant.target.id)
    if peer is None:
        raise NotFound
    source = f"{'agent' if grant.caller.type == 'Agent' else 'user'}:{grant.caller.id}"
    event_id = new_id() if posted.chosen_id is None else _own_id(peer.id, source, posted.chosen_id)
    seen = None if posted.chosen_id is None else tx.one(SEEN, peer.id, event_id)
    if seen is not None:
        # Of a tombstone only the id is left to compare.
        if seen[0] not in (None, _content_hash(posted.event_type, posted.content)):
            raise Conflict(f"`event_id` `{posted.chosen_id}` was used before for an event of other content")
        return event_id
    judged = posted.judgement
    bucket = None if judged is None else _bucket(tx, grant, judged)
    decision = None if judged is None else judged.decision
    _keep(tx, grant, _Row(peer, event_id, posted.event_type, posted.content, grant.now, source, bucket, decision, posted.learn))
    return event_id


def record_note(tx: Tx, grant: Grant[Peer], content: Mapping[str, object]) -> None:
    """Store what a human says about the peer in their own words; nothing is learned from it."""
    source = f"user:{grant.caller.id}"
    _keep(tx, grant, _Row(grant.target, new_id(), "observation", content, grant.now, source, None, None, learn=False))


def delete_event(tx: Tx, grant: Grant[Peer], event_id: str) -> None:
    """Delete an event; where it spoke for a fact, a tombstone takes its place at once.

    Raises:
        NotFound: the peer has no such event.
    """
    found = tx.one(FIND, grant.target.id, event_id)
    if found is None:
        raise NotFound
    key, learned = found
    bury_event(tx, grant.target.id, event_id)
    tx.append(grant.audit("peer.event_deleted", {"event_id": event_id}))
    if key is not None and learned:
        rederive(tx, grant.target.id, key, org_id=grant.target.org_id, now=grant.now)


@dataclass(frozen=True, slots=True)
class _Row:
    peer: Peer
    id: str
    event_type: EventType
    content: Mapping[str, object]
    at: datetime
    source: str
    bucket: Bucket | None
    decision: Decision | None
    learn: bool


def _keep(tx: Tx, grant: Grant[Any], row: _Row) -> None:
    """Insert an event and derive from it, unless learning is off, paused or suppressed: that is so for ever."""
    peer, key = row.peer, None if row.bucket is None else fact_key(row.bucket)
    learned = row.learn and not peer.pause.learning_at(row.at)
    if learned and key is not None:
        learned = tx.one(SUPPRESSED, peer.id, key) is None
    tx.run(
        INSERT,
        peer.id,
        row.id,
        peer.org_id,
        row.event_type,
        canonical(row.content),
        _content_hash(row.event_type, row.content),
        row.at,
        row.source,
        key,
        row.decision,
        learned,
    )
    # Not whether it was learned from: agents read the rows of their own acts, and pauses and suppressions are the person's.
    about = {"peer_id": peer.id, "event_id": row.id, "event_type": row.event_type}
    tx.append(grant.audit("peer.event_recorded", about, resource=EntityUid("Peer", peer.id)))
    if learned and key is not None:
        rederive(tx, peer.id, key, org_id=peer.org_id, now=row.at)
    else:
        tx.after_commit(lambda: tx.state.facts_changed(peer.id))


def _bucket(rows: Rows, grant: Grant[Peer], judged: Judgement) -> Bucket | None:
    if not is_action_type(judged.action):
        return None
    recipient = read_recipient(judged.payload)
    known = (
        recipient is not None and grant.caller.type == "Agent" and known_recipient(rows, grant.caller.id, recipient, grant.now)
    )
    return bucket_of(judged.action, judged.payload, known_recipient=known)


def _own_id(peer_id: str, source: str, chosen_id: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{peer_id}\n{source}\n{chosen_id}"))


def _content_hash(event_type: str, content: Mapping[str, object]) -> str:
    return digest({"event_type": event_type, "content": content})
