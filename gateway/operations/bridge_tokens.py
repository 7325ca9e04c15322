"""The token of the network's bridge to an agent, made by the people of the organisation."""

from __future__ import annotations

from gateway.authn.keys import BRIDGE_KEY, mint_key
from gateway.model.ids import new_id
from gateway.model.records import Credential
from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import agents as wire
from gateway.store import remote_connections


async def rotate(call: Call) -> Reply:
    """Make a token for the bridge to an agent; the one before it has ended when this answers."""
    grant = call.access.authorize(call.session, "bridge.rotate_token", call.agent(call.path["id"]))
    secret, hashed = mint_key(BRIDGE_KEY)
    key = Credential(new_id(), grant.target.org_id, "Bridge", grant.target.id, "bridge token", hashed, call.now, None)
    await call.write_alone(remote_connections.rotate_bridge, grant, key)
    return Reply({"token": secret, "agent_id": grant.target.id}, 201)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "bridge.rotate_token",
        "POST",
        "/v1/agents/{id}/bridge-token",
        "End the token of the bridge to an agent and make a new one, which is shown once.",
        rotate,
        actions=("bridge.rotate_token",),
        strict=True,
        answers={201: wire.BRIDGE_TOKEN},
    ),
)
