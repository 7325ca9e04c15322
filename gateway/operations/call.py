"""A call: one operation under way, with its input and the ways it may reach the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from gateway.access.door import Access
from gateway.authn.authenticator import Authenticator
from gateway.config import Settings
from gateway.embedding.embedder import Embedder
from gateway.errors import NotFound, Stale, Unauthenticated
from gateway.model.grant import Grant, Session
from gateway.model.ids import REMOTE_ID
from gateway.model.memory import RemoteConnection
from gateway.model.records import Agent, Org, Peer, PlatformConnection
from gateway.operations.arriving import Arriving
from gateway.operations.contexts import ContextCache
from gateway.operations.deadline import Deadline
from gateway.operations.fields import Fields, is_id
from gateway.operations.meter import Meter
from gateway.operations.replays import Replays
from gateway.operations.traffic import Traffic
from gateway.policy import aside, sandbox
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case
from gateway.policy.foreign.served import Served
from gateway.spans import span
from gateway.store.db import Database
from gateway.store.entities import Missing, MissingType
from gateway.store.rows import Rows, Tx
from gateway.store.state import State
from gateway.store.writer import Unit
from gateway.threads import Threads


class Owned(Protocol):
    """What belongs to one organisation."""

    @property
    def org_id(self) -> str: ...


_texts = partial(Threads, "texts of policies", threads=sandbox.PROCESSES, waiting=sandbox.WAITING)
_reloads = partial(Threads, "reloads", threads=aside.PROCESSES, waiting=aside.WAITING)
R = TypeVar("R")
Kept = TypeVar("Kept", bound=Owned)
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Services:
    """What the process is made of, wired once at start. `load_policies` reads the policies that lie at
    `policies_at`, and their cases; `foreign` is the store that is served beside our own. `texts` are checked on threads
    of their own, and so are the policies that are loaded again, one set after the other."""

    settings: Settings
    clock: Callable[[], datetime]
    database: Database
    state: State
    access: Access
    authenticator: Authenticator
    contexts: ContextCache
    cursor_key: bytes = field(repr=False)
    policies_at: Path
    load_policies: Callable[[], tuple[Bundle, Sequence[Case]]] = field(repr=False)
    embedder: Embedder | None = None
    foreign: Served | None = field(default=None, repr=False)
    requests: Meter = field(default_factory=Meter)
    replays: Replays = field(default_factory=Replays, repr=False)
    texts: Threads = field(default_factory=_texts, repr=False)
    reloads: Threads = field(default_factory=_reloads, repr=False)
    traffic: Traffic = field(default_factory=Traffic)
    arriving: Arriving = field(default_factory=Arriving, repr=False)


@dataclass(slots=True)
class Call:
    """The input of one operation and its session; `deadline` is the end of its time, where it has one."""

    services: Services
    session: Session
    path: Mapping[str, str]
    query: Fields
    body: Fields
    headers: Mapping[str, str]
    deadline: Deadline | None = None

    @property
    def access(self) -> Access:
        return self.services.access

    @property
    def state(self) -> State:
        return self.services.state

    @property
    def now(self) -> datetime:
        return self.session.now

    @property
    def org(self) -> Org:
        """The caller's own organisation."""
        return self.state.orgs[self.session.caller.org_id]

    # -- targets: another organisation's object is the same as none

    def peer(self, peer_id: str | None) -> Peer | Missing:
        return self._target("Peer", peer_id, self.state.peers)

    def agent(self, agent_id: str | None) -> Agent | Missing:
        return self._target("Agent", agent_id, self.state.agents)

    def agent_or_former(self, agent_id: str | None) -> Agent | Missing:
        """An agent, or one that was deleted: what it remembers is still its organisation's."""
        former = self.state.former_agents.get(agent_id or "")
        return former if former is not None and former.org_id == self.session.caller.org_id else self.agent(agent_id)

    def connection(self, connection_id: str | None) -> PlatformConnection | Missing:
        return self._target("PlatformConnection", connection_id, self.state.connections)

    def remote_connection(self, connection_id: str) -> RemoteConnection | Missing:
        """A remote connection of the caller's organisation; its id has the network's form."""
        found = self.state.remote_connections.get((self.session.caller.org_id, connection_id))
        return found if found is not None else Missing("Connection", safe_id(connection_id))

    def _target(self, kind: MissingType, found_id: str | None, table: Mapping[str, Kept]) -> Kept | Missing:
        if found_id is None or not is_id(found_id):
            return Missing(kind, "-")
        found = table.get(found_id)
        if found is None or found.org_id != self.session.caller.org_id:
            return Missing(kind, found_id)
        return found

    @property
    def late(self) -> bool:
        """Whether the deadline has come, after which nothing is changed or answered any more. Safe on any thread."""
        return self.deadline is not None and self.deadline.passed

    def stands(self) -> bool:
        """Whether the caller is still who was authenticated, and every decision what was decided. Safe on any thread."""
        session, now = self.session, self.services.clock()
        return self._caller_stands(now) and self.access.stands(session, now)

    def _caller_stands(self, now: datetime) -> bool:
        session = self.session
        if session.bearer is None or (session.version == self.state.version and session.caller.lives(now)):
            return True
        try:
            return self.services.authenticator.authenticate(session.bearer, now) == session.caller
        except Unauthenticated:
            return False

    # -- the store

    async def read(
        self, ask: Callable[Concatenate[Rows, Grant[Any], P], R], grant: Grant[Any], *args: P.args, **kw: P.kwargs
    ) -> R:
        """Run a store read on a reader thread."""
        with span("store"):
            return await self.services.database.read(lambda rows: ask(rows, grant, *args, **kw))

    async def write(
        self, change: Callable[Concatenate[Tx, Grant[Any], P], R], grant: Grant[Any], *args: P.args, **kw: P.kwargs
    ) -> R:
        """Run a store change on the writer, in one transaction with the decisions that led to it.

        A change may run twice when its batch is retried: it reads what it needs inside the transaction and publishes
        state only through `tx.after_commit`.
        """
        return await self._submit(change, grant, False, *args, **kw)

    async def write_alone(
        self, change: Callable[Concatenate[Tx, Grant[Any], P], R], grant: Grant[Any], *args: P.args, **kw: P.kwargs
    ) -> R:
        """As `write`, in a transaction of its own, so that `tx.state` is exactly what is committed: for every change of
        the authorization state that looks before it writes."""
        return await self._submit(change, grant, True, *args, **kw)

    async def _submit(self, change: Callable[..., R], grant: Grant[Any], alone: bool, *args: Any, **kw: Any) -> R:
        session, rows = self.session, tuple(self.session.rows)

        def run(tx: Tx) -> R:
            # INVARIANT: no change is committed on a credential or a decision that a change acknowledged before it would
            # have ended or altered, nor begun after the caller was told that there was no time.
            if self.late or not self.stands():
                raise Stale
            return change(tx, grant, *args, **kw)

        with span("store"):
            result = await self.commit(Unit(run, log=rows, solo=alone))
        session.changed = True
        return result

    async def commit(self, unit: Unit[R]) -> R:
        """Hand the store a unit with rows of the session, and wait until it is on disk.

        It happens also when the wait is cancelled; then `session.pending` tells later whether it did.
        """
        future = self.services.database.write(unit)
        self.session.pending = (unit.log, future)
        result = await asyncio.shield(asyncio.wrap_future(future))
        self.session.written(unit.log)
        return result


def safe_id(connection_id: str) -> str:
    """An id as the log may show it: one that has not the form of a connection's is none."""
    return connection_id if REMOTE_ID.fullmatch(connection_id) else "-"


def path_id(call: Call, name: str) -> str:
    """An id from the path.

    Raises:
        NotFound: it has not the form of an id, which is the answer to an unknown one.
    """
    value = call.path[name]
    if not is_id(value):
        raise NotFound
    return value
