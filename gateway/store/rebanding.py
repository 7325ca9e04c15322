"""Rebanding: what was stored under an earlier table of amount bands comes under this one, with what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from derive import bands
from derive.buckets import bucket_of, bucket_of_key, fact_key
from gateway.store.loading import parse_json
from gateway.store.rows import Tx

# The band is the second part of a key. It names its own edges, so one that this table has is the same band.
_STALE = "fact_key IS NOT NULL AND split_part(fact_key, '|', 2) NOT IN (SELECT unnest($2::VARCHAR[]))"
_OF_PEERS = "peer_id IN (SELECT unnest($1::VARCHAR[]))"
EVENTS = f"SELECT peer_id, id, fact_key, content FROM events WHERE {_OF_PEERS} AND {_STALE}"  # noqa: S608  # constants only
FACTS = f"""SELECT peer_id, fact_key FROM facts WHERE {_OF_PEERS} AND {_STALE} AND NOT edited_by_human
  ORDER BY peer_id, disputed DESC, live DESC, fact_key"""  # noqa: S608  # constants only
SUPPRESSIONS = f"SELECT peer_id, fact_key FROM suppressions WHERE {_OF_PEERS} AND {_STALE}"  # noqa: S608  # constants only
TAKEN = f"""SELECT peer_id, fact_key FROM facts WHERE {_OF_PEERS}
UNION ALL SELECT peer_id, fact_key FROM suppressions WHERE {_OF_PEERS}"""  # noqa: S608  # constants only
#: Peers with something of an earlier table; what a person corrected stays as they said it. $1 is an organisation or null.
WAITING = """SELECT peer_id, count(*) AS n FROM events
  WHERE fact_key IS NOT NULL AND split_part(fact_key, '|', 2) NOT IN (SELECT unnest($2::VARCHAR[])) GROUP BY peer_id
UNION ALL SELECT peer_id, count(*) FROM suppressions
  WHERE split_part(fact_key, '|', 2) NOT IN (SELECT unnest($2::VARCHAR[])) GROUP BY peer_id
UNION ALL SELECT peer_id, count(*) FROM facts WHERE live AND NOT edited_by_human AND bands_version < $3 GROUP BY peer_id"""

_MOVES = """(SELECT unnest($1::VARCHAR[]) AS peer_id, unnest($2::VARCHAR[]) AS old, unnest($3::VARCHAR[]) AS new) c"""
REKEY = """UPDATE events SET fact_key = c.new FROM (SELECT unnest($1::VARCHAR[]) AS peer_id, unnest($2::VARCHAR[]) AS id,
  unnest($3::VARCHAR[]) AS new) c WHERE events.peer_id = c.peer_id AND events.id = c.id"""
BRING_FACTS = f"""INSERT INTO facts (peer_id, fact_key, org_id, live, fact_value, confidence, edited_by_human, disputed, replaced,
  bands_version, updated_at) SELECT f.peer_id, c.new, f.org_id, f.live, f.fact_value, f.confidence, f.edited_by_human,
  f.disputed, f.replaced, f.bands_version, f.updated_at
  FROM facts f JOIN {_MOVES} ON f.peer_id = c.peer_id AND f.fact_key = c.old"""  # noqa: S608  # constants only
DROP_FACTS = f"DELETE FROM facts USING {_MOVES} WHERE facts.peer_id = c.peer_id AND facts.fact_key = c.old"  # noqa: S608  # constants only
MOVE_PROVENANCE = f"""UPDATE provenance SET fact_key = c.new FROM {_MOVES}
  WHERE provenance.peer_id = c.peer_id AND provenance.fact_key = c.old"""  # noqa: S608  # constants only
BRING_SUPPRESSIONS = f"""INSERT INTO suppressions (peer_id, fact_key, "at", by_user) SELECT s.peer_id, c.new, s."at", s.by_user
  FROM suppressions s JOIN {_MOVES} ON s.peer_id = c.peer_id AND s.fact_key = c.old ON CONFLICT DO NOTHING"""  # noqa: S608  # constants only
DROP_SUPPRESSIONS = f"""DELETE FROM suppressions USING {_MOVES}
  WHERE suppressions.peer_id = c.peer_id AND suppressions.fact_key = c.old"""  # noqa: S608  # constants only

Move = tuple[str, str, str]


def reband(tx: Tx, peers: Sequence[str]) -> None:
    """Bring what is kept about some peers under the bands of today; without anything of an earlier table, change nothing.

    An event goes where its own amount belongs. A suppression goes to every band that shares amounts with its own: it may
    cover more than before, never less. A fact, with its tombstones, moves when all of its band lies in one of today's and
    nothing is there; one that cannot move lives on its tombstones under its old key. A correction stays as it was said.
    """
    which = (list(peers), list(bands.BANDS))
    events = [
        (peer_id, event_id, new)
        for batch in tx.batches(EVENTS, *which)
        for peer_id, event_id, key, content in batch
        if (new := _key_of_event(key, parse_json(content))) is not None
    ]
    wide = [(peer_id, key, new) for peer_id, key in tx.all(SUPPRESSIONS, *which) for new in _keys_within(key)]
    _move(tx, events, REKEY)
    _move(tx, wide, BRING_SUPPRESSIONS, DROP_SUPPRESSIONS)
    taken = {(peer_id, key) for peer_id, key in tx.all(TAKEN, list(peers))}
    facts: list[Move] = []
    for peer_id, key in tx.all(FACTS, *which):
        within = _keys_within(key)
        if len(within) == 1 and (peer_id, within[0]) not in taken:
            taken.add((peer_id, within[0]))
            facts.append((peer_id, key, within[0]))
    _move(tx, facts, BRING_FACTS, MOVE_PROVENANCE, DROP_FACTS)


def _move(tx: Tx, moves: Sequence[Move], *statements: str) -> None:
    if moves:
        columns = [list(column) for column in zip(*moves, strict=True)]
        for statement in statements:
            tx.run(statement, *columns)


def _key_of_event(key: str, content: Mapping[str, object]) -> str | None:
    """The key of a decision by its own amount; whether the recipient was known stays what it was at the time."""
    payload = content.get("payload")
    try:
        old = bucket_of_key(key)
        amount_band = bucket_of(old.action_type, payload if isinstance(payload, dict) else {}, known_recipient=False).amount_band
    except ValueError:  # stays where it is, and shows as a bucket that is owed
        return None
    return fact_key(replace(old, amount_band=amount_band))


def _keys_within(key: str) -> list[str]:
    try:
        bucket = bucket_of_key(key)
    except ValueError:
        return []
    return [fact_key(replace(bucket, amount_band=band)) for band in bands.bands_within(bucket.amount_band)]
