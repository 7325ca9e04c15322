"""Facts: what is believed about a person, read with its basis and changed by the person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from derive.context import rank
from derive.events import rfc3339
from derive.facts import Belief
from derive.provenance import Entry
from gateway.errors import NotFound
from gateway.model.grant import Grant
from gateway.model.records import Peer
from gateway.store import provenance
from gateway.store.canonical import canonical
from gateway.store.events import record_note
from gateway.store.loading import parse_json
from gateway.store.rows import Rows, Tx

COLUMNS = "fact_key, fact_value, confidence, edited_by_human, disputed, updated_at"
LIVE = f"SELECT {COLUMNS} FROM facts WHERE peer_id = $1 AND live ORDER BY fact_key"  # noqa: S608  # constants only
ONE = f"SELECT {COLUMNS}, replaced FROM facts WHERE peer_id = $1 AND fact_key = $2 AND live"  # noqa: S608  # constants only
CORRECT = """UPDATE facts SET fact_value = $3, confidence = NULL, edited_by_human = true, disputed = false, replaced = $4,
  updated_at = $5 WHERE peer_id = $1 AND fact_key = $2"""
DISPUTE = "UPDATE facts SET disputed = $3 WHERE peer_id = $1 AND fact_key = $2"
DELETE = "DELETE FROM facts WHERE peer_id = $1 AND fact_key = $2"
UNLEARN = "UPDATE events SET learned = false WHERE peer_id = $1 AND fact_key = $2 AND learned"
SUPPRESS = 'INSERT INTO suppressions (peer_id, fact_key, "at", by_user) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING'
UNOWE = "DELETE FROM pending_buckets WHERE peer_id = $1 AND fact_key = $2"


@dataclass(frozen=True, slots=True)
class FactWithBasis:
    """A fact and what it rests on; `replaced` is the inference that a correction replaced."""

    belief: Belief
    provenance: list[Entry]
    replaced: Mapping[str, object] | None


def beliefs(rows: Rows, grant: Grant[Peer]) -> tuple[Belief, ...]:
    """The live facts of a peer, by key."""
    return tuple(_belief(row) for row in rows.all(LIVE, grant.target.id))


def facts_with_basis(rows: Rows, grant: Grant[Peer]) -> list[FactWithBasis]:
    """The live facts of a peer, each with its provenance; corrected ones first, then the best supported."""
    basis = provenance.entries(rows, grant.target.id)
    found = [_belief(row) for row in rows.all(LIVE, grant.target.id)]
    return [FactWithBasis(belief, basis.get(belief.fact_key, []), None) for belief in sorted(found, key=rank)]


def fact(rows: Rows, grant: Grant[Peer], fact_key: str) -> FactWithBasis:
    """One live fact with its basis.

    Raises:
        NotFound: there is none.
    """
    row = rows.one(ONE, grant.target.id, fact_key)
    if row is None:
        raise NotFound
    *columns, replaced = row
    basis = provenance.entries(rows, grant.target.id, fact_key).get(fact_key, [])
    return FactWithBasis(_belief(columns), basis, None if replaced is None else parse_json(replaced))


def live_belief(rows: Rows, grant: Grant[Peer], fact_key: str) -> Belief | None:
    """One live fact without its basis; None when there is none."""
    row = rows.one(ONE, grant.target.id, fact_key)
    return None if row is None else _belief(row[:-1])


def correct_fact(tx: Tx, grant: Grant[Peer], fact_key: str, fact_value: Mapping[str, object]) -> None:
    """Put a person's own word in the place of a belief: derivation never overwrites it. It settles a dispute.

    Raises:
        NotFound: there is no such fact.
    """
    standing = fact(tx, grant, fact_key)
    replaced = standing.replaced if standing.belief.edited_by_human else _inference(standing.belief)
    old = None if replaced is None else canonical(replaced)
    tx.run(CORRECT, grant.target.id, fact_key, canonical(fact_value), old, grant.now)
    provenance.add_human(tx, grant.target.id, fact_key, grant.caller.id, grant.now)
    _changed(tx, grant, "peer.fact_edited")


def dispute_fact(tx: Tx, grant: Grant[Peer], fact_key: str, *, disputed: bool, reason: str | None) -> FactWithBasis:
    """Mark a fact as disputed, or not any more. A reason is kept as an observation of the person's own.

    Raises:
        NotFound: there is no such fact.
    """
    fact(tx, grant, fact_key)
    tx.run(DISPUTE, grant.target.id, fact_key, disputed)
    if reason is not None:
        record_note(tx, grant, {"disputed": fact_key, "reason": reason})
    grant.note(kind="dispute", facts_served=1)
    _changed(tx, grant, "peer.fact_disputed" if disputed else "peer.dispute_withdrawn")
    return fact(tx, grant, fact_key)


def delete_fact(tx: Tx, grant: Grant[Peer], fact_key: str, *, suppress: bool) -> None:
    """Delete a fact with its tombstones; the events behind it stay and are never derived from again.

    Only decisions made from now on can make it again, and with `suppress` those cannot either.

    Raises:
        NotFound: there is no such fact.
    """
    fact(tx, grant, fact_key)
    tx.run(DELETE, grant.target.id, fact_key)
    provenance.remove(tx, grant.target.id, fact_key)
    tx.run(UNLEARN, grant.target.id, fact_key)
    tx.run(UNOWE, grant.target.id, fact_key)
    if suppress:
        tx.run(SUPPRESS, grant.target.id, fact_key, grant.now, grant.caller.id)
    _changed(tx, grant, "peer.fact_deleted", suppressed=suppress)


def _inference(belief: Belief) -> dict[str, object]:
    return {"fact_value": belief.fact_value, "confidence": belief.confidence, "updated_at": rfc3339(belief.updated_at)}


def _changed(tx: Tx, grant: Grant[Peer], action: str, **more: object) -> None:
    # A fact key names a recipient: the log does not hold it.
    peer_id = grant.target.id
    tx.append(grant.audit(action, more))
    tx.after_commit(lambda: tx.state.facts_changed(peer_id))


def _belief(row: Any) -> Belief:
    fact_key, fact_value, confidence, edited, disputed, updated_at = row
    return Belief(fact_key, parse_json(fact_value), confidence, edited, disputed, updated_at)
