"""Forgetting: everything of one origin is hidden or deleted at once, and what came over its connections stays out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gateway.model.grant import Grant
from gateway.model.memory import LAYERS, Depth
from gateway.model.records import Agent
from gateway.store.lineage import hide, remove, with_derived
from gateway.store.rows import Rows, Tx

By = Literal["connection_id", "source_did", "project_id", "id"]

CONNECTIONS = "SELECT id, peer_did, replaces FROM remote_connections WHERE org_id = $1 AND agent_id = $2 ORDER BY id"
# The last parameter is the connections that are followed.
OVER_CONNECTIONS = """SELECT DISTINCT m.id FROM memories m JOIN memory_provenance p ON p.memory_id = m.id
  WHERE m.org_id = $1 AND m.agent_id = $2 AND p.connection_id IN (SELECT unnest($3::VARCHAR[]))"""
#: What each kind of selection finds by its value; over connections is asked besides.
SELECTED = {
    "source_did": """SELECT DISTINCT m.id FROM memories m JOIN memory_provenance p ON p.memory_id = m.id
  WHERE m.org_id = $1 AND m.agent_id = $2 AND p.source_did = $3""",
    "project_id": "SELECT id FROM memories WHERE org_id = $1 AND agent_id = $2 AND project_id = $3",
    "id": "SELECT id FROM memories WHERE org_id = $1 AND agent_id = $2 AND id = $3",
}
SHOWN = """SELECT id FROM memories WHERE id IN (SELECT unnest($1::VARCHAR[])) AND retracted_at IS NULL"""
BY_LAYER = "SELECT layer, count(*) FROM memories WHERE id IN (SELECT unnest($1::VARCHAR[])) GROUP BY layer"
#: Every table that holds a part of a memory, and how many rows there are of some.
PARTS = {
    "memory_provenance": "SELECT count(*) FROM memory_provenance WHERE memory_id IN (SELECT unnest($1::VARCHAR[]))",
    "memory_links": "SELECT count(*) FROM memory_links WHERE memory_id IN (SELECT unnest($1::VARCHAR[]))",
    "memory_tokens": "SELECT count(*) FROM memory_tokens WHERE memory_id IN (SELECT unnest($1::VARCHAR[]))",
    "memory_vectors": "SELECT count(*) FROM memory_vectors WHERE memory_id IN (SELECT unnest($1::VARCHAR[]))",
}
COUNTERS = """SELECT count(*) FROM memory_written
  WHERE org_id = $1 AND connection_id IN (SELECT unnest($2::VARCHAR[]))"""
DELETE_COUNTERS = """DELETE FROM memory_written
  WHERE org_id = $1 AND connection_id IN (SELECT unnest($2::VARCHAR[]))"""
SUPPRESS = """INSERT INTO memory_suppressions (org_id, connection_id, "at", by_id)
  SELECT $1::VARCHAR, unnest($2::VARCHAR[]), $3::TIMESTAMP, $4::VARCHAR ON CONFLICT DO NOTHING"""


@dataclass(frozen=True, slots=True)
class Selection:
    """What to forget: whatever came over a connection, from a remote agent, belongs to a project, or is one memory."""

    by: By
    value: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten, or would be.

    `depth` is how deep: an erasure that removes nothing leaves the file as it is, and is none. `connections` are those that
    were followed. `counts` are rows a layer and a table of parts, `total` those of the layers. From `suppressed` nothing is
    stored again.
    """

    dry_run: bool
    depth: Depth
    connections: tuple[str, ...]
    counts: Mapping[str, int]
    total: int
    suppressed: tuple[str, ...]
    at: datetime


def preview(rows: Rows, grant: Grant[Agent], selection: Selection, depth: Depth) -> Receipt:
    """Say what `forget` would do; of one moment when it is read in a snapshot."""
    found = _found(rows, grant.target, selection, depth)
    return _receipt(grant, depth, found, dry_run=True)


def forget(tx: Tx, grant: Grant[Agent], selection: Selection, depth: Depth) -> Receipt:
    """Hide or delete what is selected with everything derived from it, and keep out what its connections would bring.

    *erase* deletes here; the bytes are gone when the store has been rewritten, as the receipt then asks for. A second time
    finds nothing.
    """
    agent, found = grant.target, _found(tx, grant.target, selection, depth)
    if depth == "hide":
        hide(tx, found.ids, grant.now)
    else:
        remove(tx, found.ids)
        tx.run(DELETE_COUNTERS, agent.org_id, found.connections)
    tx.run(SUPPRESS, agent.org_id, found.connections, grant.now, grant.caller.id)
    receipt = _receipt(grant, depth, found, dry_run=False)
    about = {"by": selection.by, "depth": receipt.depth, "connections": list(found.connections), "counts": dict(receipt.counts)}
    tx.append(grant.audit("memory.forgotten", about))
    return receipt


@dataclass(frozen=True, slots=True)
class _Found:
    connections: tuple[str, ...]
    ids: list[str]
    counts: Mapping[str, int]


def _found(rows: Rows, agent: Agent, selection: Selection, depth: Depth) -> _Found:
    connections = _followed(rows, agent, selection)
    named = rows.all(OVER_CONNECTIONS, agent.org_id, agent.id, connections)
    if selection.by in SELECTED:
        named += rows.all(SELECTED[selection.by], agent.org_id, agent.id, selection.value)
    ids = with_derived(rows, {found for (found,) in named})
    deleting = depth != "hide"
    if not deleting:
        ids = [found for (found,) in rows.all(SHOWN, ids)]
    counts = dict.fromkeys((*LAYERS, *PARTS, "memory_written"), 0)
    counts |= dict(rows.all(BY_LAYER, ids))
    if deleting:
        counts |= {table: rows.value(count, ids) for table, count in PARTS.items()}
        counts["memory_written"] = rows.value(COUNTERS, agent.org_id, connections)
    return _Found(connections, ids, counts)


def _followed(rows: Rows, agent: Agent, selection: Selection) -> tuple[str, ...]:
    """The connections that a selection is about, with those that they replaced and that replaced them, sorted."""
    known = rows.all(CONNECTIONS, agent.org_id, agent.id)
    match selection.by:
        case "connection_id":
            followed = {found for found, _, _ in known if found == selection.value}
        case "source_did":
            followed = {found for found, did, _ in known if did == selection.value}
        case "project_id" | "id":
            followed = set()
    edges = [{found, replaced} for found, _, replaced in known if replaced is not None]
    while more := {each for edge in edges if edge & followed for each in edge} - followed:
        followed |= more
    return tuple(sorted(followed))


def _receipt(grant: Grant[Agent], depth: Depth, found: _Found, *, dry_run: bool) -> Receipt:
    return Receipt(
        dry_run=dry_run,
        depth="delete" if depth == "erase" and not any(found.counts.values()) else depth,
        connections=found.connections,
        counts=found.counts,
        total=sum(found.counts[layer] for layer in LAYERS),
        suppressed=() if dry_run else found.connections,
        at=grant.now,
    )
