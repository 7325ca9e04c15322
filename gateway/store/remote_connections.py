"""Remote connections: made, suspended, resumed and ended, with the credentials that hang on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.errors import Conflict, Invalid, NotFound
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.memory import ConnectionStatus, RemoteConnection
from gateway.model.records import Agent, Credential
from gateway.store.credentials import end_credentials, insert_credential
from gateway.store.rows import Tx
from gateway.store.state import State

INSERT = """INSERT INTO remote_connections (id, org_id, agent_id, peer_did, name, status, replaces, created_at, generation)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"""
UPDATE = "UPDATE remote_connections SET status = $3, generation = $4 WHERE org_id = $1 AND id = $2"
#: What came over the connection that is replaced was forgotten: nothing comes in by its new name either.
SUPPRESS_AS = """INSERT INTO memory_suppressions (org_id, connection_id, "at", by_id)
  SELECT org_id, $3::VARCHAR, $4::TIMESTAMP, $5::VARCHAR FROM memory_suppressions WHERE org_id = $1 AND connection_id = $2"""
#: By organisation too: another one may have a connection of the same id.
END_CREDENTIALS = "DELETE FROM credentials WHERE principal_type = 'Connection' AND org_id = $1 AND principal_id = $2"

STAYS_REVOKED = "this connection is revoked, and stays so"
EVENTS: dict[ConnectionStatus, str] = {"active": "resumed", "suspended": "suspended", "revoked": "revoked"}


def listed(state: State, grant: Grant[Agent]) -> list[RemoteConnection]:
    """The remote connections of the granted agent, oldest first."""
    found = state.remote_connections_of(grant.target.org_id, grant.target.id)
    grant.note(served=len(found))
    return found


def create(tx: Tx, grant: Grant[Agent], connection: RemoteConnection, key: Credential) -> None:
    """Add a connection and its credential; the one that it replaces is revoked with it, and stays forgotten if it was.

    Raises:
        Conflict: the organisation has a connection of this id.
        NotFound: the agent was deleted since the decision, or there is nothing of the id that is replaced.
        Invalid: what is replaced is of another agent or another remote agent.
    """
    if grant.target.id not in tx.state.agents:
        raise NotFound
    c = connection
    if (c.org_id, c.id) in tx.state.remote_connections:
        raise Conflict("`id` is the id of another connection of this organisation")
    older = _replaced(tx.state, c)
    tx.run(INSERT, c.id, c.org_id, c.agent_id, c.peer_did, c.name, c.status, c.replaces, c.created_at, c.generation)
    tx.after_commit(lambda: tx.state.put_remote_connection(connection))
    insert_credential(tx, key)
    about = {"connection_id": c.id, "agent_id": c.agent_id, "replaces": c.replaces}
    tx.append(grant.audit("remote_connection.created", about, resource=EntityUid("Connection", c.id)))
    if older is not None:
        tx.run(SUPPRESS_AS, c.org_id, older.id, c.id, grant.now, grant.caller.id)
        _put(tx, grant, older, "revoked")


def set_status(tx: Tx, grant: Grant[RemoteConnection], status: ConnectionStatus) -> RemoteConnection:
    """Suspend, resume or revoke the granted connection, and return it as it is then.

    Raises:
        Conflict: it is revoked.
    """
    connection = tx.state.remote_connections[grant.target.org_id, grant.target.id]
    if connection.status == "revoked" and status != "revoked":
        raise Conflict(STAYS_REVOKED)
    return _put(tx, grant, connection, status)


def rotate_credential(tx: Tx, grant: Grant[RemoteConnection], key: Credential) -> RemoteConnection:
    """Replace the credential of the granted connection; the one before it and its conversations are refused from now on.

    Raises:
        Conflict: the connection is revoked.
    """
    connection = tx.state.remote_connections[grant.target.org_id, grant.target.id]
    if connection.status == "revoked":
        raise Conflict(STAYS_REVOKED)
    _end_credentials(tx, connection)
    insert_credential(tx, key)
    changed = replace(connection, generation=connection.generation + 1)
    _save(tx, changed)
    tx.append(grant.audit("remote_connection.credential_rotated", {"connection_id": connection.id}))
    return changed


def open_conversation(tx: Tx, grant: Grant[RemoteConnection]) -> None:
    """Note that a conversation was opened over the granted connection."""
    tx.append(grant.audit("remote_connection.conversation_opened", {"connection_id": grant.target.id}))


def rotate_bridge(tx: Tx, grant: Grant[Agent], key: Credential) -> None:
    """Give the bridge to the granted agent a new token; the one before it is refused from now on.

    Raises:
        NotFound: the agent was deleted since the decision.
    """
    if grant.target.id not in tx.state.agents:
        raise NotFound
    end_credentials(tx, "Bridge", grant.target.id)
    insert_credential(tx, key)
    tx.append(grant.audit("bridge.token_rotated", {"agent_id": grant.target.id}))


def end_all_of(tx: Tx, grant: Grant[Agent], agent: Agent) -> None:
    """End every remote connection of an agent, and its bridge; part of the agent's own end."""
    end_credentials(tx, "Bridge", agent.id)
    for connection in tx.state.remote_connections_of(agent.org_id, agent.id):
        _put(tx, grant, connection, "revoked")


def _replaced(state: State, connection: RemoteConnection) -> RemoteConnection | None:
    if connection.replaces is None:
        return None
    older = state.remote_connections.get((connection.org_id, connection.replaces))
    if older is None:
        raise NotFound
    if (older.agent_id, older.peer_did) != (connection.agent_id, connection.peer_did):
        raise Invalid("`replaces` must be a connection of the same agent with the same `peer_did`", field="replaces")
    return older


def _put(tx: Tx, grant: Grant[Any], connection: RemoteConnection, status: ConnectionStatus) -> RemoteConnection:
    """Write a status; nothing is written when it is that already. A revoked connection has no credential.

    Conversations end with a suspension too, and stay so: what was opened before it is no part of what is resumed.
    """
    if connection.status == status:
        return connection
    changed = replace(connection, status=status, generation=connection.generation + (status != "active"))
    _save(tx, changed)
    if status == "revoked":
        _end_credentials(tx, changed)
    about = {"connection_id": changed.id}
    tx.append(grant.audit(f"remote_connection.{EVENTS[status]}", about, resource=EntityUid("Connection", changed.id)))
    return changed


def _save(tx: Tx, connection: RemoteConnection) -> None:
    """Write a connection as it is now, and publish it after the commit."""
    tx.run(UPDATE, connection.org_id, connection.id, connection.status, connection.generation)
    tx.after_commit(lambda: tx.state.put_remote_connection(connection))


def _end_credentials(tx: Tx, connection: RemoteConnection) -> None:
    tx.run(END_CREDENTIALS, connection.org_id, connection.id)

    def publish() -> None:
        for credential in tx.state.credentials_of("Connection", connection.id):
            if credential.org_id == connection.org_id:
                tx.state.drop_credential(credential.id)

    tx.after_commit(publish)
