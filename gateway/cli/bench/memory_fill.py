"""Memories to measure in: an agent's rows in bulk, and a remote connection that is granted some of its projects."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from gateway.cli.bench.fill import fill
from gateway.cli.bench.records import id_of
from gateway.config import Settings
from gateway.model.caller import Caller
from gateway.model.grant import Grant, Session
from gateway.model.memory import NO_LIMITS, TEMPLATE_VERSION, Memory, MemoryGrant, MemoryScope, RemoteConnection
from gateway.model.records import Agent
from gateway.operations.call import Services
from gateway.store.rows import Rows, Tx
from gateway.store.words import tokens
from gateway.store.writer import Unit
from gateway.wiring import open_services

T = TypeVar("T")

PROJECTS = 100
WORDS, VOCABULARY = 12, 5_000
MODEL = "bench"
#: Rows to a transaction; with vectors, which are large, fewer.
CHUNK, VECTORS_CHUNK = 100_000, 10_000
# A word is the more frequent the lower its number: half of the rows hold `w0`. Ids are in no order, as those of the gateway.
MADE_ROWS = """INSERT INTO memories (id, org_id, agent_id, layer, text, project_id, tags, classification, sources, created_at,
  words) SELECT md5(n::VARCHAR), $1, $2, 'fact', array_to_string(list_transform(range($5::BIGINT),
    lambda w: 'w' || floor($6::BIGINT * power((hash(n * $5::BIGINT + w) % 1000003) / 1000003, 3))::BIGINT), ' '),
  'project-' || (n % $7::BIGINT), ['tag-' || (n % 7)], 'internal', [], $8::TIMESTAMP - to_seconds(n), $5::BIGINT
  FROM range($3::BIGINT, $4::BIGINT) made(n)"""
MADE_TOKENS = """INSERT INTO memory_tokens (agent_id, token, memory_id, times) SELECT $1, token, memory_id, count(*)
  FROM (SELECT m.id AS memory_id, unnest(string_split(m.text, ' ')) AS token
    FROM range($2::BIGINT, $3::BIGINT) made(n) JOIN memories m ON m.id = md5(made.n::VARCHAR)) GROUP BY memory_id, token"""
MADE_VECTORS = """INSERT INTO memory_vectors (memory_id, piece, agent_id, model, vector) SELECT md5(n::VARCHAR), 0, $1, $2,
  list_transform(range(512), lambda i: (hash(n * 512 + i) % 2001)::FLOAT / 1000 - 1)::FLOAT[512]
  FROM range($3::BIGINT, $4::BIGINT) made(n)"""
GIVEN_ROWS = """INSERT INTO memories (id, org_id, agent_id, layer, text, project_id, tags, classification, sources, created_at,
  words) SELECT unnest($1::VARCHAR[]), $2, $3, unnest($4::VARCHAR[]), unnest($5::VARCHAR[]), unnest($6::VARCHAR[]),
  string_split(unnest($7::VARCHAR[]), ' '), unnest($8::VARCHAR[]), [], unnest($9::TIMESTAMP[]), unnest($10::BIGINT[])"""
GIVEN_TOKENS = """INSERT INTO memory_tokens (agent_id, token, memory_id, times)
  SELECT $1, unnest($2::VARCHAR[]), unnest($3::VARCHAR[]), unnest($4::BIGINT[])"""


@dataclass(frozen=True, slots=True)
class Remembered:
    """An open gateway with the memory of one agent, and a remote connection that may see some of it."""

    services: Services
    agent: Agent
    connection: RemoteConnection

    def plan(self, action: str = "memory.search") -> Grant[MemoryScope]:
        """Which rows the remote connection may have, decided as for a request of its own."""
        caller = Caller("Connection", self.connection.id, self.connection.org_id, "bench")
        return self.services.access.plan(Session(caller, "bench", self.services.clock()), action, self.agent)

    def read(self, ask: Callable[[Rows], T]) -> T:
        return self.services.database.read_sync(ask)

    def grant(self, number: int, project_id: str) -> None:
        """Let the connection search and read one more project."""
        self.services.state.put_memory_grant(a_grant(number, self.connection, project_id, self.services.clock()))


@contextmanager
def remembered(projects: Sequence[str]) -> Iterator[Remembered]:
    """A gateway in a temporary directory whose remote connection is granted these projects; nothing is remembered yet."""
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory:
        data = Path(directory) / "data"
        filled = fill(data, peers=0, observers=0, agents=1)
        services = open_services(Settings(data=data, embedding="off"))
        try:
            now = services.clock()
            connection = a_connection(0, filled.org_id, filled.agents[0].id, now)
            services.state.put_remote_connection(connection)
            made = Remembered(services, services.state.agents[filled.agents[0].id], connection)
            for number, project_id in enumerate(projects):
                made.grant(number, project_id)
            yield made
        finally:
            services.database.close()


def a_connection(number: int, org_id: str, agent_id: str, now: datetime) -> RemoteConnection:
    return RemoteConnection(
        id_of("remote", number), org_id, agent_id, f"did:web:remote-{number}.example", None, "active", None, now
    )


def a_grant(number: int, connection: RemoteConnection, project_id: str, now: datetime) -> MemoryGrant:
    """What a person who names nothing but a project grants."""
    return MemoryGrant(
        id=id_of("grant", number),
        org_id=connection.org_id,
        connection_id=connection.id,
        actions=("search", "read"),
        project_id=project_id,
        tags=(),
        tags_match="any",
        classifications=("public", "internal"),
        provenance="any",
        expires_at=None,
        limits=NO_LIMITS,
        template_version=TEMPLATE_VERSION,
        created_by="bench",
        created_at=now,
    )


def fill_made(memory: Remembered, rows: int) -> None:
    """Remember so many rows of made-up words, spread evenly over 100 projects named `project-0` and so on."""
    agent, now = memory.agent, memory.services.clock()
    for start in range(0, rows, CHUNK):
        end = min(start + CHUNK, rows)
        _run(memory, MADE_ROWS, agent.org_id, agent.id, start, end, WORDS, VOCABULARY, PROJECTS, now)
        _run(memory, MADE_TOKENS, agent.id, start, end)


def fill_vectors(memory: Remembered, rows: int) -> None:
    """Give the made-up rows a vector each, in no direction in particular."""
    for start in range(0, rows, VECTORS_CHUNK):
        _run(memory, MADE_VECTORS, memory.agent.id, MODEL, start, min(start + VECTORS_CHUNK, rows))


def fill_given(memory: Remembered, rows: Sequence[Memory]) -> None:
    """Remember these rows, each as a row of this memory's agent."""
    agent = memory.agent
    counted = [(row.id, Counter(tokens(row.text))) for row in rows]
    _run(
        memory,
        GIVEN_ROWS,
        [row.id for row in rows],
        *(agent.org_id, agent.id),
        [row.layer for row in rows],
        [row.text for row in rows],
        [row.project_id for row in rows],
        [" ".join(row.tags) for row in rows],
        [row.classification for row in rows],
        [row.created_at for row in rows],
        [times.total() for _, times in counted],
    )
    postings = [(token, row_id, times) for row_id, counts in counted for token, times in counts.items()]
    _run(memory, GIVEN_TOKENS, agent.id, *(list(column) for column in zip(*postings, strict=True)))


def _run(memory: Remembered, sql: str, *parameters: object) -> None:
    def run(tx: Tx) -> int:
        return tx.run(sql, *parameters)

    memory.services.database.write(Unit(run)).result()
