"""Figures: deriving every fact of a large store, and those of a few people again."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from time import perf_counter

from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.fill import EVENTS_A_BUCKET, fill, fill_events
from gateway.cli.output import Progress
from gateway.config import Settings
from gateway.store.db import Database
from gateway.store.rows import Rows, Tx
from gateway.store.sweep import Swept, derive_all
from gateway.store.writer import Unit
from gateway.wiring import open_services

EVENTS, BUCKETS, DIRTY = 1_000_000, 20, 100
READ = 'SELECT peer_id, fact_key, id, event_type, decision, "at", source, org_id FROM events ORDER BY peer_id, fact_key'
FORGET = "DELETE FROM facts"
#: A person is dirty when one of their buckets is owed: the sweep then derives all that they have.
OWE = """INSERT INTO pending_buckets (peer_id, fact_key, since)
  SELECT peer_id, min(fact_key), $2::TIMESTAMP FROM facts WHERE peer_id IN (SELECT unnest($1::VARCHAR[])) GROUP BY peer_id"""
STALE = "UPDATE facts SET fact_value = '{}' WHERE peer_id IN (SELECT unnest($1::VARCHAR[]))"


@dataclass(frozen=True, slots=True)
class _Seconds:
    """A round each: reading the events, deriving all of them, deriving what is dirty."""

    reading: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    dirty: list[float] = field(default_factory=list)


def derivation(plan: Plan, shown: Progress) -> list[Figure]:
    """Everything from events alone, then a hundred people whose facts are stale, round by round."""
    peers, dirty = plan.size(EVENTS) // (BUCKETS * EVENTS_A_BUCKET), plan.size(DIRTY)
    took = _Seconds()
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory:
        data = Path(directory) / "data"
        filled = fill(data, peers=peers, observers=1, agents=1)
        services = open_services(Settings(data=data))
        try:
            now, database = services.clock(), services.database
            events = fill_events(database, filled.org_id, filled.peers, buckets=BUCKETS, now=now)
            for number in range(plan.rounds):
                shown(number + 1, plan.rounds)
                _round(database, filled.peers[:dirty], peers * BUCKETS, now, took)
        finally:
            services.database.close()
    reading, whole, again = (median(series) for series in (took.reading, took.whole, took.dirty))
    sizes: dict[str, object] = {"events": events, "peers": peers, "facts": peers * BUCKETS}
    return [
        Figure(
            "derive",
            f"derive every fact of {events:,} events",
            "s",
            whole,
            {**sizes, "reading_s": reading, "slowest_s": max(took.whole)},
            aim=at_most(60),
            beside=whole / reading,
        ),
        Figure(
            "derive-dirty",
            f"derive {dirty} people again, of {peers:,}",
            "s",
            again,
            {**sizes, "facts_again": dirty * BUCKETS, "slowest_s": max(took.dirty)},
            aim=at_most(0.3),
            beside=again / whole,
        ),
    ]


def _round(database: Database, dirty: Sequence[str], facts: int, now: datetime, took: _Seconds) -> None:
    start = perf_counter()
    database.read_sync(_read_events)
    took.reading.append(perf_counter() - start)
    _change(database, FORGET)
    swept, seconds = _derive(database, now, only_owed=False)
    took.whole.append(seconds)
    _expect(swept.facts_made, facts)
    _change(database, STALE, list(dirty))
    _change(database, OWE, list(dirty), now)
    swept, seconds = _derive(database, now, only_owed=True)
    took.dirty.append(seconds)
    _expect(swept.facts_changed, len(dirty) * BUCKETS)


def _derive(database: Database, now: datetime, *, only_owed: bool) -> tuple[Swept, float]:
    start = perf_counter()
    swept = asyncio.run(derive_all(database, now, only_owed=only_owed))
    return swept, perf_counter() - start


def _change(database: Database, sql: str, *parameters: object) -> None:
    def run(tx: Tx) -> int:
        return tx.run(sql, *parameters)

    database.write(Unit(run, solo=True)).result()


def _read_events(rows: Rows) -> int:
    return sum(len(batch) for batch in rows.batches(READ, size=10_000))


def _expect(found: int, expected: int) -> None:
    if found != expected:
        raise RuntimeError(f"{found} facts were derived where {expected} were to be")
