"""Memories that count and that a search by meaning does not find yet: they have no vectors of the model that is asked."""

from __future__ import annotations

from gateway.model.grant import Grant
from gateway.model.records import Agent
from gateway.store.rows import Rows

LACKING = """ FROM memories m WHERE m.org_id = $1 AND m.agent_id = $2 AND m.retracted_at IS NULL AND m.superseded_by IS NULL
  AND m.id NOT IN (SELECT v.memory_id FROM memory_vectors v WHERE v.agent_id = $2 AND v.model = $3)"""
COUNT = "SELECT count(*)" + LACKING
SOME = "SELECT m.id, m.text" + LACKING + " ORDER BY m.created_at DESC, m.id LIMIT $4"


def unindexed(rows: Rows, grant: Grant[Agent], model: str, most: int) -> tuple[list[tuple[str, str]], int]:
    """Ids and texts of some of them, the newest first, and how many there are in all."""
    agent = grant.target
    found = rows.all(SOME, agent.org_id, agent.id, model, most)
    return [(memory_id, text) for memory_id, text in found], rows.value(COUNT, agent.org_id, agent.id, model)
