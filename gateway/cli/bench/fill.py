"""Filling a store in bulk, as measurements of size need it: valid rows, without a request for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TypeVar

from derive.buckets import bucket_of, fact_key
from gateway.authn.keys import mint_key
from gateway.cli.bench.records import a_human, a_peer, an_agent, id_of
from gateway.config import Settings
from gateway.model.rules import NO_RULES, ApprovalRules
from gateway.store.agents import rules_text
from gateway.store.canonical import canonical, digest
from gateway.store.db import Database
from gateway.store.rows import Tx
from gateway.store.writer import Unit
from gateway.wiring import create_data, open_services, set_up_org

T = TypeVar("T")

#: Rows to a transaction.
CHUNK = 20_000
EVENTS_A_BUCKET = 5
HUMANS = """INSERT INTO humans (id, org_id, email, role, totp_confirmed, generation, created_at)
  SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[]), unnest($4::VARCHAR[]), false, 1,
  unnest($5::TIMESTAMP[])"""
AGENTS = """INSERT INTO agents (id, org_id, name, description, is_active, created_by, approval_policy, token_ttl_seconds,
  attributes, generation, created_at) SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[]), '', true,
  unnest($4::VARCHAR[]), unnest($5::VARCHAR[]), 3600, '{}', 1, unnest($6::TIMESTAMP[])"""
KEYS = """INSERT INTO credentials (id, org_id, principal_type, principal_id, name, secret_hash, created_at)
  SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), 'Agent', unnest($3::VARCHAR[]), 'bench', unnest($4::VARCHAR[]),
  unnest($5::TIMESTAMP[])"""
PEERS = """INSERT INTO peers (id, org_id, peer_type, peer_ref, status, pause_reading, pause_learning, created_at)
  SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), 'user', unnest($3::VARCHAR[]), 'active', false, false,
  unnest($4::TIMESTAMP[])"""
OBSERVERS = """INSERT INTO observers (peer_id, agent_id, added_by, added_at)
  SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[]), unnest($4::TIMESTAMP[])"""
EVENTS = """INSERT INTO events (peer_id, id, org_id, event_type, content, content_hash, "at", source, fact_key, decision,
  learned) SELECT p.peer_id, uuid()::VARCHAR, $2, 'approval', b.content, b.content_hash,
  $6::TIMESTAMP - to_days(n.range::INTEGER), 'gateway', b.fact_key, 'approved', true
  FROM (SELECT unnest($1::VARCHAR[]) AS peer_id) p,
  (SELECT unnest($3::VARCHAR[]) AS fact_key, unnest($4::VARCHAR[]) AS content, unnest($5::VARCHAR[]) AS content_hash) b,
  range($7::BIGINT) n"""


@dataclass(frozen=True, slots=True)
class AgentKey:
    """An agent and the key it shows."""

    id: str
    key: str


@dataclass(frozen=True, slots=True)
class Filled:
    """What was put into a data directory: each peer is observed by the agents from its own number on, in a circle."""

    org_id: str
    agents: tuple[AgentKey, ...]
    peers: tuple[str, ...]
    owner_key: str = field(repr=False)


def fill(data: Path, *, peers: int, observers: int, agents: int, rules: Sequence[ApprovalRules] = ()) -> Filled:
    """Make a data directory with peers about a person each; the first agents have these rules, the others none."""
    create_data(data)
    services = open_services(Settings(data=data))
    try:
        now, database = services.clock(), services.database
        org = set_up_org(services, name="bench", email="owner@bench.example")
        people = (a_human(number + 1, org.org_id, now) for number in range(peers))
        _insert(database, HUMANS, ((p.id, p.org_id, p.email, p.role, now) for p in people))
        keys = _agents(database, [*rules, *[NO_RULES] * (agents - len(rules))], org.org_id, org.owner_id, now)
        made = (a_peer(number, org.org_id, id_of("human", number + 1), now) for number in range(peers))
        _insert(database, PEERS, ((peer.id, org.org_id, peer.peer_ref, now) for peer in made))
        ids = tuple(id_of("peer", number) for number in range(peers))
        listed = (
            (peer_id, keys[(number + step) % agents].id, org.owner_id, now)
            for number, peer_id in enumerate(ids)
            for step in range(observers)
        )
        _insert(database, OBSERVERS, listed)
    finally:
        services.database.close()
    return Filled(org.org_id, keys, ids, org.api_key)


def fill_events(database: Database, org_id: str, peers: Sequence[str], *, buckets: int, now: datetime) -> int:
    """Give each peer a history in so many buckets, enough in each for a fact; return how many events that is."""
    histories = [_history(number) for number in range(buckets)]
    columns = [list(column) for column in zip(*histories, strict=True)]
    chunks = _chunks(peers, max(1, CHUNK // (buckets * EVENTS_A_BUCKET)))
    return sum(database.write(Unit(_running(EVENTS, ids, org_id, *columns, now, EVENTS_A_BUCKET))).result() for ids in chunks)


def _agents(
    database: Database, rules: Sequence[ApprovalRules], org_id: str, owner_id: str, now: datetime
) -> tuple[AgentKey, ...]:
    made = [an_agent(number, org_id, owner_id, now, written) for number, written in enumerate(rules)]
    secrets = [mint_key("ocv_") for _ in made]
    _insert(database, AGENTS, ((agent.id, org_id, agent.name, owner_id, rules_text(agent.rules), now) for agent in made))
    shown = list(zip(made, secrets, strict=True))
    _insert(database, KEYS, ((id_of("key", n), org_id, agent.id, hashed, now) for n, (agent, (_, hashed)) in enumerate(shown)))
    return tuple(AgentKey(agent.id, secret) for agent, (secret, _) in shown)


def _history(number: int) -> tuple[str, str, str]:
    """The fact key of a bucket, and the content of an event in it with its hash."""
    action, payload = f"bench.action_{number}", {"amount_usd": "8.50", "recipient": f"customer-{number}@bench.example"}
    content = {"action": action, "decision": "approved", "payload": payload}
    key = fact_key(bucket_of(action, payload, known_recipient=True))
    return key, canonical(content), digest({"event_type": "approval", "content": content})


def _insert(database: Database, sql: str, rows: Iterable[tuple[object, ...]]) -> None:
    for chunk in _chunks(rows, CHUNK):
        columns = [list(column) for column in zip(*chunk, strict=True)]
        database.write(Unit(_running(sql, *columns))).result()


def _running(sql: str, *parameters: object) -> Callable[[Tx], int]:
    return lambda tx: tx.run(sql, *parameters)


def _chunks(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    waiting = iter(rows)
    while chunk := list(islice(waiting, size)):
        yield chunk
