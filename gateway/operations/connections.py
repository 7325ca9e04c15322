"""Connections as the person sees them: which platforms are linked to me, and the end of such a link."""

from __future__ import annotations

from gateway.model.records import PlatformConnection
from gateway.operations.call import Call
from gateway.operations.fields import optional_stamp, stamp
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.wire import platform as wire
from gateway.store import platforms


async def list_connected(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "connection.list", call.org)
    own = [c for c in list(call.state.connections.values()) if c.user_id == grant.caller.id and c.status != "disconnected"]
    listed = [_shape(call, link) for link in sorted(own, key=lambda link: (link.created_at, link.id))]
    # One generation of clients reads one name, another the other.
    return Reply({"connected_apps": listed, "apps": listed})


async def disconnect(call: Call) -> Reply:
    connection = call.connection(call.path["connection_id"])
    grant = call.access.authorize(call.session, "connection.disconnect", connection, hide=True)
    await call.write_alone(platforms.disconnect, grant)
    return NO_CONTENT


def _shape(call: Call, connection: PlatformConnection) -> dict[str, object]:
    app = call.state.apps[connection.app_id]
    peer = call.state.peer_of_connection(connection.id)
    return {
        "connection_id": connection.id,
        "app_id": app.id,
        "app_name": app.name,
        "app_slug": app.slug,
        "status": connection.status,
        "agent_ids": [agent.id for agent in call.state.agents_of_connection(connection.id)],
        "peer_id": peer.id if peer is not None else None,
        "claimed_at": optional_stamp(connection.claimed_at),
        "connected_at": stamp(connection.created_at),
    }


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "connection.list",
        "GET",
        "/v1/platform/connected-apps",
        "List the platforms that are connected to oneself.",
        list_connected,
        actions=("connection.list",),
        answers={200: wire.CONNECTED},
    ),
    Operation(
        "connection.disconnect",
        "DELETE",
        "/v1/platform/connected-apps/{connection_id}",
        "End a connection and archive its peer.",
        disconnect,
        actions=("connection.disconnect",),
        answers={204: None},
    ),
)
