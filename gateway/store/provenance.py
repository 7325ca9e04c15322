"""Provenance: the entries behind each fact, from live events, tombstones and corrections, in the order of time."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from derive.events import Observation, Tombstone
from derive.provenance import Entry, entry, human_entry, tombstone_entry
from gateway.model.ids import new_id
from gateway.store.rows import Rows, Tx

ENTRIES = """SELECT fact_key, "at", id, 'event' AS kind, event_type, decision, source, NULL AS user_id FROM events
  WHERE peer_id = $1 AND fact_key IS NOT NULL AND learned AND ($2::VARCHAR IS NULL OR fact_key = $2)
UNION ALL SELECT fact_key, "at", id, kind, event_type, decision, NULL, user_id FROM provenance
  WHERE peer_id = $1 AND ($2::VARCHAR IS NULL OR fact_key = $2)
ORDER BY 1, 2, 3"""
ADD_HUMAN = """INSERT INTO provenance (peer_id, fact_key, id, kind, event_type, decision, "at", user_id)
  VALUES ($1, $2, $3, 'human', NULL, NULL, $4, $5)"""
REMOVE = "DELETE FROM provenance WHERE peer_id = $1 AND fact_key = $2"


def entries(rows: Rows, peer_id: str, fact_key: str | None = None) -> dict[str, list[Entry]]:
    """The entries of a peer's buckets, or of one of them, by fact key."""
    found: dict[str, list[Entry]] = defaultdict(list)
    for key, at, event_id, kind, event_type, decision, source, user_id in rows.all(ENTRIES, peer_id, fact_key):
        match kind:
            case "event":
                found[key].append(entry(Observation(event_id, event_type, decision, at, source)))
            case "tombstone":
                found[key].append(tombstone_entry(Tombstone(event_type, decision, at)))
            case "human":
                found[key].append(human_entry(user_id, at))
            case other:
                raise ValueError(f"`{other}` is not a kind of provenance")
    return found


def add_human(tx: Tx, peer_id: str, fact_key: str, user_id: str, at: datetime) -> None:
    """Add a correction to the entries of a fact."""
    tx.run(ADD_HUMAN, peer_id, fact_key, new_id(), at, user_id)


def remove(tx: Tx, peer_id: str, fact_key: str) -> None:
    """Remove every entry under a fact that is deleted."""
    tx.run(REMOVE, peer_id, fact_key)
