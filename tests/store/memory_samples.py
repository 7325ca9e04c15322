"""Memories, remote connections and grants, and what is kept of them in a real database."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

from gateway.model.caller import Caller
from gateway.model.grant import Grant, Session
from gateway.model.memory import Memory, Source, Vector
from gateway.model.records import Agent
from gateway.model.rules import NO_RULES
from gateway.store.db import Database
from gateway.store.memories import add
from gateway.store.memory_rows import read_where
from gateway.store.rows import Rows, Tx
from gateway.store.targets import uid_of
from gateway.store.writer import Unit
from tests.store.samples import a_row

P = ParamSpec("P")
R = TypeVar("R")

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ORG, AGENT = "org", "agent"
OWNER = Caller("Human", "owner", ORG, "credential")
DID = "did:web:peer.example"
DIMENSIONS = 512
#: Where an id may stay: the log and what keeps its decisions from being stored again.
REMEMBER_IDS = {"log", "erased"}
CONNECT = "INSERT INTO remote_connections VALUES ($1, $2, $3, $4, NULL, 'active', $5, $6, 1)"


def a_memory(memory_id: str, text: str = "Sarah joined alpha", **changes: Any) -> Memory:
    """A row of the agent's own."""
    made = Memory(memory_id, ORG, AGENT, "fact", text, None, (), "internal", None, None, NOON)
    return replace(made, **changes)


def stamped(memory_id: str, connection_id: str = "net1", did: str = DID, **changes: Any) -> Memory:
    """A row that came in over a connection."""
    changes = {"connection_id": connection_id, "source_did": did, "provenance": (Source(connection_id, did),), **changes}
    return a_memory(memory_id, **changes)


def an_agent(agent_id: str = AGENT) -> Agent:
    return Agent(agent_id, ORG, "name", "", True, "owner", None, None, NO_RULES, 3600, 1, NOON)


def a_vector(*numbers: float, model: str = "model") -> Vector:
    """A vector that begins with these numbers; the others are 0."""
    return Vector(model, (*numbers, *[0.0] * (DIMENSIONS - len(numbers))))


def granted(target: Memory | Agent, who: Caller = OWNER, now: datetime = NOON) -> Grant[Any]:
    """The proof that somebody may, as the door gives it."""
    return Grant(Session(who, "request", now), "action", uid_of(target), target, a_row(org_id=ORG))


def done(
    store: Database, change: Callable[Concatenate[Tx, Grant[Any], P], R], grant: Grant[Any], *args: P.args, **kw: P.kwargs
) -> R:
    """The result of one change, committed by itself."""
    return store.write(Unit(lambda tx: change(tx, grant, *args, **kw), solo=True)).result()


def remember(store: Database, *rows: Memory, **how: Any) -> None:
    """Write rows, each from its sources as they are kept."""
    for row in rows:
        sources = list(kept(store, row.derived_from).values())
        done(store, add, granted(row, now=how.pop("now", NOON)), row, sources=sources, **how)


def kept(store: Database, ids: Iterable[str] | None = None) -> dict[str, Memory]:
    """The memories that are kept, or some of them, by id."""
    found: list[Memory] = store.read_sync(lambda rows: read_where(rows, "true", ()))
    return {row.id: row for row in sorted(found, key=lambda row: row.id) if ids is None or row.id in ids}


def connected(store: Database, connection_id: str, *, did: str = DID, replaces: str | None = None, agent: str = AGENT) -> None:
    """Keep a connection with a remote agent."""
    store.write(Unit(lambda tx: tx.run(CONNECT, ORG, connection_id, agent, did, replaces, NOON))).result()


def values(store: Database, sql: str, *params: object) -> list[Any]:
    """The first column of what a query finds."""
    return [row[0] for row in store.read_sync(lambda rows: rows.all(sql, *params))]


def counts(store: Database) -> dict[str, int]:
    """How many rows each table about memory has."""
    return {
        table: values(store, f"SELECT count(*) FROM {table}")[0] for table in sorted(tables(store)) if table.startswith("memor")
    }


def tables(store: Database) -> set[str]:
    return set(values(store, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'"))


def naming(store: Database, text: str) -> dict[str, int]:
    """In which tables, and in how many rows, a text stands anywhere; not where ids may stay."""

    def look(rows: Rows) -> dict[str, int]:
        found = {}
        for table in sorted(tables_of(rows) - REMEMBER_IDS):
            found[table] = rows.value(f"SELECT count(*) FROM {table} t WHERE strpos(t::VARCHAR, $1) > 0", text)
        return {table: count for table, count in found.items() if count}

    return store.read_sync(look)


def tables_of(rows: Rows) -> set[str]:
    return {name for (name,) in rows.all("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'")}


def audits(store: Database, action: str) -> list[str]:
    """The details of the audit rows of an action, without the ids of the request."""
    return values(store, "SELECT details FROM log WHERE action = $1 ORDER BY seq", action)
