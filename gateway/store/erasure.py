"""Erasure and export of one person's data: the same rows, read out whole or removed whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from derive.provenance import Entry
from gateway.model.grant import Grant
from gateway.model.records import Observer, Peer
from gateway.store import provenance
from gateway.store.entities import Installation, uid_of
from gateway.store.loading import parse_json
from gateway.store.rows import Rows, Tx
from gateway.store.suppressions import LIST as SUPPRESSIONS
from gateway.store.suppressions import Suppression

#: Every table that holds rows of a person, and the column that says whose. Export reads what erasure deletes.
ERASED = {
    "events": "peer_id",
    "provenance": "peer_id",
    "facts": "peer_id",
    "suppressions": "peer_id",
    "pending_buckets": "peer_id",
    "observers": "peer_id",
    "removed_observers": "peer_id",
    "peers": "id",
}
DELETES = {table: f"DELETE FROM {table} WHERE {column} = $1" for table, column in ERASED.items()}  # noqa: S608  # constants only
FACTS = """SELECT fact_key, fact_value, confidence, edited_by_human, disputed, live, replaced, updated_at FROM facts
  WHERE peer_id = $1 ORDER BY fact_key"""
EVENTS = """SELECT id, event_type, content, "at", source, fact_key, decision, learned FROM events
  WHERE peer_id = $1 ORDER BY "at", id"""
OBSERVERS = """SELECT peer_id, agent_id, added_by, added_at, expires_at FROM observers
  WHERE peer_id = $1 ORDER BY added_at, agent_id"""
REMOVED = "SELECT agent_id, removed_at FROM removed_observers WHERE peer_id = $1 ORDER BY removed_at, agent_id"
OWED = "SELECT fact_key, since FROM pending_buckets WHERE peer_id = $1 ORDER BY fact_key"


@dataclass(frozen=True, slots=True)
class ExportedFact:
    """A fact as it is kept; `live` is false for one that was retired and is not believed any more."""

    fact_key: str
    fact_value: Any
    confidence: str | None
    edited_by_human: bool
    disputed: bool
    live: bool
    replaced: Any
    updated_at: datetime
    provenance: list[Entry]


@dataclass(frozen=True, slots=True)
class ExportedEvent:
    """An event as it is kept, with its content."""

    id: str
    event_type: str
    content: Any
    at: datetime
    source: str
    fact_key: str | None
    decision: str | None
    learned: bool


@dataclass(frozen=True, slots=True)
class PersonData:
    """Everything that is kept under a peer, but for the peer's own row."""

    facts: list[ExportedFact]
    events: list[ExportedEvent]
    suppressions: list[Suppression]
    observers: list[Observer]
    removed_observers: list[tuple[str, datetime]]
    pending: list[tuple[str, datetime]]


@dataclass(frozen=True, slots=True)
class Erased:
    """How many rows an erasure removed."""

    facts: int
    events: int


def export_person(rows: Rows, grant: Grant[Peer]) -> PersonData:
    """Read everything that is kept under a peer; of one moment when it is read in a snapshot."""
    peer_id = grant.target.id
    basis = provenance.entries(rows, peer_id)
    facts = [
        ExportedFact(
            key,
            parse_json(value),
            confidence,
            edited,
            disputed,
            live,
            None if old is None else parse_json(old),
            at,
            basis.get(key, []),
        )
        for key, value, confidence, edited, disputed, live, old, at in rows.all(FACTS, peer_id)
    ]
    events = [ExportedEvent(id_, kind, parse_json(text), *rest) for id_, kind, text, *rest in rows.all(EVENTS, peer_id)]
    return PersonData(
        facts=facts,
        events=events,
        suppressions=[Suppression(*row) for row in rows.all(SUPPRESSIONS, peer_id)],
        observers=[Observer(*row) for row in rows.all(OBSERVERS, peer_id)],
        removed_observers=[(agent_id, at) for agent_id, at in rows.all(REMOVED, peer_id)],
        pending=[(key, at) for key, at in rows.all(OWED, peer_id)],
    )


def erase_person(tx: Tx, grant: Grant[Peer] | Grant[Installation], peer: Peer) -> Erased:
    """Delete everything that is kept under a peer, the slices of decisions about it included.

    The grant is about this peer, or the operator's about the whole data directory; either way the peer's organisation finds
    the audit row. The rows of the log stay in their chain: they hold ids and no more.
    """
    peer_id = peer.id
    counts = {table: tx.run(delete, peer_id) for table, delete in DELETES.items()}
    tx.erase_id(peer_id)
    erased = Erased(counts["facts"], counts["events"])
    counted = {"facts": erased.facts, "observations": erased.events}
    tx.append(replace(grant.audit("peer.deleted", counted, resource=uid_of(peer)), org_id=peer.org_id))
    tx.after_commit(lambda: tx.state.drop_peer(peer_id))
    return erased
