"""Lineage: a memory goes with everything that was derived from it, out of every table that holds a part of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from gateway.store.rows import Rows, Tx

# Whoever derives from a memory names it, so this ends: a memory is there before its id can be named.
WITH_DERIVED = """WITH RECURSIVE reached(id) AS (SELECT unnest($1::VARCHAR[])
  UNION SELECT l.memory_id FROM memory_links l JOIN reached r ON l.source_id = r.id)
  SELECT id FROM reached ORDER BY id"""
HIDE = """UPDATE memories SET retracted_at = $2
  WHERE id IN (SELECT unnest($1::VARCHAR[])) AND retracted_at IS NULL"""
#: Every table that holds a part of a memory, and how it is taken out. A memory that was superseded by one that goes stays
#: superseded: its pointer stays.
DELETES = {
    "memory_provenance": "DELETE FROM memory_provenance WHERE memory_id IN (SELECT unnest($1::VARCHAR[]))",
    "memory_links": "DELETE FROM memory_links WHERE memory_id IN (SELECT unnest($1::VARCHAR[]))",
    "memory_tokens": "DELETE FROM memory_tokens WHERE memory_id IN (SELECT unnest($1::VARCHAR[]))",
    "memory_vectors": "DELETE FROM memory_vectors WHERE memory_id IN (SELECT unnest($1::VARCHAR[]))",
    "memories": "DELETE FROM memories WHERE id IN (SELECT unnest($1::VARCHAR[]))",
}


def with_derived(rows: Rows, ids: Iterable[str]) -> list[str]:
    """These memories and whatever was derived from them, directly or not, sorted."""
    return [found for (found,) in rows.all(WITH_DERIVED, list(ids))]


def hide(tx: Tx, ids: list[str], at: datetime) -> int:
    """Retract memories, and return how many were not retracted yet. `ids` are closed under derivation."""
    return tx.run(HIDE, ids, at)


def remove(tx: Tx, ids: list[str]) -> None:
    """Delete memories from every table, and the slices of decisions about them. `ids` are closed under derivation."""
    if not ids:
        return
    for delete in DELETES.values():
        tx.run(delete, ids)
    tx.erase_ids(ids)
