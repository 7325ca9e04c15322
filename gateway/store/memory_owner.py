"""Whose a row of memory is: what a decision about it has to know before anything of it is read."""

from __future__ import annotations

from gateway.store.rows import Rows

READ_AGENT = "SELECT agent_id FROM memories WHERE id = $1 AND org_id = $2"


def agent_of(rows: Rows, org_id: str, memory_id: str) -> str | None:
    """The id of the agent that a row of the organisation belongs to; None when there is no such row."""
    found: str | None = rows.value(READ_AGENT, memory_id, org_id)
    return found
