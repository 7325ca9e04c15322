"""Builders of what remote agents reach: rows of memory, connections, and grants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.model.memory import NO_LIMITS, TEMPLATE_VERSION, Memory, MemoryGrant, RemoteConnection, Source
from tests.world import HOME, NOW

DID = "did:web:canary.example"


def a_memory(memory_id: str = "memory", agent: str = "agent", org_id: str = HOME, **changes: Any) -> Memory:
    """A live row of project `alpha`, written by its agent."""
    made = Memory(memory_id, org_id, agent, "fact", "canary text", "alpha", (), "internal", None, None, NOW)
    return replace(made, **changes)


def a_remote_connection(
    connection_id: str = "partner", agent: str = "agent", org_id: str = HOME, **changes: Any
) -> RemoteConnection:
    made = RemoteConnection(connection_id, org_id, agent, DID, "canary name", "active", None, NOW)
    return replace(made, **changes)


def a_memory_grant(grant_id: str = "grant", connection_id: str = "partner", org_id: str = HOME, **changes: Any) -> MemoryGrant:
    """All four actions on project `alpha`, without an end."""
    made = MemoryGrant(
        id=grant_id,
        org_id=org_id,
        connection_id=connection_id,
        actions=("search", "read", "query", "remember"),
        project_id="alpha",
        tags=(),
        tags_match="any",
        classifications=("public", "internal"),
        provenance="any",
        expires_at=None,
        limits=NO_LIMITS,
        template_version=TEMPLATE_VERSION,
        created_by="owner",
        created_at=NOW,
    )
    return replace(made, **changes)


def over(*connections: str) -> tuple[Source, ...]:
    """The provenance of a row that came over connections."""
    return tuple(Source(connection, DID) for connection in sorted(connections))
