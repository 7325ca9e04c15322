"""Remembering: a row as it is to be stored, who it came from taken from the credential and never from its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from gateway import limits
from gateway.errors import GatewayError, Invalid, NotFound
from gateway.model.grant import Grant
from gateway.model.ids import new_id
from gateway.model.memory import LAYERS, TIERS, Layer, LayerFields, Memory, Source, Vector
from gateway.model.records import Agent
from gateway.model.strictest import Said, derive, widens
from gateway.operations.call import Call
from gateway.operations.fields import Fields
from gateway.operations.grant_limits import strictest, take, writable
from gateway.operations.memory_agent import named_agent
from gateway.operations.memory_fields import (
    did,
    layer_fields,
    memory_text,
    optional_project,
    project,
    refuse_nulls,
    remote_id,
    tags,
)
from gateway.operations.memory_shapes import memory_object
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import memory as wire
from gateway.store import memories
from gateway.store.entities import Missing
from gateway.store.memory_rows import fetch


@dataclass(frozen=True, slots=True)
class Written:
    """What a request says of the row that it writes."""

    text: str
    layer: Layer
    said: Said
    extra: LayerFields
    supersedes: str | None
    derived_from: Sequence[str]
    connection_id: str | None
    source_did: str | None
    created_at: datetime | None


async def remember(call: Call) -> Reply:
    """Write a row. What comes over a connection is stamped with it, whatever the request says."""
    body = call.body
    refuse_nulls(body)
    agent = named_agent(call, body, former=False)
    connected = call.session.caller.type == "Connection"
    if connected:
        _refuse_owners(body)
        project(body)
    written = _written(body)
    if isinstance(agent, Missing):
        call.access.authorize(call.session, "memory.remember", Missing("Memory", agent.id))
        raise NotFound
    row, old, sources = await (_received if connected else _owned)(call, agent, written)
    most = _quota(call, row) if connected else None
    grant = call.access.authorize(call.session, "memory.remember", row)
    if old is not None and widens(old, row):
        call.access.authorize(call.session, "memory.widen", old)
    try:
        vectors = await _vectors(call, grant, row, supersedes=old, sources=sources, max_per_day=most)
        made = await call.write(memories.add, grant, row, supersedes=old, sources=sources, vectors=vectors, max_per_day=most)
    except GatewayError:
        # What a row is labelled with that is not there is kept nowhere.
        call.session.rows = [replace(decided, slice_bodies={}) for decided in call.session.rows]
        raise
    return Reply({"memory": memory_object(made, call.session.caller)}, 201)


def _refuse_owners(body: Fields) -> None:
    for field in wire.OWNERS_ONLY:
        if field in body:
            raise Invalid(f"`{field}` is for the owner: what comes over a connection is stamped with it", field=field)


def _written(body: Fields) -> Written:
    layer = body.optional_choice("layer", LAYERS, "fact")
    derived_from = body.ids("derived_from", most=limits.MEMORY_SOURCES)
    if "derived_from" in body and not derived_from:
        raise body.wrong("derived_from", f"a list of 1 to {limits.MEMORY_SOURCES} ids")
    tier = body.optional_choice("classification", TIERS)
    return Written(
        text=memory_text(body),
        layer=layer,
        said=Said(optional_project(body), tags(body), tier, body.optional_timestamp("expires_at")),
        extra=layer_fields(body, layer),
        supersedes=body.optional_id("supersedes"),
        derived_from=derived_from,
        connection_id=remote_id(body, "connection_id") if "connection_id" in body else None,
        source_did=did(body, "source_did") if "source_did" in body else None,
        created_at=body.optional_timestamp("created_at"),
    )


Related = tuple[Memory, Memory | None, Sequence[Memory]]


async def _received(call: Call, agent: Agent, written: Written) -> Related:
    """A row as it came over the calling connection: who said it is who is connected."""
    connection = call.state.remote_connections.get((agent.org_id, call.session.caller.id))
    if connection is None:
        raise NotFound
    return _new(call, agent, written, Source(connection.id, connection.peer_did)), None, ()


async def _owned(call: Call, agent: Agent, written: Written) -> Related:
    """A row as its owner writes or imports it, with what it supersedes and what it is derived from.

    Raises:
        NotFound: one of the rows, or the connection, is not there for the caller.
        Invalid: the row says less strict things than what it is derived from.
    """
    if any(value is not None for value in (written.connection_id, written.source_did, written.created_at)):
        call.access.authorize(call.session, "memory.import", agent)
    if written.connection_id is not None:
        connection = call.remote_connection(written.connection_id)
        if isinstance(connection, Missing) or connection.agent_id != agent.id:
            raise NotFound
    own = None
    if written.connection_id is not None or written.source_did is not None:
        own = Source(written.connection_id, written.source_did)
    wanted = [*written.derived_from] if written.supersedes is None else [*written.derived_from, written.supersedes]
    found = await _rows(call, agent, wanted)
    sources = [found[each] for each in written.derived_from]
    row = _new(call, agent, written, own)
    if sources:
        row = _derived(row, written, sources, own)
    return row, None if written.supersedes is None else found[written.supersedes], sources


async def _rows(call: Call, agent: Agent, ids: Sequence[str]) -> dict[str, Memory]:
    if not ids:
        return {}
    grant = call.access.plan(call.session, "memory.read", agent, live=False)
    rows = await call.read(fetch, grant, list(dict.fromkeys(ids)))
    found = {row.id: row for row, _ in call.access.confirm(grant, rows)}
    if any(each not in found for each in ids):
        raise NotFound
    return found


def _new(call: Call, agent: Agent, written: Written, own: Source | None) -> Memory:
    said = written.said
    return Memory(
        id=new_id(),
        org_id=agent.org_id,
        agent_id=agent.id,
        layer=written.layer,
        text=written.text,
        project_id=said.project_id,
        tags=said.tags or (),
        classification=said.classification or "internal",
        connection_id=own.connection_id if own is not None else None,
        source_did=own.source_did if own is not None else None,
        created_at=written.created_at or call.now,
        expires_at=said.expires_at,
        provenance=() if own is None else (own,),
        extra=written.extra,
    )


def _derived(row: Memory, written: Written, sources: Sequence[Memory], own: Source | None) -> Memory:
    """A row with the strictest of its sources."""
    strict = derive(sources, written.said, own)
    return replace(
        row,
        project_id=strict.project_id,
        tags=strict.tags,
        classification=strict.classification,
        expires_at=strict.expires_at,
        connection_id=strict.connection_id,
        source_did=strict.source_did,
        provenance=strict.provenance,
        derived_from=tuple(sorted(source.id for source in sources)),
    )


def _quota(call: Call, row: Memory) -> int | None:
    """Count the request, and return how many rows the connection may write a day."""
    connection_id = call.session.caller.id
    caps = strictest(writable(call, connection_id, row))
    take(call, connection_id, caps)
    return caps.max_per_day


async def _vectors(
    call: Call,
    grant: Grant[Memory],
    row: Memory,
    *,
    supersedes: Memory | None,
    sources: Sequence[Memory],
    max_per_day: int | None,
) -> Sequence[Vector]:
    """The vectors of a row, made only when nothing says no to it: they cost seconds. The transaction decides once more."""
    embedder = call.services.embedder
    if embedder is None:
        return ()
    await call.read(memories.refuse, grant, row, supersedes=supersedes, sources=sources, max_per_day=max_per_day)
    return (await embedder.embed([row.text]))[0]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.remember",
        "POST",
        "/v1/memories",
        "Remember something; what comes over a connection is stamped with it.",
        remember,
        actions=("memory.remember", "memory.import", "memory.read", "memory.widen"),
        fields=wire.REMEMBERED,
        strict=True,
        body_bytes=limits.LARGE_BODY_BYTES,
        answers={201: wire.MEMORY},
    ),
)
