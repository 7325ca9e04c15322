"""Derivation: the learned events of a bucket become its fact, or end it, in the transaction that changed them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from derive import bands
from derive.buckets import bucket_of_key
from derive.events import Observation, Tombstone, is_expired
from derive.rules.approval_tendency import Tendency, derive_tendency
from gateway.store.canonical import canonical
from gateway.store.retention import bury_expired
from gateway.store.rows import Tx

#: What a pure function raises over a row that it cannot read. The bucket is owed then; its events are not lost.
DERIVATION_FAILED = (ValueError, TypeError, LookupError, ArithmeticError)

STANDING = """SELECT 'fact', live, edited_by_human, bands_version, fact_value, confidence FROM facts
  WHERE peer_id = $1 AND fact_key = $2
UNION ALL SELECT 'owed', NULL, NULL, NULL, NULL, NULL FROM pending_buckets WHERE peer_id = $1 AND fact_key = $2
UNION ALL SELECT 'suppressed', NULL, NULL, NULL, NULL, NULL FROM suppressions WHERE peer_id = $1 AND fact_key = $2"""
HISTORY = """SELECT id, event_type, decision, "at", source FROM events WHERE peer_id = $1 AND fact_key = $2 AND learned
UNION ALL SELECT id, event_type, decision, "at", NULL FROM provenance
  WHERE peer_id = $1 AND fact_key = $2 AND kind = 'tombstone'"""
# A list a column, because a sweep writes many facts at once.
MAKE = """INSERT INTO facts (peer_id, fact_key, org_id, live, fact_value, confidence, edited_by_human, disputed, replaced,
  bands_version, updated_at) SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[]), true,
  unnest($4::VARCHAR[]), unnest($5::VARCHAR[]), false, false, NULL, $6::BIGINT, $7::TIMESTAMP"""
CHANGE = """UPDATE facts SET live = true, fact_value = c.fact_value, confidence = c.confidence, bands_version = $5::BIGINT,
  updated_at = $6::TIMESTAMP FROM (SELECT unnest($1::VARCHAR[]) AS peer_id, unnest($2::VARCHAR[]) AS fact_key,
  unnest($3::VARCHAR[]) AS fact_value, unnest($4::VARCHAR[]) AS confidence) c
  WHERE facts.peer_id = c.peer_id AND facts.fact_key = c.fact_key AND NOT facts.edited_by_human"""
RETIRE = """UPDATE facts SET live = false, updated_at = $3::TIMESTAMP
  FROM (SELECT unnest($1::VARCHAR[]) AS peer_id, unnest($2::VARCHAR[]) AS fact_key) c
  WHERE facts.peer_id = c.peer_id AND facts.fact_key = c.fact_key AND NOT facts.edited_by_human"""
OWE = """INSERT INTO pending_buckets (peer_id, fact_key, since)
  SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), $3::TIMESTAMP ON CONFLICT DO NOTHING"""
PAID = """DELETE FROM pending_buckets USING (SELECT unnest($1::VARCHAR[]) AS peer_id, unnest($2::VARCHAR[]) AS fact_key) c
  WHERE pending_buckets.peer_id = c.peer_id AND pending_buckets.fact_key = c.fact_key"""

#: A peer's id and the key of one of its facts.
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Standing:
    """A fact as it is stored; `live` is false for a retired one."""

    live: bool
    edited: bool
    bands_version: int
    fact_value: str
    confidence: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What derivation does to a stored fact; value and confidence are None unless it is made or changed."""

    kind: Literal["kept", "made", "changed", "retired"]
    fact_value: str = ""
    confidence: str | None = None


def rederive(tx: Tx, peer_id: str, fact_key: str, *, org_id: str, now: datetime) -> None:
    """Bring the fact of one bucket in line with its history. What fails is owed, and nothing is lost.

    Expired events are buried first, so that they count only where their tombstones do; in a bucket that is owed they
    count as they would have counted in time.
    """
    tx.after_commit(lambda: tx.state.facts_changed(peer_id))
    marks = {row[0]: row[1:] for row in tx.all(STANDING, peer_id, fact_key)}
    if "suppressed" in marks:
        return
    history = tx.all(HISTORY, peer_id, fact_key)
    if "owed" not in marks and any(row[4] is not None and is_expired(row[3], now) for row in history):
        bury_expired(tx, now, peers=(peer_id,))
        history = tx.all(HISTORY, peer_id, fact_key)
    standing = Standing(*marks["fact"]) if "fact" in marks else None
    try:
        outcome = settle(fact_key, standing, history)
    except DERIVATION_FAILED:
        owe(tx, [(peer_id, fact_key)], now)
        return
    write_outcomes(tx, {(peer_id, fact_key): (outcome, org_id)}, now)
    if "owed" in marks:
        pay(tx, [(peer_id, fact_key)])
        bury_expired(tx, now, peers=(peer_id,))


def settle(fact_key: str, standing: Standing | None, history: Sequence[tuple[Any, ...]]) -> Outcome:
    """What becomes of a fact, from the whole history of its bucket as `HISTORY` gives it, in any order.

    INVARIANT: a fact that a human edited is kept, whatever the history says.
    """
    if standing is not None and standing.edited:
        return Outcome("kept")
    tendency = _tendency(fact_key, history)
    if tendency is None:
        return Outcome("retired" if standing is not None and standing.live else "kept")
    value = canonical(tendency.fact_value())
    if standing is None:
        return Outcome("made", value, tendency.confidence)
    if standing == Standing(True, False, bands.BANDS_VERSION, value, tendency.confidence):
        return Outcome("kept")
    return Outcome("changed", value, tendency.confidence)


def write_outcomes(tx: Tx, outcomes: Mapping[Key, tuple[Outcome, str]], now: datetime) -> set[str]:
    """Write what is not kept, each with its organisation, and return whose facts changed."""
    made = [(*key, org, o.fact_value, o.confidence) for key, (o, org) in outcomes.items() if o.kind == "made"]
    changed = [(*key, o.fact_value, o.confidence) for key, (o, _) in outcomes.items() if o.kind == "changed"]
    retired = [key for key, (o, _) in outcomes.items() if o.kind == "retired"]
    if made:
        tx.run(MAKE, *_columns(sorted(made)), bands.BANDS_VERSION, now)
    if changed:
        tx.run(CHANGE, *_columns(changed), bands.BANDS_VERSION, now)
    if retired:
        tx.run(RETIRE, *_columns(retired), now)
    return {str(row[0]) for row in (*made, *changed, *retired)}


def owe(tx: Tx, keys: Iterable[Key], now: datetime) -> None:
    """Remember buckets whose derivation failed."""
    if listed := sorted(keys):
        tx.run(OWE, *_columns(listed), now)


def pay(tx: Tx, keys: Iterable[Key]) -> None:
    """Forget that buckets were owed."""
    if listed := sorted(keys):
        tx.run(PAID, *_columns(listed))


def _columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _tendency(fact_key: str, history: Sequence[tuple[Any, ...]]) -> Tendency | None:
    observations, tombstones = [], []
    for event_id, event_type, decision, at, source in history:
        if source is None:
            tombstones.append(Tombstone(event_type, decision, at))
        else:
            observations.append(Observation(event_id, event_type, decision, at, source))
    return derive_tendency(bucket_of_key(fact_key), observations, tombstones)
