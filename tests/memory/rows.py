"""Random rows of memory and random grants, hostile ones among them; and which rows a grant covers, in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from gateway.model.memory import (
    LAYERS,
    MEMORY_ACTIONS,
    NO_LIMITS,
    PROVENANCES,
    TEMPLATE_VERSION,
    TIERS,
    Memory,
    MemoryGrant,
    Narrow,
    Source,
)
from gateway.store.rows import Tx
from gateway.store.words import tokens
from tests.memory.random_policies import CONNECTIONS, PROJECTS, TAGS
from tests.world import AWAY, HOME, NOW

TEXTS = ("", "fox ", "C++ ", "the quick fox ", "狐狸 ", "🎉 ", "89 ", "Naïve ", "AND OR NOT ", "' OR 1=1 -- ")
DIMENSIONS = 512
MODEL = "test"
AGENTS = ((HOME, "agent"), (HOME, "other"), (AWAY, "foreign"))


def a_row(chance: random.Random, row_id: str) -> Memory:
    """A row of anybody's; most are of the agent that is asked about."""
    org_id, agent_id = chance.choices(AGENTS, (8, 1, 1))[0]
    sources = sorted(chance.sample(CONNECTIONS, chance.choices((0, 1, 2), (4, 4, 1))[0]))
    moments = (None, None, None, None, None, NOW - timedelta(seconds=1), NOW, NOW + timedelta(seconds=1))
    return Memory(
        id=row_id,
        org_id=org_id,
        agent_id=agent_id,
        layer=chance.choice(LAYERS),
        text="".join(chance.choices(TEXTS, k=chance.randint(1, 6))).strip() or "-",
        project_id=chance.choice((None, None, *PROJECTS, "alpha", "alpha", "a_b")),
        tags=tuple(sorted(chance.sample(TAGS, chance.randint(0, 4)))),
        classification=chance.choice(TIERS),
        connection_id=sources[0] if len(sources) == 1 else None,
        source_did="did:web:sample.example" if sources else None,
        created_at=NOW - timedelta(minutes=chance.randint(0, 20)),
        expires_at=chance.choice(moments),
        retracted_at=NOW if chance.random() < 0.1 else None,
        superseded_by="newer" if chance.random() < 0.1 else None,
        provenance=tuple(Source(source, "did:web:sample.example") for source in sources),
    )


def a_grant(chance: random.Random, grant_id: str) -> MemoryGrant:
    """A grant to the connection `conn`; a live one more often than not."""
    ends = (None, None, None, None, NOW, NOW + timedelta(seconds=1), NOW - timedelta(days=1))
    return MemoryGrant(
        id=grant_id,
        org_id=HOME,
        connection_id="conn",
        actions=tuple(chance.sample(MEMORY_ACTIONS, chance.randint(2, 4))),
        project_id=chance.choice((*PROJECTS, "alpha", "alpha", "a_b")),
        tags=tuple(sorted(chance.sample(TAGS, chance.choice((0, 0, 0, 1, 3))))),
        tags_match=chance.choice(("any", "all")),
        classifications=tuple(chance.sample(TIERS, chance.randint(1, 4))),
        provenance=chance.choice((*PROVENANCES, "any")),
        expires_at=chance.choice(ends),
        limits=NO_LIMITS,
        template_version=TEMPLATE_VERSION,
        created_by="owner",
        created_at=NOW,
        revoked_at=NOW if chance.random() < 0.15 else None,
    )


def a_narrow(chance: random.Random) -> Narrow:
    """What a request asks for; often nothing."""
    return Narrow(
        project_id=chance.choice((None, None, None, *PROJECTS)),
        tags=chance.choice((None, None, None, (), tuple(chance.sample(TAGS, 2)))),
        tags_match=chance.choice(("any", "all")),
        layers=chance.choice((None, None, None, (), tuple(chance.sample(LAYERS, 2)))),
        classifications=chance.choice((None, None, None, (), tuple(chance.sample(TIERS, 2)))),
    )


def covered(row: Memory, grant: MemoryGrant, action: str, now: datetime) -> bool:
    """Whether a grant, as a person would read it, covers a row of the agent of its connection."""
    if grant.revoked_at is not None or (grant.expires_at is not None and grant.expires_at <= now):
        return False
    if action not in grant.actions or row.project_id is None or row.project_id != grant.project_id:
        return False
    if row.classification not in grant.classifications:
        return False
    wanted = [tag in row.tags for tag in grant.tags]
    if wanted and not (all(wanted) if grant.tags_match == "all" else any(wanted)):
        return False
    over = {source.connection_id for source in row.provenance}
    if grant.provenance == "owner_only":
        return not over
    return grant.provenance == "any" or over == {grant.connection_id}


def live(row: Memory, now: datetime) -> bool:
    ended = row.expires_at is not None and row.expires_at <= now
    return row.retracted_at is None and row.superseded_by is None and not ended


def asked_for(row: Memory, narrow: Narrow) -> bool:
    """Whether a request's own filters let a row through."""
    if narrow.project_id is not None and row.project_id != narrow.project_id:
        return False
    if narrow.tags is not None:
        held = [tag in row.tags for tag in narrow.tags]
        if not held or not (all(held) if narrow.tags_match == "all" else any(held)):
            return False
    if narrow.layers is not None and row.layer not in narrow.layers:
        return False
    return narrow.classifications is None or row.classification in narrow.classifications


def insert(tx: Tx, rows: Sequence[Memory], vectors: dict[str, tuple[float, ...]]) -> None:
    """Put rows into the tables as they are, with their provenance, tokens and vectors."""
    counted = [(row, Counter(tokens(row.text))) for row in rows]
    tx.insert_many(
        """INSERT INTO memories (id, org_id, agent_id, layer, text, project_id, tags, classification, connection_id,
          source_did, sources, created_at, expires_at, retracted_at, superseded_by, words)
          SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[]), unnest($4::VARCHAR[]),
          unnest($5::VARCHAR[]), unnest($6::VARCHAR[]), unnest($7::VARCHAR[][]), unnest($8::VARCHAR[]), unnest($9::VARCHAR[]),
          unnest($10::VARCHAR[]), unnest($11::VARCHAR[][]), unnest($12::TIMESTAMP[]), unnest($13::TIMESTAMP[]),
          unnest($14::TIMESTAMP[]), unnest($15::VARCHAR[]), unnest($16::BIGINT[])""",
        *_columns(
            (row.id, row.org_id, row.agent_id, row.layer, row.text, row.project_id, list(row.tags), row.classification,
             row.connection_id, row.source_did, list(row.sources), row.created_at, row.expires_at, row.retracted_at,
             row.superseded_by, words.total())
            for row, words in counted
        ) or [[]],
    )  # fmt: skip
    tx.insert_many(
        "INSERT INTO memory_provenance SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[])",
        *_columns((row.id, source.connection_id, source.source_did) for row in rows for source in row.provenance) or [[]],
    )
    tx.insert_many(
        """INSERT INTO memory_tokens
          SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[]), unnest($4::BIGINT[])""",
        *_columns((row.agent_id, word, row.id, times) for row, words in counted for word, times in words.items()) or [[]],
    )
    tx.insert_many(
        """INSERT INTO memory_vectors SELECT unnest($1::VARCHAR[]), 0, unnest($2::VARCHAR[]), unnest($3::VARCHAR[]),
          unnest($4::FLOAT[512][])""",
        *_columns((row.id, row.agent_id, MODEL, list(vectors[row.id])) for row in rows) or [[]],
    )


def _columns(rows: Iterable[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def a_vector(chance: random.Random) -> tuple[float, ...]:
    return tuple(chance.uniform(-1, 1) for _ in range(DIMENSIONS))
