"""Rows of memory as the tests of the store need them: put in by plain SQL, and seen through a scope that is made by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.model.caller import Caller
from gateway.model.condition import TRUE, Condition
from gateway.model.entity import EntityUid
from gateway.model.floor import owner_floor
from gateway.model.grant import Grant, Session
from gateway.model.memory import Memory, MemoryScope, Vector
from gateway.store.db import Database
from gateway.store.rows import Tx
from gateway.store.words import tokens
from gateway.store.writer import Unit
from tests.store import memory_samples
from tests.store.samples import NOON, a_row

MEMORIES = """INSERT INTO memories (id, org_id, agent_id, layer, text, project_id, tags, classification, connection_id,
    source_did, sources, created_at, expires_at, retracted_at, superseded_by, title, occurred_at, channel, started_at,
    ended_at, words)
  VALUES ($1, $2, $3, $4, $5, $6, $7::VARCHAR[], $8, $9, $10, $11::VARCHAR[], $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)"""
TOKENS = (
    "INSERT INTO memory_tokens SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[]), unnest($4::BIGINT[])"
)
LINK = "INSERT INTO memory_links VALUES ($1, $2)"
WAY = "INSERT INTO memory_provenance VALUES ($1, $2, $3)"
PIECES = """INSERT INTO memory_vectors SELECT unnest($1::VARCHAR[]), unnest($2::BIGINT[]), unnest($3::VARCHAR[]),
  unnest($4::VARCHAR[]), unnest($5::FLOAT[512][])"""
TABLES = ("memories", "memory_tokens", "memory_links", "memory_provenance", "memory_vectors")


def a_memory(memory_id: str, text: str = "nothing much", **changes: Any) -> Memory:
    """A live fact of the agent's own, in the project alpha."""
    return memory_samples.a_memory(memory_id, text, **{"project_id": "alpha", "created_at": NOON, **changes})


def remember(database: Database, rows: Sequence[Memory], pieces: Mapping[str, Sequence[Vector]] | None = None) -> None:
    """Put rows in the store, with their tokens and the pieces of them that are named by id."""

    def run(tx: Tx) -> None:
        postings: list[tuple[str, str, str, int]] = []
        cut: list[tuple[object, ...]] = []
        for row in rows:
            put(tx, row)
            postings += [(row.agent_id, token, row.id, times) for token, times in Counter(tokens(row.text)).items()]
            for piece, vector in enumerate((pieces or {}).get(row.id, ())):
                cut.append((row.id, piece, row.agent_id, vector.model, vector.numbers))
        tx.insert_many(PIECES, *([piece[place] for piece in cut] for place in range(5)))
        tx.insert_many(TOKENS, *([posting[place] for posting in postings] for place in range(4)))

    database.write(Unit(run)).result()


def put(tx: Tx, row: Memory) -> None:
    extra = row.extra
    tx.run(
        MEMORIES, row.id, row.org_id, row.agent_id, row.layer, row.text, row.project_id, list(row.tags), row.classification,
        row.connection_id, row.source_did, list(row.sources), row.created_at, row.expires_at, row.retracted_at,
        row.superseded_by, extra.title, extra.occurred_at, extra.channel, extra.started_at, extra.ended_at, len(tokens(row.text)),
    )  # fmt: skip
    for source in row.derived_from:
        tx.run(LINK, row.id, source)
    for way in row.provenance:
        tx.run(WAY, row.id, way.connection_id or "", way.source_did or "")


def forget_all(database: Database) -> None:
    """Empty the store, for the next example."""
    database.write(Unit(lambda tx: [tx.run(f"DELETE FROM {table}") for table in TABLES])).result()


def a_scope(floor: Condition | None = None, policy: Condition = TRUE) -> Grant[MemoryScope]:
    """What was granted to a caller at noon: all live rows of the agent, unless a floor is given."""
    covered = floor if floor is not None else owner_floor("org", "agent", live=True)
    who = Caller("Agent", "agent", "org", "credential")
    scope = MemoryScope(who, "agent", "org", covered, policy, (), "binding")
    session = Session(who, "request", NOON)
    return Grant(session, "memory.search", EntityUid("Agent", "agent"), scope, a_row())
