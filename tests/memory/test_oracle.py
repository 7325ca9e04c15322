"""Which rows come back, against three answers given otherwise: a plain filter, Cedar row by row, and the grants alone.

Rows, grants, policies of the organisation and requests are random. `PEERGATE_ORACLE_ROUNDS` asks for a longer run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pytest

from gateway.access.door import Access
from gateway.access.rows import ROWS_AT_ONCE
from gateway.model.caller import Caller
from gateway.model.condition import TRUE
from gateway.model.decision import Query
from gateway.model.grant import Grant
from gateway.model.memory import Memory, MemoryScope, Narrow, Page, RemoteConnection, Vector
from gateway.moment import Moments
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines
from gateway.policy.sets import PolicySets
from gateway.policy.slice import Slice
from gateway.store import recall
from gateway.store.db import Database
from gateway.store.entities import Compiler, uid_of
from gateway.store.rows import Rows
from gateway.store.words import tokens
from gateway.store.writer import Unit
from tests.memory.random_policies import Written, a_policy
from tests.memory.rows import MODEL, TEXTS, a_grant, a_narrow, a_row, a_vector, asked_for, covered, insert, live
from tests.world import HOME, NOW, PERMIT_ALL, ROOT, World, bundle_of, caller, session, shipped

ROUNDS = int(os.environ.get("PEERGATE_ORACLE_ROUNDS", "30"))
ROWS, REQUESTS = 200, 36
MODES = ("list", "keyword", "semantic", "hybrid")
CONNECTION = caller("conn", "Connection")
ALL = 10_000


class Trial:
    """One random store with its grants and policies."""

    def __init__(self, database: Database, seed: int) -> None:
        self.chance = random.Random(seed)
        self.rows = {row.id: row for row in (a_row(self.chance, f"row-{n:03d}") for n in range(ROWS))}
        self.vectors = {row_id: a_vector(self.chance) for row_id in self.rows}
        count = self.chance.choice((0, 0, 1, 1, 2, 3))
        self.written = [a_policy(self.chance, n, permits=self.chance.random() < 0.3) for n in range(count)]
        self.world = World(with_policies(self.written))
        self.connection = RemoteConnection("conn", HOME, "agent", "did:web:a.example", None, "active", None, NOW)
        self.world.state.put_remote_connection(self.connection)
        self.grants = [a_grant(self.chance, f"grant-{n}") for n in range(self.chance.choice((0, 1, 2, 3, 4)))]
        for grant in self.grants:
            self.world.state.put_memory_grant(grant)
        self.database = database
        database.write(Unit(lambda tx: insert(tx, list(self.rows.values()), self.vectors))).result()

    def plan(self, who: Caller, action: str) -> Grant[MemoryScope]:
        return self.world.access.plan(session(who), f"memory.{action}", self.world.state.agents["agent"])

    def ask(self, mode: str, grant: Grant[MemoryScope], narrow: Narrow, query: str) -> Page:
        vector = Vector(MODEL, self.vectors["row-000"])

        def read(rows: Rows) -> Page:
            match mode:
                case "list":
                    return recall.list_rows(rows, grant, narrow, limit=ALL, after=None)
                case "keyword":
                    return recall.keyword(rows, grant, narrow, query, limit=ALL, offset=0)
                case "semantic":
                    return recall.semantic(rows, grant, narrow, vector, limit=ALL, offset=0)
                case _:
                    return recall.hybrid(rows, grant, narrow, query, vector, limit=ALL, offset=0)

        return self.database.read_sync(read)

    @cached_property
    def slices(self) -> list[tuple[Sequence[Memory], Slice]]:
        """The rows, some at a time, over a slice that holds all that they name."""
        engine, compiler = self.world.engine, Compiler(self.world.state)
        made = []
        for some in batched([*self.rows.values()], ROWS_AT_ONCE):
            entities = {entity.uid: entity for row in some for entity in compiler.compile(CONNECTION, row, NOW)[0]}
            made.append((some, engine.slice(*entities.values())))
        return made

    def by_cedar(self, action: str) -> set[str]:
        """The rows that the engine itself allows the connection, one decision each over a complete slice."""
        context = Moments(self.world.state).at(HOME, NOW).context
        grants = self.world.state.live_grants(self.connection, NOW)
        allowed: set[str] = set()
        for some, slice in self.slices:
            queries = [Query(CONNECTION.uid, f"memory.{action}", uid_of(row), context) for row in some]
            verdicts = self.world.engine.decide_all(queries, slice, grants)
            allowed |= {row.id for row, verdict in zip(some, verdicts, strict=True) if verdict.allowed}
        return allowed

    def forbidden(self, row: Memory, action: str) -> bool:
        asked = [policy for policy in self.written if action in policy.actions and not policy.permits]
        return any(policy.applies(row, NOW) for policy in asked)

    def granted(self, row: Memory, action: str) -> bool:
        at_home = (row.org_id, row.agent_id) == (HOME, "agent")
        return at_home and live(row, NOW) and any(covered(row, grant, action, NOW) for grant in self.grants)


def with_policies(written: Sequence[Written]) -> Bundle:
    """The shipped policies and an organisation's."""
    if not written:
        return shipped()
    texts = {info.file: "" for info in shipped().policies.values()}
    for info in shipped().policies.values():
        texts[info.file] += info.text + "\n"
    own = {"org.cedar": "\n".join(policy.text for policy in written)}
    return Bundle.from_text((ROOT / "schema.cedarschema").read_text(), texts | own, house_rules=False)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Callable[[], Database]]:
    opened: list[Database] = []

    def make() -> Database:
        opened.append(Database.create(tmp_path / f"data-{len(opened)}"))
        return opened[-1]

    yield make
    for database in opened:
        database.close()


def matches(mode: str, row: Memory, query: str) -> bool:
    return mode != "keyword" or bool(set(tokens(row.text)) & set(tokens(query)))


def test_what_comes_back_is_what_a_plain_filter_and_cedar_itself_let_through(stores: Callable[[], Database]) -> None:
    decided = served = 0
    database = stores()
    for seed in range(ROUNDS):
        trial = Trial(database, seed)
        for _ in range(REQUESTS):
            action, mode = trial.chance.choice(("search", "read", "query")), trial.chance.choice(MODES)
            narrow, query = a_narrow(trial.chance), trial.chance.choice(TEXTS)
            grant = trial.plan(CONNECTION, action)
            page = trial.ask(mode, grant, narrow, query)
            got = [found.row.id for found in page.found]
            wanted = {
                row.id
                for row in trial.rows.values()
                if trial.granted(row, action)
                and not trial.forbidden(row, action)
                and asked_for(row, narrow)
                and matches(mode, row, query)
            }
            assert (sorted(got), page.total) == (sorted(wanted), len(wanted)), (seed, mode, narrow)
            allowed = trial.by_cedar(action)
            decided += len(trial.rows)
            assert wanted == {
                row.id
                for row in trial.rows.values()
                if row.id in allowed and asked_for(row, narrow) and matches(mode, row, query)
            }, (seed, mode, narrow)
            served += len(got)
        clear(database)
    assert decided >= min(200_000, ROUNDS * REQUESTS * ROWS)
    assert served > ROUNDS


def test_an_owner_gets_its_own_rows_but_for_what_a_policy_forbids(stores: Callable[[], Database]) -> None:
    database = stores()
    for seed in range(max(1, ROUNDS // 6)):
        trial = Trial(database, seed)
        for who in (caller("agent", "Agent"), caller("admin"), caller("owner")):
            narrow = a_narrow(trial.chance)
            page = trial.ask("list", trial.plan(who, "search"), narrow, "")
            wanted = {
                row.id
                for row in trial.rows.values()
                if (row.org_id, row.agent_id) == (HOME, "agent") and live(row, NOW)
                and asked_for(row, narrow) and not trial.forbidden(row, "search")
            }  # fmt: skip
            assert {found.row.id for found in page.found} == wanted, (seed, who)
        clear(database)


def test_the_grants_alone_hold_when_every_policy_allows_everything(
    stores: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PolicySets, "granted", lambda *_: False)  # nothing that grants compile to, the forbid included
    database = stores()
    for seed in range(max(1, ROUNDS // 3)):
        trial = Trial(database, seed)
        trial.world.access = Access(Engines(PolicyEngine(bundle_of(PERMIT_ALL), salt=b"salt")), trial.world.state)
        for mode in MODES:
            action, narrow, query = trial.chance.choice(("search", "read", "query")), a_narrow(trial.chance), "fox"
            grant = trial.plan(CONNECTION, action)
            assert grant.target.policy == TRUE
            got = {found.row.id for found in trial.ask(mode, grant, narrow, query).found}
            wanted = {
                row.id
                for row in trial.rows.values()
                if trial.granted(row, action) and asked_for(row, narrow) and matches(mode, row, query)
            }
            assert got == wanted, (seed, mode)
        clear(database)


def test_the_policies_alone_hold_when_the_grants_are_not_looked_at(stores: Callable[[], Database]) -> None:
    database = stores()
    for seed in range(max(1, ROUNDS // 3)):
        trial = Trial(database, seed)
        for mode in MODES:
            action = trial.chance.choice(("search", "read", "query"))
            planned = trial.plan(CONNECTION, action)
            grant = replace(planned, target=replace(planned.target, floor=TRUE))
            got = {found.row.id for found in trial.ask(mode, grant, Narrow(), "fox").found}
            wanted = {
                row.id
                for row in trial.rows.values()
                if trial.granted(row, action) and not trial.forbidden(row, action) and matches(mode, row, "fox")
            }
            assert got == wanted, (seed, mode)
        clear(database)


@pytest.mark.parametrize("mode", MODES)
def test_hidden_rows_change_nothing_that_a_connection_sees(stores: Callable[[], Database], mode: str) -> None:
    for seed in range(max(1, ROUNDS // 10)):
        trial = Trial(stores(), seed)
        grant = trial.plan(CONNECTION, "search")
        visible = {found.row.id for found in trial.ask("list", grant, Narrow(), "").found}
        alone = stores()
        kept = [row for row in trial.rows.values() if row.id in visible]
        alone.write(Unit(lambda tx, kept=kept, trial=trial: insert(tx, kept, trial.vectors))).result()
        with_hidden = trial.ask(mode, grant, Narrow(), "the quick C++ fox")
        trial.database = alone
        assert trial.ask(mode, grant, Narrow(), "the quick C++ fox") == with_hidden


def batched(rows: Sequence[Memory], size: int) -> Iterator[Sequence[Memory]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def clear(database: Database) -> None:
    tables = ("memories", "memory_tokens", "memory_vectors", "memory_provenance", "memory_links")
    database.write(Unit(lambda tx: [tx.run(f"DELETE FROM {table}") for table in tables])).result()
