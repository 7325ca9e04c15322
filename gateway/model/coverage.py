"""Coverage: why a connection sees a row, or the first thing that keeps it from it, and which grants are about a row.

It explains, and finds whose limits hold; it decides nothing. What is seen or written comes of the query and the decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

from gateway.model.memory import Memory, MemoryAction, MemoryGrant, RemoteConnection

Clause = Literal["connection", "grant", "project", "classification", "tags", "provenance", "retracted", "superseded", "expired"]
#: In the order in which they are looked at.
CLAUSES: tuple[Clause, ...] = (
    "connection", "grant", "project", "classification", "tags", "provenance", "retracted", "superseded", "expired"
)  # fmt: skip


def failed_clause(
    connection: RemoteConnection, grants: Sequence[MemoryGrant], row: Memory, action: MemoryAction, now: datetime
) -> Clause | None:
    """The first clause that keeps a row from a connection, over that of its grants that gets furthest; None when none does."""
    if connection.status != "active" or (row.org_id, row.agent_id) != (connection.org_id, connection.agent_id):
        return "connection"
    live = [grant for grant in grants if grant.live_at(now) and action in grant.actions]
    reached = [_first_false(grant, connection, row, now) for grant in live]
    if not reached:
        return "grant"
    return None if None in reached else max(filter(None, reached), key=CLAUSES.index)


def covers(grant: MemoryGrant, connection: RemoteConnection, row: Memory, now: datetime) -> bool:
    """Whether a row is one that a grant lets be written: one that has ended may be."""
    return all(holds for clause, holds in _clauses(grant, connection, row, now) if clause != "expired")


def _first_false(grant: MemoryGrant, connection: RemoteConnection, row: Memory, now: datetime) -> Clause | None:
    return next((clause for clause, holds in _clauses(grant, connection, row, now) if not holds), None)


def _clauses(grant: MemoryGrant, connection: RemoteConnection, row: Memory, now: datetime) -> Iterator[tuple[Clause, bool]]:
    yield "project", row.project_id == grant.project_id
    yield "classification", row.classification in grant.classifications
    yield "tags", _tagged(grant, row)
    yield "provenance", _comes_from(grant, connection, row)
    yield "retracted", row.retracted_at is None
    yield "superseded", row.superseded_by is None
    yield "expired", not row.expired_at(now)


def _tagged(grant: MemoryGrant, row: Memory) -> bool:
    asked, has = set(grant.tags), set(row.tags)
    return not asked or (asked <= has if grant.tags_match == "all" else bool(asked & has))


def _comes_from(grant: MemoryGrant, connection: RemoteConnection, row: Memory) -> bool:
    match grant.provenance:
        case "owner_only":
            return not row.sources
        case "own_connection":
            return row.sources == (connection.id,)
        case "any":
            return True
