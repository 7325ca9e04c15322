"""Observers: who reaches a peer, as the person, an owner or an admin sets it."""

from __future__ import annotations

from gateway import limits
from gateway.errors import Invalid
from gateway.model.records import Observer, Peer
from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.operations.shapes import observer_object, peer_object
from gateway.operations.wire import peers as wire
from gateway.store import observers
from gateway.store.observers import Lease


async def read(call: Call) -> Reply:
    """The observer list of a peer, without leases that have ended."""
    grant = call.access.authorize(call.session, "peer.read_observers", call.peer(call.path["id"]))
    return _reply(call, grant.target, call.state.live_observers(grant.target.id, call.now))


async def replace(call: Call) -> Reply:
    """Replace the observer list whole."""
    leases = _leases(call)
    grant = call.access.authorize(call.session, "peer.set_observers", call.peer(call.path["id"]))
    entries = await call.write_alone(observers.replace_observers, grant, leases)
    return _reply(call, grant.target, entries)


def _leases(call: Call) -> list[Lease]:
    if not call.body.has("observers"):
        raise call.body.wrong("observers", "a list; an empty one means nobody")
    leases: dict[str, Lease] = {}
    for entry in call.body.objects("observers", most=limits.OBSERVERS_PER_CALL):
        entry.refuse_others(("agent_id", "observer_expires_at"))
        agent_id, expires_at = entry.id("agent_id"), entry.optional_timestamp("observer_expires_at")
        if agent_id in leases:
            raise Invalid(f"`{entry.name('agent_id')}` repeats `{agent_id}`", field=entry.name("agent_id"))
        if expires_at is not None and expires_at <= call.now:
            raise entry.wrong("observer_expires_at", "in the future")
        leases[agent_id] = Lease(agent_id, expires_at)
    return list(leases.values())


def _reply(call: Call, peer: Peer, entries: list[Observer]) -> Reply:
    ordered = sorted(entries, key=lambda entry: (entry.added_at, entry.agent_id))
    return Reply({"peer": peer_object(call, peer), "observers": [observer_object(call, entry) for entry in ordered]})


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "peer.read_observers",
        "GET",
        "/v1/peers/{id}/observers",
        "List the agents that observe a peer.",
        read,
        actions=("peer.read_observers",),
        strict=True,
        answers={200: wire.OBSERVERS},
    ),
    Operation(
        "peer.set_observers",
        "PUT",
        "/v1/peers/{id}/observers",
        "Replace the list of agents that observe a peer; an empty list means nobody.",
        replace,
        actions=("peer.set_observers",),
        fields=wire.OBSERVED,
        strict=True,
        body_bytes=limits.LARGE_BODY_BYTES,
        answers={200: wire.OBSERVERS},
    ),
)
