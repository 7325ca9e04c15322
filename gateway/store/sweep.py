"""Sweep: every fact derived again and every expired event buried, some peers to a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from derive import bands
from derive.events import RETENTION
from gateway.store.db import Database
from gateway.store.derivation import DERIVATION_FAILED, Key, Outcome, Standing, owe, pay, settle, write_outcomes
from gateway.store.rebanding import WAITING, reband
from gateway.store.retention import Buried, bury_expired
from gateway.store.rows import Rows, Tx
from gateway.store.writer import Unit

#: Events to a transaction: enough that a commit costs little, few enough that other writers do not wait for long.
CHUNK = 50_000
#: Expired events to a transaction: deleting one takes some 50 us at the commit, while every other writer waits.
BURIED_CHUNK = 2_000

PEERS = """SELECT peer_id, sum(n)::BIGINT FROM (
  SELECT peer_id, count(*) AS n FROM events GROUP BY peer_id
  UNION ALL SELECT peer_id, count(*) FROM facts GROUP BY peer_id
  UNION ALL SELECT peer_id, count(*) FROM suppressions GROUP BY peer_id
  UNION ALL SELECT peer_id, count(*) FROM pending_buckets GROUP BY peer_id) AS held
  WHERE $1::VARCHAR IS NULL OR peer_id IN (SELECT id FROM peers WHERE org_id = $1) GROUP BY peer_id ORDER BY peer_id"""
EXPIRED = 'SELECT peer_id, count(*) FROM events WHERE "at" <= $1::TIMESTAMP GROUP BY peer_id ORDER BY peer_id'
OWING = f"""SELECT peer_id, sum(n)::BIGINT FROM (
  SELECT peer_id, count(*) AS n FROM pending_buckets GROUP BY peer_id UNION ALL {WAITING}) AS held
  WHERE $1::VARCHAR IS NULL OR peer_id IN (SELECT id FROM peers WHERE org_id = $1) GROUP BY peer_id ORDER BY peer_id"""  # noqa: S608  # constants only
HISTORY = """SELECT peer_id, fact_key, id, event_type, decision, "at", source, org_id FROM events
  WHERE learned AND fact_key IS NOT NULL AND peer_id IN (SELECT unnest($1::VARCHAR[]))
UNION ALL SELECT peer_id, fact_key, id, event_type, decision, "at", NULL, NULL FROM provenance
  WHERE kind = 'tombstone' AND peer_id IN (SELECT unnest($1::VARCHAR[])) ORDER BY peer_id, fact_key"""
FACTS = """SELECT peer_id, fact_key, live, edited_by_human, bands_version, fact_value, confidence FROM facts
  WHERE peer_id IN (SELECT unnest($1::VARCHAR[]))"""
SUPPRESSED = "SELECT peer_id, fact_key FROM suppressions WHERE peer_id IN (SELECT unnest($1::VARCHAR[]))"
OWED = "SELECT peer_id, fact_key FROM pending_buckets WHERE peer_id IN (SELECT unnest($1::VARCHAR[]))"


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found and did, or would do: counts of peers, buckets, facts and events."""

    peers: int = 0
    buckets: int = 0
    facts_made: int = 0
    facts_changed: int = 0
    facts_retired: int = 0
    events_expired: int = 0
    tombstones: int = 0
    failed: int = 0

    def __add__(self, other: Swept) -> Swept:
        return Swept(*(getattr(self, name) + getattr(other, name) for name in Swept.__slots__))


class _DryRun(Exception):
    """Ends a transaction that must leave no trace, with what it would have done."""

    def __init__(self, swept: Swept) -> None:
        super().__init__("dry run")
        self.swept = swept


async def derive_all(
    database: Database,
    now: datetime,
    *,
    dry_run: bool = False,
    only_owed: bool = False,
    org_id: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Swept:
    """Derive every fact and bury what has expired, as of `now`; twice is once.

    With `only_owed`, just the peers with buckets whose derivation failed or is of an earlier table of bands; with `org_id`,
    just the peers of one organisation. What still fails stays owed.
    """
    table = (list(bands.BANDS), bands.BANDS_VERSION)
    peers = await database.read(lambda rows: rows.all(OWING, org_id, *table) if only_owed else rows.all(PEERS, org_id))
    total, done = Swept(), 0
    for chunk in _chunks(peers, CHUNK):
        total += await _sweep(database, chunk, now, dry_run=dry_run)
        done += len(chunk)
        progress(f"{done} of {len(peers)} peers, {total.buckets} buckets")
    return total


async def bury_all(database: Database, now: datetime) -> Buried:
    """Bury what has expired, without deriving: the daily sweep. Deletions cost most at commit, so commits are small."""
    peers = await database.read(lambda rows: rows.all(EXPIRED, now - RETENTION))
    total = Buried(0, 0)
    for chunk in _chunks(peers, BURIED_CHUNK):
        total += await database.awrite(Unit(lambda tx, which=chunk: bury_expired(tx, now, peers=which)))  # type: ignore[misc]
    return total


def owed(rows: Rows) -> int:
    """How many buckets wait for a derivation that failed."""
    return int(rows.value("SELECT count(*) FROM pending_buckets"))


def lag(rows: Rows, now: datetime) -> tuple[int, float]:
    """How many buckets wait for a derivation that failed, and for how many seconds the oldest of them has."""
    count, oldest = rows.all("SELECT count(*), min(since) FROM pending_buckets")[0]
    return int(count), max(0.0, (now - oldest).total_seconds()) if count else 0.0


async def _sweep(database: Database, peers: Sequence[str], now: datetime, *, dry_run: bool) -> Swept:
    def run(tx: Tx) -> Swept:
        swept = sweep_peers(tx, peers, now)
        if dry_run:
            raise _DryRun(swept)
        return swept

    try:
        return await database.awrite(Unit(run, solo=True))
    except _DryRun as ended:
        return ended.swept


def sweep_peers(tx: Tx, peers: Sequence[str], now: datetime) -> Swept:
    """Derive and bury for some peers.

    A bucket that is owed is derived with everything it holds, as it would have been in time; after that its expired events
    are buried as well. What has expired is buried before the rest comes under another table of bands: its tombstones belong
    to the facts it spoke for.
    """
    which = list(peers)
    buried = bury_expired(tx, now, peers=which)
    reband(tx, which)
    due = {(peer_id, key) for peer_id, key in tx.all(OWED, which)}
    outcomes, failed = _outcomes(tx, which)
    touched = write_outcomes(tx, outcomes, now)
    if paid := due - failed:
        pay(tx, paid)
        buried += bury_expired(tx, now, peers=which)
    owe(tx, failed - due, now)

    def publish() -> None:
        for peer_id in touched:
            tx.state.facts_changed(peer_id)

    tx.after_commit(publish)
    kinds = Counter(outcome.kind for outcome, _ in outcomes.values())
    return Swept(
        peers=len(which),
        buckets=len(outcomes) + len(failed),
        facts_made=kinds["made"],
        facts_changed=kinds["changed"],
        facts_retired=kinds["retired"],
        events_expired=buried.events,
        tombstones=buried.tombstones,
        failed=len(failed),
    )


def _outcomes(tx: Tx, peers: list[str]) -> tuple[dict[Key, tuple[Outcome, str]], set[Key]]:
    """What becomes of each bucket, with its organisation; and which of them could not be derived."""
    standing = {(row[0], row[1]): Standing(*row[2:]) for row in tx.all(FACTS, peers)}
    suppressed = {(peer_id, key) for peer_id, key in tx.all(SUPPRESSED, peers)}
    history: dict[Key, list[tuple[Any, ...]]] = {
        bucket: list(rows) for bucket, rows in groupby(tx.all(HISTORY, peers), itemgetter(0, 1))
    }
    outcomes: dict[Key, tuple[Outcome, str]] = {}
    failed: set[Key] = set()
    for bucket in (standing.keys() | history.keys()) - suppressed:
        rows = history.get(bucket, [])
        try:
            outcome = settle(bucket[1], standing.get(bucket), [row[2:7] for row in rows])
        except DERIVATION_FAILED:
            failed.add(bucket)
        else:
            outcomes[bucket] = (outcome, next((row[7] for row in rows if row[7] is not None), ""))
    return outcomes, failed


def _chunks(peers: Sequence[tuple[Any, ...]], most: int) -> Iterator[list[str]]:
    chunk: list[str] = []
    held = 0
    for peer_id, count in peers:
        chunk.append(peer_id)
        held += count
        if held >= most:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk
