"""Memories: rows written with all their parts, relabelled, retracted and deleted, each with what was derived from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, time, timedelta
from graphlib import TopologicalSorter

from gateway.errors import Conflict, NotFound, Stale, TooManyRequests
from gateway.model.grant import Grant
from gateway.model.memory import Memory, Vector
from gateway.model.records import Agent
from gateway.model.strictest import Labels, followed, labels, refuse_wider
from gateway.store.lineage import hide, remove, with_derived
from gateway.store.memory_rows import read_where
from gateway.store.rows import Rows, Tx
from gateway.store.words import tokens

INSERT = """INSERT INTO memories (id, org_id, agent_id, layer, text, project_id, tags, classification, connection_id, source_did,
  sources, created_at, expires_at, retracted_at, superseded_by, title, occurred_at, channel, started_at, ended_at, words)
  SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[]), unnest($4::VARCHAR[]), unnest($5::VARCHAR[]),
  unnest($6::VARCHAR[]), unnest($7::VARCHAR[][]), unnest($8::VARCHAR[]), unnest($9::VARCHAR[]), unnest($10::VARCHAR[]),
  unnest($11::VARCHAR[][]), unnest($12::TIMESTAMP[]), unnest($13::TIMESTAMP[]), unnest($14::TIMESTAMP[]),
  unnest($15::VARCHAR[]), unnest($16::VARCHAR[]), unnest($17::TIMESTAMP[]), unnest($18::VARCHAR[]), unnest($19::TIMESTAMP[]),
  unnest($20::TIMESTAMP[]), unnest($21::BIGINT[])"""
INSERT_PROVENANCE = """INSERT INTO memory_provenance (memory_id, connection_id, source_did)
  SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[])"""
INSERT_LINKS = "INSERT INTO memory_links (memory_id, source_id) SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[])"
INSERT_TOKENS = """INSERT INTO memory_tokens (agent_id, token, memory_id, times)
  SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[]), unnest($4::BIGINT[])"""
INSERT_VECTORS = """INSERT INTO memory_vectors (memory_id, piece, agent_id, model, vector) SELECT unnest($1::VARCHAR[]),
  unnest($2::BIGINT[]), unnest($3::VARCHAR[]), unnest($4::VARCHAR[]), unnest($5::FLOAT[512][])"""
DELETE_VECTORS = "DELETE FROM memory_vectors WHERE memory_id IN (SELECT unnest($1::VARCHAR[]))"
OF_AGENT = "SELECT id FROM memories WHERE org_id = $1 AND agent_id = $2 AND id IN (SELECT unnest($3::VARCHAR[])) ORDER BY id"
SUPERSEDE = "UPDATE memories SET superseded_by = $2 WHERE id = $1"
RELABEL = "UPDATE memories SET project_id = $2, tags = $3::VARCHAR[], classification = $4 WHERE id = $1"
SUPPRESSED = """SELECT count(*) FROM memory_suppressions
  WHERE org_id = $1 AND connection_id IN (SELECT unnest($2::VARCHAR[]))"""
WRITTEN = "SELECT written FROM memory_written WHERE org_id = $1 AND connection_id = $2 AND day = $3"
COUNT = """INSERT INTO memory_written (org_id, connection_id, day, written) VALUES ($1, $2, $3, 1)
  ON CONFLICT (org_id, connection_id, day) DO UPDATE SET written = memory_written.written + 1"""
FOUND = "org_id = $1 AND agent_id = $2 AND id IN (SELECT unnest($3::VARCHAR[]))"


def add(
    tx: Tx,
    grant: Grant[Memory],
    row: Memory,
    *,
    supersedes: Memory | None = None,
    sources: Sequence[Memory] = (),
    vectors: Sequence[Vector] = (),
    max_per_day: int | None = None,
) -> Memory:
    """Write a memory with its provenance, links, tokens and vectors, one a piece of its text.

    `supersedes` and `sources` are as they were when it was decided; `max_per_day` is how many a connection may write on a
    UTC day.

    Raises:
        NotFound: one of those is gone.
        Stale: one of those has changed.
        Invalid: it is wider than its sources allow.
        Conflict: what came over one of its connections was forgotten, a source is retracted, or what it supersedes already was.
        TooManyRequests: the connection has written as many today as it may.
    """
    # What can say no comes before the first change: the other writes of the same commit do not have to be done again.
    refuse(tx, grant, row, supersedes=supersedes, sources=sources, max_per_day=max_per_day)
    if grant.caller.type == "Connection":
        tx.run(COUNT, row.org_id, grant.caller.id, _day(grant.now).isoformat())
    _insert(tx, row, vectors)
    if supersedes is not None:
        tx.run(SUPERSEDE, supersedes.id, row.id)
    about = {"layer": row.layer, "classification": row.classification, "tagged": row.project_id is not None}
    links = {"derived_from": list(row.derived_from), "supersedes": supersedes.id if supersedes is not None else None}
    tx.append(grant.audit("memory.added", {**about, **links}))
    return row


def refuse(
    rows: Rows,
    grant: Grant[Memory],
    row: Memory,
    *,
    supersedes: Memory | None = None,
    sources: Sequence[Memory] = (),
    max_per_day: int | None = None,
) -> None:
    """Say no to a memory that `add` would refuse now. It changes nothing: it is asked before the vectors are made, too.

    Raises:
        NotFound, Stale, Invalid, Conflict, TooManyRequests: as `add`.
    """
    before = [*sources, *([supersedes] if supersedes is not None else [])]
    _refuse_changed(rows, row, before)
    if sources:
        refuse_wider(sources, row)
    _refuse_conflict(rows, row, supersedes, sources)
    if grant.caller.type == "Connection" and max_per_day is not None:
        _refuse_over(rows, row.org_id, grant.caller.id, grant.now, max_per_day)


def retag(tx: Tx, grant: Grant[Memory], after: Labels) -> tuple[Memory, Memory]:
    """Give a memory other labels, and return it as it was and as it is.

    What was derived from it is made as narrow as its sources are now, and follows them from one project to another.

    Raises:
        NotFound: it is gone.
        Stale: it has changed since the decision.
        Invalid: it was derived itself, and `after` is wider than its sources allow.
    """
    before = _present(tx, grant)
    if before != grant.target:
        raise Stale
    if before.derived_from:
        refuse_wider(_find(tx, before, before.derived_from), after)
    family = _relabelled(tx, before, after)
    for row in family:
        tx.run(RELABEL, row.id, row.project_id, row.tags, row.classification)
    counted = {"before": _shown(labels(before)), "after": _shown(after), "rows": len(family)}
    tx.append(grant.audit("memory.retagged", {**counted, "project_changed": before.project_id != after.project_id}))
    return before, replace(before, **asdict(after))


def retract(tx: Tx, grant: Grant[Memory]) -> Memory:
    """Make a memory and what was derived from it invisible, and return it; a second time changes nothing.

    Raises:
        NotFound: it is gone.
    """
    row = _present(tx, grant)
    hidden = hide(tx, with_derived(tx, [row.id]), grant.now)
    if hidden:
        tx.append(grant.audit("memory.retracted", {"rows": hidden}))
    return row if row.retracted_at is not None else replace(row, retracted_at=grant.now)


def delete(tx: Tx, grant: Grant[Memory]) -> None:
    """Delete a memory and what was derived from it. What it superseded stays superseded.

    Raises:
        NotFound: it is gone.
    """
    ids = with_derived(tx, [_present(tx, grant).id])
    remove(tx, ids)
    tx.append(grant.audit("memory.deleted", {"rows": len(ids)}))


def index(tx: Tx, grant: Grant[Agent], vectors: Mapping[str, Sequence[Vector]]) -> int:
    """Replace the vectors of an agent's memories, by id, and return of how many; one that is gone is passed over."""
    agent = grant.target
    present = [found for (found,) in tx.all(OF_AGENT, agent.org_id, agent.id, list(vectors))]
    if present:
        tx.run(DELETE_VECTORS, present)
        _insert_vectors(tx, agent.id, {found: vectors[found] for found in present})
    return len(present)


def _present(tx: Tx, grant: Grant[Memory]) -> Memory:
    found = _find(tx, grant.target, [grant.target.id])
    if not found:
        raise NotFound
    return found[0]


def _find(rows: Rows, near: Memory, ids: Iterable[str]) -> list[Memory]:
    """Memories of the same agent, whatever their state."""
    return read_where(rows, FOUND, (near.org_id, near.agent_id, list(ids)))


def _refuse_changed(rows: Rows, row: Memory, decided: Sequence[Memory]) -> None:
    if not decided:
        return
    found = {each.id: each for each in _find(rows, row, [each.id for each in decided])}
    if any(each.id not in found for each in decided):
        raise NotFound
    if any(found[each.id] != each for each in decided):
        raise Stale


def _refuse_conflict(rows: Rows, row: Memory, supersedes: Memory | None, sources: Sequence[Memory]) -> None:
    if supersedes is not None and supersedes.superseded_by is not None:
        raise Conflict("this memory was superseded already: supersede the one that is current")
    if any(source.retracted_at is not None for source in sources):
        raise Conflict("a memory that was retracted cannot be derived from")
    # Asked of the table and not of the state: the state is what was committed before this transaction.
    if row.sources and rows.value(SUPPRESSED, row.org_id, row.sources):
        raise Conflict("what came over this connection was forgotten, and nothing that does is stored again")


def _refuse_over(rows: Rows, org_id: str, connection_id: str, now: datetime, max_per_day: int) -> None:
    day = _day(now)
    written = rows.value(WRITTEN, org_id, connection_id, day.isoformat()) or 0
    if written >= max_per_day:
        midnight = datetime.combine(day + timedelta(days=1), time(), UTC)
        wait = max(1, -((now - midnight) // timedelta(seconds=1)))
        raise TooManyRequests(f"`max_per_day` is {max_per_day}, and as many were written today", retry_after=wait, by="grant")


def _day(now: datetime) -> date:
    return now.astimezone(UTC).date()


def _insert(tx: Tx, row: Memory, vectors: Sequence[Vector]) -> None:
    times = Counter(tokens(row.text))
    cells = (
        *(row.id, row.org_id, row.agent_id, row.layer, row.text, row.project_id, row.tags, row.classification),
        *(row.connection_id, row.source_did, row.sources, row.created_at, row.expires_at, row.retracted_at, row.superseded_by),
        *(row.extra.title, row.extra.occurred_at, row.extra.channel, row.extra.started_at, row.extra.ended_at, times.total()),
    )
    tx.queue_many(INSERT, *([cell] for cell in cells))
    came = [(row.id, source.connection_id or "", source.source_did or "") for source in row.provenance]
    if came:
        tx.queue_many(INSERT_PROVENANCE, *zip(*came, strict=True))
    if row.derived_from:
        tx.queue_many(INSERT_LINKS, [row.id] * len(row.derived_from), row.derived_from)
    tx.queue_many(INSERT_TOKENS, [row.agent_id] * len(times), [*times], [row.id] * len(times), [*times.values()])
    _insert_vectors(tx, row.agent_id, {row.id: vectors})


def _insert_vectors(tx: Tx, agent_id: str, vectors: Mapping[str, Sequence[Vector]]) -> None:
    pieces = [(memory_id, piece, vector) for memory_id, listed in vectors.items() for piece, vector in enumerate(listed)]
    tx.queue_many(
        INSERT_VECTORS,
        [memory_id for memory_id, _, _ in pieces],
        [piece for _, piece, _ in pieces],
        [agent_id] * len(pieces),
        [vector.model for _, _, vector in pieces],
        [vector.numbers for _, _, vector in pieces],
    )


def _relabelled(tx: Tx, first: Memory, after: Labels) -> list[Memory]:
    """The memory with its new labels, and whatever was derived from it of which the labels change."""
    family = {row.id: row for row in _find(tx, first, with_derived(tx, [first.id]))}
    around = {source for row in family.values() for source in row.derived_from} - family.keys()
    known = family | {row.id: row for row in _find(tx, first, around)}
    before = dict(known)
    # INVARIANT: what something was derived from is settled before it.
    order = TopologicalSorter({row.id: [each for each in row.derived_from if each in family] for row in family.values()})
    for memory_id in order.static_order():
        row = known[memory_id]
        was, now = ([labelled[source] for source in row.derived_from] for labelled in (before, known))
        new = after if memory_id == first.id else followed(row, was, now)
        known[memory_id] = replace(row, **asdict(new))
    return [known[memory_id] for memory_id in family if known[memory_id] != family[memory_id]]


def _shown(of: Labels) -> dict[str, object]:
    """Labels as the log may hold them for good: without what people wrote."""
    return {"tagged": of.project_id is not None, "tags": len(of.tags), "classification": of.classification}
