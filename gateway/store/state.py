"""The authorization state: everything a decision needs, held in memory, changed only by the writer after a commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
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
from gateway.store.policy_state import PolicyState


class State(PolicyState):
    """Tables by id and the few look-ups that decisions use.

    Rows are immutable, so a reader on another thread sees a whole row, the old one or the new; so are the lists of
    observers, which are replaced whole. `version` rises with every change; a decision carries the version it was taken on.

    INVARIANT: after start only the writer's thread changes it, in `after_commit` or when the store was opened again.
    INVARIANT: a look-up walks over a copy, made in one step: the writer's thread goes on meanwhile.
    """

    def __init__(self) -> None:
        super().__init__()
        self.orgs: dict[str, Org] = {}
        self.humans: dict[str, Human] = {}
        self.agents: dict[str, Agent] = {}
        self.former_agents: dict[str, Agent] = {}
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
        self._peers_by_person: dict[str, set[str]] = {}
        self._connections_by_user: dict[str, set[str]] = {}
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
        """The peer of an organisation with this type and ref."""
        found = self._peer_by_key.get((org_id, peer_type, peer_ref))
        return self.peers.get(found) if found is not None else None

    def peer_of_connection(self, connection_id: str) -> Peer | None:
        """The peer that was linked to a connection last."""
        found = self._peer_by_connection.get(connection_id)
        return self.peers.get(found) if found is not None else None

    def human_with_email(self, email: str) -> Human | None:
        """The human with this normal address, in whichever organisation."""
        found = self._human_by_email.get(email)
        return self.humans.get(found) if found is not None else None

    def credential_with_hash(self, secret_hash: str) -> Credential | None:
        """The key with this hash of its secret, ended ones included."""
        found = self._credential_by_hash.get(secret_hash)
        return self.credentials.get(found) if found is not None else None

    def observes(self, agent_id: str, peer_id: str, now: datetime) -> bool:
        """Whether the agent is on the peer's observer list now. A lease that has ended is not on it."""
        entry = self.observers.get(peer_id, {}).get(agent_id)
        return entry is not None and entry.live_at(now)

    def live_observers(self, peer_id: str, now: datetime) -> list[Observer]:
        """The entries of a peer's observer list whose lease has not ended."""
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

    def peers_about(self, human_id: str) -> list[Peer]:
        """The peers whose person this user is, oldest first."""
        names = [human_id, *self._connections_by_user.get(human_id, ())]
        found = [self.peers.get(peer_id) for name in names for peer_id in list(self._peers_by_person.get(name, ()))]
        about = {peer.id: peer for peer in found if peer is not None and self._is_about(peer, human_id)}
        return sorted(about.values(), key=lambda peer: (peer.created_at, peer.id))

    def lists_naming(self, agent_id: str) -> list[str]:
        """The peers whose observer list names the agent, whether or not its lease has ended."""
        return sorted(self._observed.get(agent_id, ()))

    def members_of(self, org_id: str) -> list[Human]:
        """The humans of an organisation, oldest first."""
        found = [human for human in list(self.humans.values()) if human.org_id == org_id]
        return sorted(found, key=lambda human: (human.created_at, human.id))

    def agents_of_connection(self, connection_id: str) -> list[Agent]:
        """The agents of a connection, oldest first."""
        return _oldest_first(agent for agent in list(self.agents.values()) if agent.connection_id == connection_id)

    def children_of(self, agent_id: str) -> list[Agent]:
        """The children of an agent, oldest first."""
        return _oldest_first(agent for agent in list(self.agents.values()) if agent.parent_id == agent_id)

    def credentials_of(self, principal_type: str, principal_id: str) -> list[Credential]:
        """Every key of a principal, ended ones included."""
        wanted = (principal_type, principal_id)
        return [key for key in list(self.credentials.values()) if (key.principal_type, key.principal_id) == wanted]

    # -- changes

    def put_org(self, org: Org) -> None:
        """Add or replace an organisation."""
        self.orgs[org.id] = org
        self.version += 1

    def put_human(self, human: Human) -> None:
        """Add or replace a human; an address they had before leads to nobody."""
        old = self.humans.get(human.id)
        if old is not None and old.email != human.email:
            self._human_by_email.pop(old.email, None)
        self.humans[human.id] = human
        self._human_by_email[human.email] = human.id
        self.version += 1

    def drop_human(self, human_id: str) -> None:
        """Forget a human and their address."""
        human = self.humans.pop(human_id, None)
        if human is not None:
            self._human_by_email.pop(human.email, None)
        self.version += 1

    def put_agent(self, agent: Agent) -> None:
        """Add or replace an agent."""
        self.agents[agent.id] = agent
        self.version += 1

    def put_former_agent(self, agent: Agent) -> None:
        """Add an agent that was deleted: it does nothing any more, and what it remembers stays its organisation's."""
        self.former_agents[agent.id] = agent
        self.version += 1

    def drop_agent(self, agent_id: str) -> None:
        """Make an agent a former one; the observer lists that name it are changed on their own."""
        agent = self.agents.pop(agent_id, None)
        if agent is not None:
            self.put_former_agent(replace(agent, is_active=False, generation=agent.generation + 1))

    def put_credential(self, credential: Credential) -> None:
        """Add or replace a key; a secret it had before leads to none."""
        old = self.credentials.get(credential.id)
        if old is not None and old.secret_hash != credential.secret_hash:
            self._credential_by_hash.pop(old.secret_hash, None)
        self.credentials[credential.id] = credential
        self._credential_by_hash[credential.secret_hash] = credential.id
        self.version += 1

    def drop_credential(self, credential_id: str) -> None:
        """Forget a key."""
        credential = self.credentials.pop(credential_id, None)
        if credential is not None:
            self._credential_by_hash.pop(credential.secret_hash, None)
        self.version += 1

    def revoke_token(self, jti: str, expires_at: datetime) -> None:
        """Refuse a token until it would have ended anyway."""
        self.revoked_tokens[jti] = expires_at
        self.version += 1

    def put_peer(self, peer: Peer) -> None:
        """Add or replace a peer, and what leads to it."""
        old = self.peers.get(peer.id)
        if old is not None and old.connection_id != peer.connection_id:
            self._forget_connection(old)
        if old is not None and _person_named_by(old) != _person_named_by(peer):
            _discard(self._peers_by_person, _person_named_by(old), peer.id)
        self.peers[peer.id] = peer
        if (name := _person_named_by(peer)) is not None:
            self._peers_by_person.setdefault(name, set()).add(peer.id)
        self._peer_by_key[(peer.org_id, peer.peer_type, peer.peer_ref)] = peer.id
        if peer.connection_id is not None:
            self._peer_by_connection[peer.connection_id] = peer.id
        self.version += 1

    def drop_peer(self, peer_id: str) -> None:
        """Forget a peer with its observer list and what leads to it."""
        peer = self.peers.pop(peer_id, None)
        if peer is not None:
            self._peer_by_key.pop((peer.org_id, peer.peer_type, peer.peer_ref), None)
            self._forget_connection(peer)
            _discard(self._peers_by_person, _person_named_by(peer), peer_id)
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
            _discard(self._observed, agent_id, peer_id)
        self.version += 1

    def remember_removed(self, peer_id: str, agent_id: str, *, removed: bool) -> None:
        """Note that a human took an agent off a peer's list, or forget that they did."""
        if removed:
            self.removed_observers.add((peer_id, agent_id))
        else:
            self.removed_observers.discard((peer_id, agent_id))
        self.version += 1

    def put_app(self, app: PlatformApp) -> None:
        """Add or replace an app of a platform."""
        self.apps[app.id] = app
        self.version += 1

    def drop_app(self, app_id: str) -> None:
        self.apps.pop(app_id, None)
        self.version += 1

    def put_template(self, template: PlatformTemplate) -> None:
        """Add or replace a template of a platform."""
        self.templates[template.id] = template
        self.version += 1

    def put_connection(self, connection: PlatformConnection) -> None:
        """Add or replace a connection of a user."""
        old = self.connections.get(connection.id)
        if old is not None and old.user_id != connection.user_id:
            _discard(self._connections_by_user, old.user_id, connection.id)
        self.connections[connection.id] = connection
        self._connections_by_user.setdefault(connection.user_id, set()).add(connection.id)
        self.version += 1

    def facts_changed(self, peer_id: str) -> None:
        """A rendered context of this peer is stale; no decision depends on facts, so `version` stays."""
        self.facts_versions[peer_id] = self.facts_versions.get(peer_id, 0) + 1

    def _is_about(self, peer: Peer, human_id: str) -> bool:
        person = self.person_of(peer)
        return person is not None and person.id == human_id

    def _forget_connection(self, peer: Peer) -> None:
        if peer.connection_id is not None and self._peer_by_connection.get(peer.connection_id) == peer.id:
            del self._peer_by_connection[peer.connection_id]


def _person_named_by(peer: Peer) -> str | None:
    """What leads from a peer to its person: the person's id, or the id of their connection."""
    return peer.peer_ref if peer.peer_type == "user" else peer.connection_id


def _discard(index: dict[str, set[str]], name: str | None, value: str) -> None:
    """Take one out of an index, and the name with its last."""
    if name is not None and name in index:
        index[name].discard(value)
        if not index[name]:
            del index[name]


def _oldest_first(agents: Iterable[Agent]) -> list[Agent]:
    return sorted(agents, key=lambda agent: (agent.created_at, agent.id))
