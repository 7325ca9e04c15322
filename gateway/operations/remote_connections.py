"""Remote connections: the remote agents that are connected to ours, as the people of the organisation manage them."""

from __future__ import annotations

from gateway import limits
from gateway.authn.keys import CONNECTION_KEY, mint_key
from gateway.model.ids import new_id
from gateway.model.memory import ConnectionStatus, RemoteConnection
from gateway.model.records import Credential
from gateway.operations.call import Call, safe_id
from gateway.operations.fields import stamp
from gateway.operations.memory_agent import named_agent
from gateway.operations.memory_fields import did, refuse_nulls, remote_id
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import memory as wire
from gateway.store import remote_connections
from gateway.store.entities import Missing


def named_connection(call: Call, connection_id: str) -> RemoteConnection | Missing:
    """A connection that the caller may know of: an agent of its own, a connection of itself; anybody else of the
    organisation's."""
    found, caller = call.remote_connection(connection_id), call.session.caller
    if isinstance(found, Missing):
        return found
    match caller.type:
        case "Agent" | "Bridge":
            known_to = found.agent_id
        case "Connection":
            known_to = found.id
        case _:
            return found
    return found if known_to == caller.id else Missing("Connection", safe_id(connection_id))


async def create(call: Call) -> Reply:
    """Connect a remote agent; the credential of the connection is shown once."""
    body = call.body
    refuse_nulls(body)
    connection = RemoteConnection(
        id=remote_id(body, "id") if "id" in body else new_id(),
        org_id=call.session.caller.org_id,
        agent_id=body.id("agent_id"),
        peer_did=did(body, "peer_did"),
        name=body.optional_text("name", longest=limits.NAME_CHARACTERS, shortest=1),
        status="active",
        replaces=remote_id(body, "replaces") if "replaces" in body else None,
        created_at=call.now,
    )
    grant = call.access.authorize(call.session, "remote_connection.create", call.agent(connection.agent_id))
    secret, key = _key(call, connection)
    await call.write_alone(remote_connections.create, grant, connection, key)
    return Reply({"connection": shape(connection), "credential": secret}, 201)


async def list_connections(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "remote_connection.list", named_agent(call, call.query))
    return Reply({"connections": [shape(connection) for connection in remote_connections.listed(call.state, grant)]})


async def get(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "remote_connection.read", named_connection(call, call.path["id"]))
    return Reply({"connection": shape(grant.target)})


async def suspend(call: Call) -> Reply:
    """Stop a connection for a while: its credential and its grants count for nothing meanwhile, its conversations end."""
    return await _set_status(call, "remote_connection.suspend", "suspended")


async def resume(call: Call) -> Reply:
    """Let a suspended connection go on."""
    return await _set_status(call, "remote_connection.resume", "active")


async def revoke(call: Call) -> Reply:
    """End a connection for good."""
    return await _set_status(call, "remote_connection.revoke", "revoked")


async def rotate_credential(call: Call) -> Reply:
    """Replace the credential; the one before it and the conversations have ended when this answers."""
    connection = named_connection(call, call.path["id"])
    grant = call.access.authorize(call.session, "remote_connection.rotate_credential", connection)
    secret, key = _key(call, grant.target)
    kept = await call.write_alone(remote_connections.rotate_credential, grant, key)
    return Reply({"connection": shape(kept), "credential": secret})


async def converse(call: Call) -> Reply:
    """Open a conversation: a token with which our agent writes as the connection and reads what the connection may."""
    refuse_nulls(call.body)
    least, most = limits.TOKEN_SECONDS_RANGE
    lifetime = call.body.optional_integer("ttl_seconds", least=least, most=most) or limits.TOKEN_SECONDS_AGENT
    grant = call.access.authorize(call.session, "remote_connection.converse", named_connection(call, call.path["id"]))
    token = call.services.authenticator.issue_conversation(grant.target, call.now, lifetime)
    await call.write(remote_connections.open_conversation, grant)
    return Reply({"token": token.access_token, "expires_in": token.expires_in, "connection_id": grant.target.id}, 201)


async def _set_status(call: Call, action: str, status: ConnectionStatus) -> Reply:
    grant = call.access.authorize(call.session, action, named_connection(call, call.path["id"]))
    return Reply({"connection": shape(await call.write_alone(remote_connections.set_status, grant, status))})


def _key(call: Call, connection: RemoteConnection) -> tuple[str, Credential]:
    """A fresh credential of a connection: its secret and what is kept."""
    secret, hashed = mint_key(CONNECTION_KEY)
    return secret, Credential(
        new_id(), connection.org_id, "Connection", connection.id, "connection credential", hashed, call.now, None
    )


def shape(connection: RemoteConnection) -> dict[str, object]:
    """A connection as the wire shows it."""
    return {
        "id": connection.id,
        "agent_id": connection.agent_id,
        "peer_did": connection.peer_did,
        "name": connection.name,
        "status": connection.status,
        "replaces": connection.replaces,
        "created_at": stamp(connection.created_at),
    }


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "remote_connection.create",
        "POST",
        "/v1/connections",
        "Connect a remote agent to one of ours; the credential of the connection is shown once.",
        create,
        actions=("remote_connection.create",),
        fields=wire.CONNECTED,
        strict=True,
        answers={201: wire.CONNECTION_WITH_KEY},
    ),
    Operation(
        "remote_connection.list",
        "GET",
        "/v1/connections",
        "List the remote connections of an agent.",
        list_connections,
        actions=("remote_connection.list",),
        query=wire.OF_AGENT,
        strict=True,
        answers={200: wire.CONNECTIONS},
    ),
    Operation(
        "remote_connection.read",
        "GET",
        "/v1/connections/{id}",
        "Show a remote connection.",
        get,
        actions=("remote_connection.read",),
        strict=True,
        answers={200: wire.CONNECTION},
    ),
    Operation(
        "remote_connection.suspend",
        "POST",
        "/v1/connections/{id}/suspend",
        "Suspend a remote connection: it reaches nothing until it is resumed, and its conversations end.",
        suspend,
        actions=("remote_connection.suspend",),
        strict=True,
        answers={200: wire.CONNECTION},
    ),
    Operation(
        "remote_connection.resume",
        "POST",
        "/v1/connections/{id}/resume",
        "Resume a suspended remote connection.",
        resume,
        actions=("remote_connection.resume",),
        strict=True,
        answers={200: wire.CONNECTION},
    ),
    Operation(
        "remote_connection.revoke",
        "POST",
        "/v1/connections/{id}/revoke",
        "Revoke a remote connection for good, with its credential and its conversations.",
        revoke,
        actions=("remote_connection.revoke",),
        strict=True,
        answers={200: wire.CONNECTION},
    ),
    Operation(
        "remote_connection.rotate_credential",
        "POST",
        "/v1/connections/{id}/credential",
        "End the credential of a remote connection and its conversations; the new credential is shown once.",
        rotate_credential,
        actions=("remote_connection.rotate_credential",),
        strict=True,
        answers={200: wire.CONNECTION_WITH_KEY},
    ),
    Operation(
        "remote_connection.converse",
        "POST",
        "/v1/connections/{id}/conversations",
        "Open a conversation: a token with which our agent reads what the connection may, and writes rows that bear its name.",
        converse,
        actions=("remote_connection.converse",),
        fields=wire.CONVERSED,
        strict=True,
        answers={201: wire.CONVERSATION},
    ),
)
