"""The authorization state: everything a decision needs, held in memory, changed only by the writer after a commit."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from gateway.model.records import (
    Agent,
    Credential,
    Human,
    Observer,
    Org,
    Peer,
    PlatformApp,
    PlatformConnection,
    PlatformTemplate,
)


class State:
    """Tables by id and the few look-ups that decisions use.

    Rows are immutable, so a reader on another thread sees a whole row, the old one or the new; so are the lists of
    observers, which are replaced whole. `version` rises with every change; a decision carries the version it was taken on.

    INVARIANT: after start only the writer's thread changes it, in `after_commit` or when the store was opened again.
    INVARIANT: a look-up walks over a copy, made in one step: the writer's thread goes on meanwhile.
    """

    def __init__(self) -> None:
        self.version = 0
        self.orgs: dict[str, Org] = {}
        self.humans: dict[str, Human] = {}
        self.agents: dict[str, Agent] = {}
        self.credentials: dict[str, Credential] = {}
        self.revoked_tokens: dict[str, datetime] = {}
        self.peers: dict[str, Peer] = {}
        self.observers: dict[str, dict[str, Observer]] = {}
        self.removed_observers: set[tuple[str, str]] = set()
        self.apps: dict[str, PlatformApp] = {}
        self.templates: dict[str, PlatformTemplate] = {}
        self.connections: dict[str, PlatformConnection] = {}
        self.facts_versions: dict[str, int] = {}
        self._peer_by_key: dict[tuple[str, str, str], str] = {}
        self._peer_by_connection: dict[str, str] = {}
        self._observed: dict[str, set[str]] = {}
        self._human_by_email: dict[str, str] = {}
        self._credential_by_hash: dict[str, str] = {}

    def take_over(self, fresh: State) -> None:
        """Become what `fresh` holds, after the store had to be opened again; the version moves on, never back."""
        # Facts may have changed as well: what was rendered from them is stale, whatever version it bears.
        fresh.facts_versions = {peer: self.facts_versions.get(peer, 0) + 1 for peer in fresh.peers}
        for name, value in vars(fresh).items():
            if name != "version":
                setattr(self, name, value)
        self.version = max(self.version + 1, fresh.version)

    # -- look-ups

    def peer_with_key(self, org_id: str, peer_type: str, peer_ref: str) -> Peer | None:
        found = self._peer_by_key.get((org_id, peer_type, peer_ref))
        return self.peers.get(found) if found is not None else None

    def peer_of_connection(self, connection_id: str) -> Peer | None:
        found = self._peer_by_connection.get(connection_id)
        return self.peers.get(found) if found is not None else None

    def human_with_email(self, email: str) -> Human | None:
        found = self._human_by_email.get(email)
        return self.humans.get(found) if found is not None else None

    def credential_with_hash(self, secret_hash: str) -> Credential | None:
        found = self._credential_by_hash.get(secret_hash)
        return self.credentials.get(found) if found is not None else None

    def observes(self, agent_id: str, peer_id: str, now: datetime) -> bool:
        """Whether the agent is on the peer's observer list now. A lease that has ended is not on it."""
        entry = self.observers.get(peer_id, {}).get(agent_id)
        return entry is not None and entry.live_at(now)

    def live_observers(self, peer_id: str, now: datetime) -> list[Observer]:
        return [entry for entry in self.observers.get(peer_id, {}).values() if entry.live_at(now)]

    def observed_peers(self, agent_id: str, now: datetime) -> list[Peer]:
        """The peers whose list names the agent now, archived ones included, by id."""
        named = (self.peers.get(peer) for peer in sorted(self._observed.get(agent_id, ())) if self.observes(agent_id, peer, now))
        return [peer for peer in named if peer is not None]

    def person_of(self, peer: Peer) -> Human | None:
        """The user a peer is about: its `peer_ref` for type user, else the user of its connection."""
        if peer.peer_type == "user":
            human = self.humans.get(peer.peer_ref)
        else:
            connection = self.connections.get(peer.connection_id) if peer.connection_id else None
            human = self.humans.get(connection.user_id) if connection is not None else None
        return human if human is not None and human.org_id == peer.org_id else None

    def agents_of_connection(self, connection_id: str) -> list[Agent]:
        return _oldest_first(agent for agent in list(self.agents.values()) if agent.connection_id == connection_id)

    def children_of(self, agent_id: str) -> list[Agent]:
        return _oldest_first(agent for agent in list(self.agents.values()) if agent.parent_id == agent_id)

    def credentials_of(self, principal_type: str, principal_id: str) -> list[Credential]:
        wanted = (principal_type, principal_id)
        return [key for key in list(self.credentials.values()) if (key.principal_type, key.principal_id) == wanted]

    # -- changes

    def put_org(self, org: Org) -> None:
        self.orgs[org.id] = org
        self.version += 1

    def put_human(self, human: Human) -> None:
        old = self.humans.get(human.id)
        if old is not None and old.email != human.email:
            self._human_by_email.pop(old.email, None)
        self.humans[human.id] = human
        self._human_by_email[human.email] = human.id
        self.version += 1

    def drop_human(self, human_id: str) -> None:
        human = self.humans.pop(human_id, None)
        if human is not None:
            self._human_by_email.pop(human.email, None)
        self.version += 1

    def put_agent(self, agent: Agent) -> None:
        self.agents[agent.id] = agent
        self.version += 1

    def drop_agent(self, agent_id: str) -> None:
        self.agents.pop(agent_id, None)
        self.version += 1

    def put_credential(self, credential: Credential) -> None:
        old = self.credentials.get(credential.id)
        if old is not None and old.secret_hash != credential.secret_hash:
            self._credential_by_hash.pop(old.secret_hash, None)
        self.credentials[credential.id] = credential
        self._credential_by_hash[credential.secret_hash] = credential.id
        self.version += 1

    def drop_credential(self, credential_id: str) -> None:
        credential = self.credentials.pop(credential_id, None)
        if credential is not None:
            self._credential_by_hash.pop(credential.secret_hash, None)
        self.version += 1

    def revoke_token(self, jti: str, expires_at: datetime) -> None:
        self.revoked_tokens[jti] = expires_at
        self.version += 1

    def put_peer(self, peer: Peer) -> None:
        old = self.peers.get(peer.id)
        if old is not None and old.connection_id != peer.connection_id:
            self._forget_connection(old)
        self.peers[peer.id] = peer
        self._peer_by_key[(peer.org_id, peer.peer_type, peer.peer_ref)] = peer.id
        if peer.connection_id is not None:
            self._peer_by_connection[peer.connection_id] = peer.id
        self.version += 1

    def drop_peer(self, peer_id: str) -> None:
        peer = self.peers.pop(peer_id, None)
        if peer is not None:
            self._peer_by_key.pop((peer.org_id, peer.peer_type, peer.peer_ref), None)
            self._forget_connection(peer)
        self.put_observers(peer_id, [])
        self.removed_observers = {pair for pair in self.removed_observers if pair[0] != peer_id}
        self.facts_versions.pop(peer_id, None)

    def put_observers(self, peer_id: str, entries: list[Observer]) -> None:
        """Replace a peer's observer list whole, in one step for those who read it."""
        listed = {entry.agent_id: entry for entry in entries}
        gone = self.observers.get(peer_id, {}).keys() - listed.keys()
        if listed:
            self.observers[peer_id] = listed
        else:
            self.observers.pop(peer_id, None)
        for agent_id in listed:
            self._observed.setdefault(agent_id, set()).add(peer_id)
        for agent_id in gone:
            self._observed[agent_id].discard(peer_id)
            if not self._observed[agent_id]:
                del self._observed[agent_id]
        self.version += 1

    def remember_removed(self, peer_id: str, agent_id: str, *, removed: bool) -> None:
        if removed:
            self.removed_observers.add((peer_id, agent_id))
        else:
            self.removed_observers.discard((peer_id, agent_id))
        self.version += 1

    def put_app(self, app: PlatformApp) -> None:
        self.apps[app.id] = app
        self.version += 1

    def put_template(self, template: PlatformTemplate) -> None:
        self.templates[template.id] = template
        self.version += 1

    def put_connection(self, connection: PlatformConnection) -> None:
        self.connections[connection.id] = connection
        self.version += 1

    def facts_changed(self, peer_id: str) -> None:
        """A rendered context of this peer is stale; no decision depends on facts, so `version` stays."""
        self.facts_versions[peer_id] = self.facts_versions.get(peer_id, 0) + 1

    def _forget_connection(self, peer: Peer) -> None:
        if peer.connection_id is not None and self._peer_by_connection.get(peer.connection_id) == peer.id:
            del self._peer_by_connection[peer.connection_id]


def _oldest_first(agents: Iterable[Agent]) -> list[Agent]:
    return sorted(agents, key=lambda agent: (agent.created_at, agent.id))
