"""Suppressions: the buckets that a person does not want to be learned again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gateway.errors import NotFound
from gateway.model.grant import Grant
from gateway.model.records import Peer
from gateway.store.rows import Rows, Tx

LIST = 'SELECT fact_key, "at", by_user FROM suppressions WHERE peer_id = $1 ORDER BY "at", fact_key'
LIFT = "DELETE FROM suppressions WHERE peer_id = $1 AND fact_key = $2"


@dataclass(frozen=True, slots=True)
class Suppression:
    """Who said of which bucket that it is not to be learned again, and when."""

    fact_key: str
    at: datetime
    by: str


def suppressions(rows: Rows, grant: Grant[Peer]) -> list[Suppression]:
    """A peer's suppressions, oldest first."""
    return [Suppression(*row) for row in rows.all(LIST, grant.target.id)]


def lift_suppression(tx: Tx, grant: Grant[Peer], fact_key: str) -> None:
    """Let a bucket be learned again, from what is decided from now on.

    Raises:
        NotFound: it is not suppressed.
    """
    if not tx.run(LIFT, grant.target.id, fact_key):
        raise NotFound
    tx.append(grant.audit("peer.suppression_lifted", {}))
