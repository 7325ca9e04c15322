"""Memory rows: how what is stored becomes a `Memory`, and the rows of a scope by their ids."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.model.condition import all_of
from gateway.model.grant import Grant
from gateway.model.memory import EVERYTHING, LayerFields, Memory, MemoryScope, Narrow, Source
from gateway.model.narrow import narrowed
from gateway.store.condition import MEMORY, filled, placed
from gateway.store.rows import Row, Rows

#: One statement, so that a row and what hangs on it are of one moment. What hangs on the rows is found for all of them at
#: once: a subquery a row takes three times as long.
READ = """WITH chosen AS MATERIALIZED (
    SELECT id, org_id, agent_id, layer, text, project_id, tags, classification, connection_id, source_did, created_at,
      expires_at, retracted_at, superseded_by, title, occurred_at, channel, started_at, ended_at
    FROM memories WHERE {where}),
  links AS (SELECT memory_id, array_agg(source_id ORDER BY source_id) AS derived_from
    FROM memory_links WHERE memory_id IN (SELECT id FROM chosen) GROUP BY memory_id),
  ways AS (SELECT memory_id, array_agg(connection_id ORDER BY connection_id, source_did) AS connections,
      array_agg(source_did ORDER BY connection_id, source_did) AS dids
    FROM memory_provenance WHERE memory_id IN (SELECT id FROM chosen) GROUP BY memory_id)
  SELECT chosen.*, links.derived_from, ways.connections, ways.dids
  FROM chosen LEFT JOIN links ON links.memory_id = chosen.id LEFT JOIN ways ON ways.memory_id = chosen.id
  ORDER BY chosen.id"""
BY_IDS = READ.replace("{where}", "id = ANY($1::VARCHAR[]) AND {where}")


def fetch(rows: Rows, grant: Grant[MemoryScope], ids: Sequence[str], narrow: Narrow = EVERYTHING) -> list[Memory]:
    """The rows of these ids that are in the granted scope and asked for, in the order of the ids; the others are left out."""
    scope = grant.target
    sql, params = filled(BY_IDS, all_of(scope.floor, scope.policy, narrowed(narrow)), MEMORY, grant.now, list(ids))
    found = {row[0]: row for row in rows.all(sql, *params)}
    return [_memory(found[memory_id]) for memory_id in ids if memory_id in found]


def read_where(rows: Rows, where: str, params: Sequence[object]) -> list[Memory]:
    """Every row for which an SQL condition holds, whoever may see it, by id.

    INVARIANT: `where` is a constant of the store's own, and what is read here answers no request.
    """
    return [_memory(row) for row in rows.all(placed(READ, where), *params)]


def _memory(row: Row) -> Memory:
    (
        memory_id, org_id, agent_id, layer, text, project_id, tags, classification, connection_id, source_did, created_at,
        expires_at, retracted_at, superseded_by, title, occurred_at, channel, started_at, ended_at,
        derived_from, connections, dids,
    ) = row  # fmt: skip
    ways = zip(connections or (), dids or (), strict=True)
    return Memory(
        id=memory_id,
        org_id=org_id,
        agent_id=agent_id,
        layer=layer,
        text=text,
        project_id=project_id,
        tags=tuple(tags),
        classification=classification,
        connection_id=connection_id,
        source_did=source_did,
        created_at=created_at,
        expires_at=expires_at,
        retracted_at=retracted_at,
        superseded_by=superseded_by,
        derived_from=tuple(derived_from or ()),
        # An empty text stands for none.
        provenance=tuple(Source(connection or None, did or None) for connection, did in ways),
        extra=LayerFields(title, occurred_at, channel, started_at, ended_at),
    )
