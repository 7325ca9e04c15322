"""From rows to the small slice of Cedar entities that one decision needs, every reference included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from gateway.model.caller import Caller
from gateway.model.entity import NOTHING, Entity, EntityUid, Value
from gateway.model.memory import Memory, RemoteConnection
from gateway.model.org_policy import OrgPolicy
from gateway.model.records import Agent, ApprovalHeader, Credential, Human, Org, Peer, PlatformApp, PlatformConnection
from gateway.store.row_entities import memory_entity, rules_entities
from gateway.store.row_entities import proposal_entity as proposal_entity
from gateway.store.state import State
from gateway.store.targets import Installation as Installation  # the targets are looked for here
from gateway.store.targets import LogEntry as LogEntry
from gateway.store.targets import Missing as Missing
from gateway.store.targets import MissingType as MissingType
from gateway.store.targets import Target as Target
from gateway.store.targets import uid_of as uid_of

NOWHERE = EntityUid("Org", "")


class Compiler:
    """Builds slices from the authorization state as of one moment.

    A compilation comes with the earliest moment at which a lease or a pause in it ends, or None.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def current(self, target: Target | None) -> Target | None:
        """A target as the state holds it now; a stand-in when it does not hold it. Other kinds are compiled by id anyway."""
        match target:
            case Peer():
                return self._state.peers.get(target.id, Missing("Peer", target.id))
            case Credential():
                return self._state.credentials.get(target.id, Missing("Credential", target.id))
            case PlatformConnection():
                return self._state.connections.get(target.id, Missing("PlatformConnection", target.id))
            case RemoteConnection():
                found = self._state.remote_connections.get((target.org_id, target.id))
                return found if found is not None else Missing("Connection", target.id)
            case OrgPolicy():
                return self._state.org_policies.get(target.id, Missing("Policy", target.id))
            case _:
                return target

    def compile(self, caller: Caller, target: Target, now: datetime) -> tuple[tuple[Entity, ...], datetime | None]:
        """The principal, the target and everything they refer to."""
        if isinstance(target, RemoteConnection) and target.org_id != caller.org_id:
            # Two organisations may have connections of one id, which would be one entity here.
            target = Missing("Connection", target.id)
        build = _Build(self._state, now)
        build.target(target)
        build.principal(caller, target)
        return build.entities()

    def compile_authority(self, caller: Caller, org_id: str, now: datetime) -> tuple[tuple[Entity, ...], datetime | None]:
        """The principal with its written rules, without a target: the base over which proposed actions are laid."""
        build = _Build(self._state, now)
        build.org(org_id)
        build.principal(caller, None)
        return build.entities()


class _Build:
    """One slice under construction: entities by uid, added with everything they refer to."""

    def __init__(self, state: State, now: datetime) -> None:
        self._state = state
        self._now = now
        self._entities: dict[EntityUid, Entity] = {}
        self._ends: list[datetime] = []

    def entities(self) -> tuple[tuple[Entity, ...], datetime | None]:
        return tuple(self._entities[uid] for uid in sorted(self._entities)), min(self._ends, default=None)

    def _put(
        self,
        uid: EntityUid,
        attrs: Mapping[str, Value] = NOTHING,
        parents: Iterable[EntityUid] = (),
        *,
        tags: Mapping[str, Value] = NOTHING,
    ) -> EntityUid:
        self._entities[uid] = Entity(uid, attrs, tuple(parents), tags)
        return uid

    def _until(self, end: datetime | None) -> bool:
        """Whether something with this end still lasts; then the compilation does not outlast it."""
        if end is None or self._now < end:
            self._ends += [] if end is None else [end]
            return True
        return False

    # -- principals

    def principal(self, caller: Caller, target: Target | None) -> None:
        match caller.type:
            case "Human":
                self.human(caller.id)
            case "Agent":
                self.agent(caller.id, peer=target if isinstance(target, Peer) else None, rules=target is None)
            case "Platform":
                self.app(caller.id)
            case "Connection":
                self.remote_id(caller.org_id, caller.id)
            case "Bridge":
                org = self.org(caller.org_id)
                self._put(caller.uid, {"org": org, "agent": self.agent(caller.id)}, (org,))
            case "Operator":
                self._put(caller.uid)

    def org(self, org_id: str) -> EntityUid:
        return self._put(EntityUid("Org", org_id))

    def human(self, human_id: str) -> EntityUid:
        human = self._state.humans.get(human_id)
        if human is None:
            return self._put(EntityUid("Human", human_id), {"org": self.org("")}, (NOWHERE,))
        org, role = self.org(human.org_id), self._put(EntityUid("Role", human.role))
        return self._put(EntityUid("Human", human_id), {"org": org}, (org, role))

    def agent(self, agent_id: str, *, peer: Peer | None = None, rules: bool = False) -> EntityUid:
        uid = EntityUid("Agent", agent_id)
        agent = self._state.agents.get(agent_id) or self._state.former_agents.get(agent_id)
        if agent is None:
            return self._put(uid, {"org": self.org(""), "active": False, "registered_by": self.human("")}, (NOWHERE,))
        org = self.org(agent.org_id)
        parents = [org]
        connection = self._connected(agent.connection_id)
        if connection is not None:
            parents.append(self.connection(connection))
        entry = self._state.observers.get(peer.id, {}).get(agent_id) if peer is not None else None
        if entry is not None and self._until(entry.expires_at):
            parents.append(self._put(EntityUid("Observers", entry.peer_id)))
        attrs: dict[str, Value] = {"org": org, "active": agent.is_active, "registered_by": self.human(agent.created_by)}
        if rules:
            written = rules_entities(agent_id, agent.rules)
            attrs["approval"] = written[0].uid
            self._entities |= {entity.uid: entity for entity in written}
        return self._put(uid, attrs, parents)

    def app(self, app_id: str) -> EntityUid:
        app = self._state.apps.get(app_id)
        org = self.org(app.org_id if app is not None else "")
        return self._put(EntityUid("Platform", app_id), {"org": org}, (org,))

    # -- targets

    def target(self, target: Target) -> None:
        match target:
            case Org():
                self.org(target.id)
            case Human():
                self.human(target.id)
            case Agent():
                self.agent(target.id)
            case Peer():
                self.peer(target)
            case ApprovalHeader():
                self.approval(target)
            case PlatformApp():
                self.app(target.id)
            case PlatformConnection():
                self.connection(target)
            case Credential():
                self.credential(target)
            case LogEntry():
                org = self.org(target.org_id)
                self._put(uid_of(target), {"org": org}, (org,))
            case Installation():
                self.installation(target)
            case RemoteConnection():
                self.remote_connection(target)
            case Memory():
                self.memory(target)
            case OrgPolicy():
                self.org_policy(target)
            case Missing():
                self.missing(target)

    def peer(self, peer: Peer) -> EntityUid:
        org = self.org(peer.org_id)
        attrs: dict[str, Value] = {
            "org": org,
            "peer_type": peer.peer_type,
            "observers": self._put(EntityUid("Observers", peer.id)),
            "archived": peer.archived,
            "reading_paused": peer.pause.reading and self._until(peer.pause.until),
        }
        person = self._state.person_of(peer)
        if person is not None:
            attrs["person"] = self.human(person.id)
        connection = self._connected(peer.connection_id)
        if connection is not None:
            attrs["connection"] = self.connection(connection)
        return self._put(EntityUid("Peer", peer.id), attrs, (org,))

    def approval(self, approval: ApprovalHeader) -> EntityUid:
        org = self.org(approval.org_id)
        attrs: dict[str, Value] = {
            "org": org,
            "addressed_to": self.human(approval.user_id),
        }
        if approval.agent_id is not None:
            attrs["requested_by"] = self.agent(approval.agent_id)
        if approval.asked_by is not None:
            attrs["asked_by"] = self.human(approval.asked_by)
        connection = self._connected(approval.connection_id)
        if connection is not None:
            attrs["connection"] = self.connection(connection)
        return self._put(EntityUid("Approval", approval.id), attrs, (org,))

    def _connected(self, connection_id: str | None) -> PlatformConnection | None:
        return self._state.connections.get(connection_id) if connection_id is not None else None

    def connection(self, connection: PlatformConnection) -> EntityUid:
        org = self.org(connection.org_id)
        attrs: dict[str, Value] = {
            "org": org,
            "app": self.app(connection.app_id),
            "person": self.human(connection.user_id),
            "active": connection.status != "disconnected",
        }
        return self._put(EntityUid("PlatformConnection", connection.id), attrs, (org,))

    def remote_id(self, org_id: str, connection_id: str) -> EntityUid:
        connection = self._state.remote_connections.get((org_id, connection_id))
        return self.missing(Missing("Connection", connection_id)) if connection is None else self.remote_connection(connection)

    def remote_connection(self, connection: RemoteConnection) -> EntityUid:
        """With its live grants. Each is named by its id, which stands for all of it: a grant is never changed."""
        org = self.org(connection.org_id)
        grants = [
            grant for grant in self._state.grants_of(connection.org_id, connection.id)
            if grant.revoked_at is None and self._until(grant.expires_at)
        ] if connection.status == "active" else []  # fmt: skip
        attrs: dict[str, Value] = {
            "org": org,
            "agent": self.agent(connection.agent_id),
            "active": connection.status == "active",
            "grants": tuple(sorted(grant.id for grant in grants)),
            "projects": tuple(sorted({grant.project_id for grant in grants})),
            "tiers": tuple(sorted({tier for grant in grants for tier in grant.classifications})),
        }
        return self._put(EntityUid("Connection", connection.id), attrs, (org,))

    def memory(self, row: Memory) -> EntityUid:
        self._until(row.expires_at)
        self.org(row.org_id)
        self.agent(row.agent_id)
        entity = memory_entity(row, self._now)
        return self._put(entity.uid, entity.attrs, entity.parents)

    def org_policy(self, policy: OrgPolicy) -> EntityUid:
        org, known = self.org(policy.org_id), self._state.orgs.get(policy.org_id)
        needs_two = known is None or known.settings.policy_promotions_need_two
        attrs: dict[str, Value] = {"org": org, "written_by": self.human(policy.current.written_by), "needs_two": needs_two}
        return self._put(uid_of(policy), attrs, (org,))

    def installation(self, target: Installation) -> EntityUid:
        """In the only organisation that there is; among several, in none."""
        orgs = list(self._state.orgs)
        return self._put(uid_of(target), parents=[self.org(orgs[0])] if len(orgs) == 1 else [])

    def credential(self, credential: Credential) -> EntityUid:
        org = self.org(credential.org_id)
        attrs: dict[str, Value] = {"org": org}
        if credential.principal_type == "Human":
            attrs["holder"] = self.human(credential.principal_id)
        return self._put(EntityUid("Credential", credential.id), attrs, (org,))

    def missing(self, target: Missing) -> EntityUid:
        """A stand-in in no organisation, complete enough that every policy can be evaluated over it."""
        org, uid = self.org(""), uid_of(target)
        attrs: dict[str, Value] = {"org": org}
        match target.type:
            case "Peer":
                observers = self._put(EntityUid("Observers", target.id))
                attrs |= {"peer_type": "", "observers": observers, "archived": False, "reading_paused": False}
            case "Agent":
                attrs |= {"active": False, "registered_by": self.human("")}
            case "Approval":
                attrs |= {"requested_by": self.agent(""), "addressed_to": self.human("")}
            case "PlatformConnection":
                attrs |= {"app": self.app(""), "person": self.human(""), "active": False}
            case "Policy":
                attrs |= {"written_by": self.human(""), "needs_two": True}
            case "Connection":
                attrs |= {"agent": self.agent(""), "active": False, "grants": (), "projects": (), "tiers": ()}
            case "Memory":
                attrs |= {"agent": self.agent(""), "layer": "", "tags": (), "classification": "pii", "sources": ()}
                attrs |= {"retracted": True, "superseded": True, "expired": True}
        return self._put(uid, attrs, (org,))
