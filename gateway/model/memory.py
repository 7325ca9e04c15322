"""Memory of an agent: its rows, the remote agents connected to it, and what a person granted to each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from gateway.model.caller import Caller
from gateway.model.condition import Condition

Layer = Literal["fact", "timeline", "session", "chunk"]
LAYERS: tuple[Layer, ...] = ("fact", "timeline", "session", "chunk")
Tier = Literal["public", "internal", "confidential", "pii"]
#: From the least strict to the strictest.
TIERS: tuple[Tier, ...] = ("public", "internal", "confidential", "pii")
MemoryAction = Literal["search", "read", "query", "remember"]
MEMORY_ACTIONS: tuple[MemoryAction, ...] = ("search", "read", "query", "remember")
Provenance = Literal["any", "owner_only", "own_connection"]
PROVENANCES: tuple[Provenance, ...] = ("any", "owner_only", "own_connection")
Match = Literal["any", "all"]
ConnectionStatus = Literal["active", "suspended", "revoked"]
Depth = Literal["hide", "delete", "erase"]
DEPTHS: tuple[Depth, ...] = ("hide", "delete", "erase")
#: Which way of turning a grant into policies made it; it is kept with the grant.
TEMPLATE_VERSION = 1


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """One way by which something reached an agent: a connection, and the remote agent that said it."""

    connection_id: str | None
    source_did: str | None


@dataclass(frozen=True, slots=True)
class LayerFields:
    """What only some layers have: a timeline's title and moment, a session's channel, start and end."""

    title: str | None = None
    occurred_at: datetime | None = None
    channel: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """One row. `tags` is sorted and without duplicates; `provenance` is sorted, the union over what it was derived from.

    `project_id` None is untagged: no grant reaches it. `connection_id` is the one connection it came over, None for an
    owner's own row and for one that came over several.
    """

    id: str
    org_id: str
    agent_id: str
    layer: Layer
    text: str = field(repr=False)
    project_id: str | None
    tags: tuple[str, ...]
    classification: Tier
    connection_id: str | None
    source_did: str | None
    created_at: datetime
    expires_at: datetime | None = None
    retracted_at: datetime | None = None
    superseded_by: str | None = None
    derived_from: tuple[str, ...] = ()
    provenance: tuple[Source, ...] = ()
    extra: LayerFields = LayerFields()

    @property
    def sources(self) -> tuple[str, ...]:
        """The connections in its provenance, sorted."""
        return tuple(sorted({source.connection_id for source in self.provenance if source.connection_id is not None}))

    def expired_at(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class RemoteConnection:
    """A remote agent connected to one of ours; its id is the network's. `replaces` is the older one it follows.

    `generation` is raised by whatever ends its conversations.
    """

    id: str
    org_id: str
    agent_id: str
    peer_did: str
    name: str | None
    status: ConnectionStatus
    replaces: str | None
    created_at: datetime
    generation: int = 1


@dataclass(frozen=True, slots=True)
class GrantLimits:
    """Limits of a grant, each None for none: rows and characters an answer, requests a minute, tokens a query, rows
    written a UTC day."""

    max_results: int | None = None
    max_chars: int | None = None
    requests_per_minute: int | None = None
    max_tokens: int | None = None
    max_per_day: int | None = None


NO_LIMITS = GrantLimits()


@dataclass(frozen=True, slots=True)
class MemoryGrant:
    """What a person allowed a connection. Never changed, only revoked: its id stands for all of it.

    `tags` empty asks for no tag.
    """

    id: str
    org_id: str
    connection_id: str
    actions: tuple[MemoryAction, ...]
    project_id: str
    tags: tuple[str, ...]
    tags_match: Match
    classifications: tuple[Tier, ...]
    provenance: Provenance
    expires_at: datetime | None
    limits: GrantLimits
    template_version: int
    created_by: str
    created_at: datetime
    revoked_at: datetime | None = None

    def live_at(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """Which rows of one agent's memory a principal may have: the two locks, each of which must open.

    `floor` comes from the stored grants alone, `policy` from Cedar alone. `grants` are those that cover the action, live
    when it was made; none for an owner. `binding` changes whenever what the principal may see does: cursors carry it.
    """

    principal: Caller
    agent_id: str
    org_id: str
    floor: Condition = field(repr=False)
    policy: Condition = field(repr=False)
    grants: tuple[MemoryGrant, ...]
    binding: str

    @property
    def connection_id(self) -> str | None:
        """The connection, when the principal is one."""
        return self.principal.id if self.principal.type == "Connection" else None


@dataclass(frozen=True, slots=True)
class Narrow:
    """What a request itself asks for, within what its caller may have. None asks for nothing; an empty tuple matches nothing.

    `untagged` asks for rows without a project, and excludes `project_id`.
    """

    project_id: str | None = None
    untagged: bool = False
    tags: tuple[str, ...] | None = None
    tags_match: Match = "any"
    layers: tuple[Layer, ...] | None = None
    classifications: tuple[Tier, ...] | None = None


EVERYTHING = Narrow()


@dataclass(frozen=True, slots=True)
class Found:
    """A row and how well it fits the query; 0.0 where there is no query."""

    row: Memory
    score: float


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the rows, in order, and how many there are in all; `incomplete` names layers that could not be searched whole."""

    found: tuple[Found, ...]
    total: int
    incomplete: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """The embedding of one piece of a text: 512 numbers, by the model of this name."""

    model: str
    numbers: tuple[float, ...] = field(repr=False)
