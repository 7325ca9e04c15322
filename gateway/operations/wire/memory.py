"""Tagged memory, remote connections and their grants, on the wire."""

from __future__ import annotations

from dataclasses import fields as fields_of
from typing import Literal

from gateway import limits
from gateway.model.ids import REMOTE_ID
from gateway.model.memory import (
    DEPTHS,
    LAYERS,
    MEMORY_ACTIONS,
    PROVENANCES,
    TIERS,
    GrantLimits,
    Match,
)
from gateway.operations.schema import (
    COUNT,
    FLAG,
    FUTURE,
    ID,
    NOTHING,
    NUMBER,
    TEXT,
    TIME,
    Maybe,
    Members,
    Schema,
    choice,
    either,
    matching,
    members,
    or_null,
    shape,
    some,
    table,
    text,
    whole,
)

OWNERS_ONLY = ("supersedes", "derived_from", "connection_id", "source_did", "created_at")
Mode = Literal["keyword", "semantic", "hybrid"]
MATCHES: tuple[Match, ...] = ("any", "all")
MODES: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")
DID = r"did:[a-z0-9]+:[A-Za-z0-9._:%-]*[A-Za-z0-9._%-]"
LIMITS = tuple(limit.name for limit in fields_of(GrantLimits))

_DID = matching(DID, limits.REF_CHARACTERS)
REMOTE = matching(REMOTE_ID)
#: ASCII letters are taken in either case, and kept in lower case.
PROJECT = matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TAG: Schema = {**text(limits.TAG_CHARACTERS), "pattern": r"^[^\u0000]*\S[^\u0000]*$"}
TAGS = some(_TAG, limits.MEMORY_TAGS)
_TIER = choice(*TIERS)
_TIERS, _LAYERS = some(_TIER), some(choice(*LAYERS))
QUERY: Schema = {**text(limits.MEMORY_QUERY_CHARACTERS), "pattern": r"^[^\u0000]*\S[^\u0000]*$"}
TOKENS = whole(*limits.MEMORY_TOKENS)
_NAMED: Members = {"agent_id": Maybe(ID)}
_CURSOR: Members = {"cursor": Maybe(text(limits.CURSOR_CHARACTERS))}
_LISTED: Members = {"limit": Maybe(whole(1, limits.PAGE)), **_CURSOR}

REMEMBERED: Members = {
    "text": text(limits.MEMORY_TEXT_BYTES),
    "layer": Maybe(choice(*LAYERS)),
    "project_id": Maybe(PROJECT),
    "tags": Maybe(TAGS),
    "classification": Maybe(_TIER),
    "expires_at": Maybe(TIME),
    **_NAMED,
    "title": Maybe(text(limits.TEXT_CHARACTERS, 0)),
    "occurred_at": Maybe(TIME),
    "channel": Maybe(text(limits.NAME_CHARACTERS, 0)),
    "started_at": Maybe(TIME),
    "ended_at": Maybe(TIME),
    "supersedes": Maybe(ID),
    "derived_from": Maybe(some(ID, limits.MEMORY_SOURCES, least=1)),
    "connection_id": Maybe(REMOTE),
    "source_did": Maybe(_DID),
    "created_at": Maybe(TIME),
}
LISTED: Members = {
    **_NAMED,
    "project_id": Maybe(PROJECT),
    "tag": Maybe(TAGS),
    "layer": Maybe(_LAYERS),
    "classification": Maybe(_TIERS),
    "tags_match": Maybe(choice(*MATCHES)),
    **_LISTED,
    "state": Maybe(choice("live", "all")),
}
UNTAGGED: Members = {**_NAMED, **_LISTED}
_NARROWING: Members = {
    "tags": Maybe(TAGS),
    "tags_match": Maybe(choice(*MATCHES)),
    "layers": Maybe(_LAYERS),
    "classifications": Maybe(_TIERS),
}
_ASKED: Members = {"query": QUERY, "mode": Maybe(choice(*MODES))}
SEARCHED: Members = {**_ASKED, "project_id": Maybe(PROJECT), **_NARROWING, **_LISTED, **_NAMED}
JOINED: Members = {**_ASKED, "project_id": PROJECT, **_NARROWING, "max_tokens": Maybe(TOKENS), **_NAMED}
RETAGGED: Members = {"project_id": Maybe(or_null(PROJECT)), "tags": Maybe(TAGS), "classification": Maybe(_TIER)}
SELECTED: Members = {
    "connection_id": Maybe(REMOTE),
    "source_did": Maybe(_DID),
    "project_id": Maybe(PROJECT),
    "id": Maybe(ID),
}
FORGOTTEN: Members = {**SELECTED, "depth": Maybe(choice(*DEPTHS)), "dry_run": Maybe(FLAG), **_NAMED}
FORGOTTEN_OVER: Members = {"depth": Maybe(choice(*DEPTHS)), "dry_run": Maybe(choice("true", "false"))}
INDEXED: Members = _NAMED
CONNECTED: Members = {
    "agent_id": ID,
    "peer_did": _DID,
    "id": Maybe(REMOTE),
    "name": Maybe(text(limits.NAME_CHARACTERS)),
    "replaces": Maybe(REMOTE),
}
OF_AGENT: Members = _NAMED
CONVERSED: Members = {"ttl_seconds": Maybe(whole(*limits.TOKEN_SECONDS_RANGE))}
_LIMIT = whole(1, limits.GRANT_LIMIT)


def _scope(ids: tuple[str, ...], **params: object) -> Schema:
    return members({"id": choice(*ids), "params": members(params, closed=True)}, closed=True)  # type: ignore[arg-type]


_SCOPE = either(
    _scope(("notes.search", "notes.read"), collection_id=PROJECT),
    _scope(("notes.write",), collection_id=PROJECT, max_per_day=Maybe(whole(*limits.SCOPE_ROWS_PER_DAY))),
    _scope(("knowledge.query",), kb_id=PROJECT, max_tokens=Maybe(TOKENS)),
)
GRANTED: Members = {
    "actions": Maybe(some(choice(*MEMORY_ACTIONS), least=1)),
    "scope": Maybe(_SCOPE),
    "project_id": Maybe(PROJECT),
    "tags": Maybe({**TAGS, "minItems": 1}),
    "tags_match": Maybe(choice(*MATCHES)),
    "classifications": Maybe({**_TIERS, "minItems": 1}),
    "provenance": Maybe(choice(*PROVENANCES)),
    "expires_at": Maybe(FUTURE),
    "limits": Maybe(members({name: Maybe(_LIMIT) for name in LIMITS}, closed=True)),
}
VISIBLE: Members = {"action": Maybe(choice(*MEMORY_ACTIONS)), **_LISTED}
EXPLAINED: Members = {"action": Maybe(choice(*MEMORY_ACTIONS))}

_LABELS: Members = {"project_id": or_null(TEXT), "tags": some(TEXT), "classification": _TIER}
_MEMORY: Members = {
    "id": ID,
    "layer": choice(*LAYERS),
    "text": TEXT,
    **_LABELS,
    "created_at": TIME,
    # What an owner alone is shown:
    "agent_id": Maybe(ID),
    "connection_id": Maybe(or_null(TEXT)),
    "source_did": Maybe(or_null(TEXT)),
    "expires_at": Maybe(or_null(TIME)),
    "retracted_at": Maybe(or_null(TIME)),
    "superseded_by": Maybe(or_null(ID)),
    "derived_from": Maybe(some(ID)),
    "provenance": Maybe(some(shape(connection_id=or_null(TEXT), source_did=or_null(TEXT)))),
    # Of a layer:
    "title": Maybe(or_null(TEXT)),
    "occurred_at": Maybe(or_null(TIME)),
    "channel": Maybe(or_null(TEXT)),
    "started_at": Maybe(or_null(TIME)),
    "ended_at": Maybe(or_null(TIME)),
}
MEMORY = shape(memory=shape("Memory", **_MEMORY))
RETAG = shape(memory=shape("Memory", **_MEMORY), before=shape("Labels", **_LABELS), after=shape("Labels", **_LABELS))


def _page(of: Schema) -> Schema:
    return shape(items=some(of), total=COUNT, next_cursor=or_null(TEXT), incomplete=some(choice(*LAYERS)))


MEMORIES = _page(shape("Memory", **_MEMORY))
FOUND = _page(shape("FoundMemory", **_MEMORY, score=NUMBER))
SEEN = _page(shape("SeenMemory", **_MEMORY, grant_id=ID, policy=TEXT))
PASSAGES = shape(
    "Passages",
    answer=TEXT,
    sources=some(shape(id=ID, layer=choice(*LAYERS), project_id=or_null(TEXT), classification=_TIER, created_at=TIME)),
    tokens=COUNT,
    incomplete=some(choice(*LAYERS)),
)
RECEIPT = shape(
    "ForgettingReceipt",
    dry_run=FLAG,
    depth=choice(*DEPTHS),
    connections=some(TEXT),
    counts=table(COUNT),
    total=COUNT,
    suppressed=some(TEXT),
    at=TIME,
)
INDEX = shape(indexed=COUNT, remaining=COUNT, model=TEXT)
_CONNECTION = shape(
    "Connection",
    id=TEXT,
    agent_id=ID,
    peer_did=TEXT,
    name=or_null(TEXT),
    status=choice("active", "suspended", "revoked"),
    replaces=or_null(TEXT),
    created_at=TIME,
)
CONNECTION = shape(connection=_CONNECTION)
CONNECTIONS = shape(connections=some(_CONNECTION))
CONNECTION_WITH_KEY = shape(connection=_CONNECTION, credential=TEXT)
CONVERSATION = shape(token=TEXT, expires_in=COUNT, connection_id=TEXT)
_GRANT = shape(
    "Grant",
    id=ID,
    connection_id=TEXT,
    actions=some(choice(*MEMORY_ACTIONS)),
    project_id=TEXT,
    tags=some(TEXT),
    tags_match=choice(*MATCHES),
    classifications=some(_TIER),
    provenance=choice(*PROVENANCES),
    expires_at=or_null(TIME),
    limits=shape(**dict.fromkeys(LIMITS, or_null(COUNT))),
    template_version=COUNT,
    created_at=TIME,
    revoked_at=or_null(TIME),
)
GRANT = shape(grant=_GRANT)
GRANTS = shape(grants=some(_GRANT))
EXPLANATION = shape(visible=FLAG, grant_id=either(ID, NOTHING), policy=or_null(TEXT), failed_clause=or_null(TEXT))
