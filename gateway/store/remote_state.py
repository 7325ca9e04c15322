"""The part of the authorization state about remote agents: their connections, and what they are granted."""

from __future__ import annotations

from datetime import datetime

from gateway.model.memory import MemoryGrant, RemoteConnection


class RemoteState:
    """Connections by organisation and id, grants by id. The rules of `State` hold here too."""

    def __init__(self) -> None:
        self.version = 0
        self.remote_connections: dict[tuple[str, str], RemoteConnection] = {}
        self.memory_grants: dict[str, MemoryGrant] = {}
        self._grants_of: dict[tuple[str, str], tuple[str, ...]] = {}

    def remote_connections_of(self, org_id: str, agent_id: str) -> list[RemoteConnection]:
        """The remote connections of an agent, oldest first."""
        found = [c for c in list(self.remote_connections.values()) if (c.org_id, c.agent_id) == (org_id, agent_id)]
        return sorted(found, key=lambda connection: (connection.created_at, connection.id))

    def grants_of(self, org_id: str, connection_id: str) -> list[MemoryGrant]:
        """The grants of a remote connection, revoked and ended ones included, oldest first."""
        found = (self.memory_grants.get(grant_id) for grant_id in self._grants_of.get((org_id, connection_id), ()))
        return [grant for grant in found if grant is not None]

    def live_grants(self, connection: RemoteConnection, now: datetime) -> list[MemoryGrant]:
        """What a remote connection may do now, oldest first: nothing while it is not active."""
        if connection.status != "active":
            return []
        return [grant for grant in self.grants_of(connection.org_id, connection.id) if grant.live_at(now)]

    def put_remote_connection(self, connection: RemoteConnection) -> None:
        """Add or replace a remote connection."""
        self.remote_connections[connection.org_id, connection.id] = connection
        self.version += 1

    def put_memory_grant(self, grant: MemoryGrant) -> None:
        """Add a grant, or replace it by the same one revoked."""
        self.memory_grants[grant.id] = grant
        key = (grant.org_id, grant.connection_id)
        ids = {*self._grants_of.get(key, ()), grant.id}
        self._grants_of[key] = tuple(sorted(ids, key=lambda id_: (self.memory_grants[id_].created_at, id_)))
        self.version += 1
