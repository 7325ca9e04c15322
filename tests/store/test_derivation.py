"""Derivation and its sweep over a real store: facts are a function of the set of events, and nothing is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.store.db import Database
from gateway.store.derivation import rederive
from gateway.store.retention import Buried, bury_expired, next_expiry
from gateway.store.rows import Tx
from gateway.store.sweep import Swept, bury_all, derive_all, owed
from gateway.store.writer import Unit

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)
PEER, ORG = "p1", "o1"
KEY = "approval_tendency:refund.create|0-10|new|a@b.co"
INSERT = """INSERT INTO events VALUES ($1, $2, $3, 'approval', '{}', 'hash', $4, $5, $6, $7, $8)"""
FACTS = "SELECT peer_id, fact_key, live, fact_value, confidence, edited_by_human FROM facts ORDER BY peer_id, fact_key"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    made = Database.create(tmp_path / "data")
    yield made
    made.close()


def change(store: Database, *statements: tuple[Any, ...]) -> None:
    def run(tx: Tx) -> None:
        for sql, *params in statements:
            tx.run(sql, *params)

    store.write(Unit(run)).result()


def event(
    event_id: str, decision: str = "approved", at: datetime = NOON, key: str = KEY, *, learned: bool = True
) -> tuple[Any, ...]:
    return (INSERT, PEER, event_id, ORG, at, "agent:a", key, decision, learned)


def derive(store: Database, now: datetime = NOON, key: str = KEY) -> None:
    store.write(Unit(lambda tx: rederive(tx, PEER, key, org_id=ORG, now=now))).result()


def sweep(store: Database, now: datetime = NOON, **options: Any) -> Swept:
    return asyncio.run(derive_all(store, now, **options))


def rows(store: Database, sql: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = store.read_sync(lambda read: read.all(sql))
    return found


def ids(store: Database, table: str) -> list[str]:
    return [row[0] for row in rows(store, f"SELECT id FROM {table} ORDER BY id")]


def test_any_order_of_arrival_gives_the_same_facts(tmp_path: Path) -> None:
    history = [event(f"e{n}", "approved", NOON + n * DAY) for n in range(5)]
    history += [event(f"r{n}", "rejected" if n == 2 else "approved", key=KEY.replace("a@", "m@")) for n in range(4)]
    found = []
    for seed in range(3):
        shuffled: Sequence[tuple[Any, ...]] = random.Random(seed).sample(history, len(history))
        store = Database.create(tmp_path / str(seed))
        for each in shuffled:
            change(store, each)
            derive(store, NOON + 5 * DAY, each[6])
        found.append([row for row in rows(store, FACTS) if row[2]])
        store.close()
    assert found[0] == found[1] == found[2]
    assert [(row[1], row[4]) for row in found[0]] == [(KEY, "0.81")]


def test_a_bulk_import_gives_the_facts_and_evidence_of_one_by_one(store: Database, tmp_path: Path) -> None:
    history = [event(f"e{n}") for n in range(4)]
    change(store, *history)
    assert sweep(store) == Swept(peers=1, buckets=1, facts_made=1)
    other = Database.create(tmp_path / "other")
    for each in history:
        change(other, each)
        derive(other)
    assert rows(store, FACTS) == rows(other, FACTS)
    assert rows(store, "SELECT * FROM provenance") == rows(other, "SELECT * FROM provenance") == []
    other.close()


def test_twice_is_once(store: Database) -> None:
    change(store, *[event(f"e{n}") for n in range(3)])
    sweep(store)
    before = rows(store, "SELECT * FROM facts")
    assert sweep(store, NOON + DAY) == Swept(peers=1, buckets=1)
    derive(store, NOON + DAY)
    assert rows(store, "SELECT * FROM facts") == before


def test_a_sweep_makes_changes_and_retires(store: Database) -> None:
    change(store, *[event(f"e{n}") for n in range(3)])
    sweep(store)
    change(store, event("e3"))
    assert sweep(store) == Swept(peers=1, buckets=1, facts_changed=1)
    change(store, event("e4", "rejected"))
    assert sweep(store) == Swept(peers=1, buckets=1, facts_retired=1)
    assert [row[2] for row in rows(store, FACTS)] == [False]


def test_a_dry_run_says_what_would_be_and_leaves_no_trace(store: Database) -> None:
    change(store, *[event(f"e{n}") for n in range(3)])
    told: list[str] = []
    assert sweep(store, dry_run=True, progress=told.append) == Swept(peers=1, buckets=1, facts_made=1)
    assert (rows(store, FACTS), ids(store, "events"), told) == ([], ["e0", "e1", "e2"], ["1 of 1 peers, 1 buckets"])
    sweep(store)
    would = sweep(store, NOON + 90 * DAY, dry_run=True)
    assert would == Swept(peers=1, buckets=1, events_expired=3, tombstones=3)
    assert ids(store, "events") == ["e0", "e1", "e2"]
    assert sweep(store, NOON + 90 * DAY) == would


def test_a_derivation_that_fails_is_owed_and_loses_no_event(store: Database) -> None:
    bad = "approval_tendency:no bucket"
    change(store, *[event(f"e{n}", key=bad) for n in range(3)])
    derive(store, key=bad)
    assert (rows(store, "SELECT peer_id, fact_key FROM pending_buckets"), ids(store, "events")) == (
        [(PEER, bad)],
        ["e0", "e1", "e2"],
    )
    assert store.read_sync(owed) == 1
    assert sweep(store, NOON + 100 * DAY) == Swept(peers=1, failed=1, buckets=1)
    assert ids(store, "events") == ["e0", "e1", "e2"]


def test_one_bucket_that_fails_stops_no_other(store: Database) -> None:
    change(store, *[event(f"b{n}", key="bad") for n in range(3)], *[event(f"e{n}") for n in range(3)])
    assert sweep(store) == Swept(peers=1, buckets=2, facts_made=1, failed=1)
    assert [row[1] for row in rows(store, FACTS)] == [KEY]
    assert rows(store, "SELECT fact_key FROM pending_buckets") == [("bad",)]


def test_what_is_owed_is_derived_as_it_would_have_been_in_time_and_then_buried(store: Database) -> None:
    change(store, *[event(f"e{n}") for n in range(3)], ("INSERT INTO pending_buckets VALUES ($1, $2, $3)", PEER, KEY, NOON))
    late = NOON + 95 * DAY
    assert sweep(store, late, only_owed=True) == Swept(peers=1, buckets=1, facts_made=1, events_expired=3, tombstones=3)
    assert (rows(store, "SELECT * FROM pending_buckets"), ids(store, "events"), ids(store, "provenance")) == (
        [],
        [],
        ["e0", "e1", "e2"],
    )
    assert [row[2] for row in rows(store, FACTS)] == [True]


def test_the_next_event_pays_what_is_owed(store: Database) -> None:
    change(store, *[event(f"e{n}") for n in range(3)], ("INSERT INTO pending_buckets VALUES ($1, $2, $3)", PEER, KEY, NOON))
    derive(store)
    assert (rows(store, "SELECT * FROM pending_buckets"), len(rows(store, FACTS))) == ([], 1)


def test_what_is_not_learned_or_suppressed_is_not_derived(store: Database) -> None:
    change(store, *[event(f"e{n}", learned=n < 2) for n in range(4)])
    change(store, *[event(f"s{n}", key=KEY.replace("a@", "s@")) for n in range(3)])
    change(store, ("INSERT INTO suppressions VALUES ($1, $2, $3, 'u')", PEER, KEY.replace("a@", "s@"), NOON))
    assert sweep(store) == Swept(peers=1, buckets=1)
    derive(store, key=KEY.replace("a@", "s@"))
    assert rows(store, FACTS) == []


def test_a_correction_always_wins(store: Database) -> None:
    change(store, *[event(f"e{n}") for n in range(3)])
    derive(store)
    change(store, ("UPDATE facts SET edited_by_human = true, fact_value = '{}', confidence = NULL",))
    corrected = rows(store, "SELECT * FROM facts")
    change(store, event("e3", "rejected"))
    derive(store, NOON + DAY)
    assert sweep(store, NOON + DAY) == Swept(peers=1, buckets=1)
    assert rows(store, "SELECT * FROM facts") == corrected


@pytest.mark.parametrize(("age", "buried"), [(90 * DAY - timedelta(microseconds=1), 0), (90 * DAY, 3), (91 * DAY, 3)])
def test_an_event_is_buried_at_ninety_days_exactly(store: Database, age: timedelta, buried: int) -> None:
    change(store, *[event(f"e{n}") for n in range(3)])
    derive(store)
    assert store.write(Unit(lambda tx: bury_expired(tx, NOON + age))).result() == Buried(buried, buried)
    assert store.write(Unit(lambda tx: bury_expired(tx, NOON + age, peers=[PEER]))).result() == Buried(0, 0)
    assert (len(ids(store, "events")), len(ids(store, "provenance"))) == (3 - buried, buried)


def test_events_of_a_bucket_without_a_fact_leave_nothing_and_those_of_a_retired_one_leave_tombstones(store: Database) -> None:
    change(store, *[event(f"e{n}") for n in range(3)])
    derive(store)
    change(store, event("dissent", "rejected"), *[event(f"x{n}", key=KEY.replace("a@", "x@")) for n in range(2)])
    derive(store)
    assert store.write(Unit(lambda tx: bury_expired(tx, NOON + 90 * DAY))).result() == Buried(6, 4)
    assert ids(store, "provenance") == ["dissent", "e0", "e1", "e2"]
    change(store, *[event(f"n{n}", at=NOON + 90 * DAY) for n in range(5)])
    derive(store, NOON + 90 * DAY)
    assert [row[2] for row in rows(store, FACTS)] == [False]


def test_a_fact_whose_entries_are_all_tombstones_stays(store: Database) -> None:
    change(store, *[event(f"e{n}") for n in range(3)])
    derive(store)
    before = rows(store, FACTS)
    assert sweep(store, NOON + 365 * DAY) == Swept(peers=1, buckets=1, events_expired=3, tombstones=3)
    assert sweep(store, NOON + 366 * DAY) == Swept(peers=1, buckets=1)
    assert rows(store, FACTS) == before


def test_the_next_expiry_is_that_of_the_oldest_event(store: Database) -> None:
    assert store.read_sync(lambda read: next_expiry(read, PEER)) is None
    change(store, event("e1", at=NOON + DAY), event("e0"))
    assert store.read_sync(lambda read: next_expiry(read, PEER)) == NOON + 90 * DAY


def test_many_peers_are_swept_in_chunks(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.sweep.CHUNK", 5)
    change(store, *[(INSERT, f"p{n % 7}", f"e{n}", ORG, NOON, "agent:a", KEY, "approved", True) for n in range(28)])
    told: list[str] = []
    assert sweep(store, progress=told.append) == Swept(peers=7, buckets=7, facts_made=7)
    assert told == [f"{done} of 7 peers, {done} buckets" for done in (2, 4, 6, 7)]


def test_the_daily_sweep_buries_in_chunks_what_has_expired_and_derives_nothing(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.sweep.BURIED_CHUNK", 2)
    change(store, *[(INSERT, f"p{n}", "old", ORG, NOON, "agent:a", KEY, "approved", True) for n in range(5)])
    change(store, *[(INSERT, f"p{n}", "new", ORG, NOON + DAY, "agent:a", KEY, "approved", True) for n in range(5)])
    assert asyncio.run(bury_all(store, NOON + 90 * DAY)) == Buried(5, 0)
    assert (set(ids(store, "events")), rows(store, FACTS)) == ({"new"}, [])


def test_an_organisation_sweeps_its_own_peers_only(store: Database) -> None:
    change(store, *[(INSERT, f"p{n % 2}", f"e{n}", f"o{n % 2}", NOON, "agent:a", KEY, "approved", True) for n in range(6)])
    insert = "INSERT INTO peers VALUES ($1, $2, 'external', $1, NULL, NULL, 'active', false, false, NULL, $3)"
    change(store, *[(insert, f"p{n}", f"o{n}", NOON) for n in range(2)])
    assert sweep(store, org_id="o1") == Swept(peers=1, buckets=1, facts_made=1)
    assert [row[0] for row in rows(store, FACTS)] == ["p1"]
