"""Peers: opening, listing and reading them."""

from __future__ import annotations

from dataclasses import replace

from gateway import limits
from gateway.model.ids import new_id
from gateway.model.records import PEER_TYPES, Pause, Peer, PeerType, PlatformConnection
from gateway.operations import peer_context
from gateway.operations.call import Call
from gateway.operations.fields import is_id
from gateway.operations.operation import Operation, Reply
from gateway.operations.peer_context import bury_what_expired
from gateway.operations.shapes import fact_object, peer_object
from gateway.operations.wire import peers as wire
from gateway.store import facts, peers
from gateway.store.entities import Missing


async def create(call: Call) -> Reply:
    """Open a peer, or add what the body names to the one there is."""
    body = call.body
    display_name = body.optional_text("display_name", longest=limits.NAME_CHARACTERS)
    agent_ids = body.ids("observer_agent_ids", most=limits.OBSERVERS_PER_CALL)
    peer_type = body.choice("peer_type", PEER_TYPES)
    peer_ref = body.text("peer_ref", longest=limits.REF_CHARACTERS)
    connection_id = _connection_id(call, peer_type, peer_ref)
    grant = call.access.authorize(call.session, "peer.create", _wanted(call, peer_type, peer_ref, connection_id))
    if connection_id is not None:
        call.access.authorize(call.session, "peer.link", grant.target)
    if agent_ids:
        call.access.authorize(call.session, "peer.set_observers", grant.target)
    peer = await call.write_alone(peers.open_peer, grant, display_name=display_name, agent_ids=agent_ids)
    return Reply({"peer": peer_object(call, peer)}, 201)


async def list_peers(call: Call) -> Reply:
    """A page of the organisation's peers, or of those about the caller."""
    status = call.query.optional_choice("status", ("active", "archived"))
    limit = call.query.count("limit", least=1, most=limits.PAGE, default=50)
    offset = call.query.count("offset", least=0, most=10**9, default=0)
    grant = call.access.authorize_first(call.session, ("peer.list", "peer.list_own"), call.org)
    page, total = await call.read(peers.list_peers, grant, status=status, limit=limit, offset=offset)
    # One that was erased since the page was read is not there any more.
    found = (call.state.peers.get(peer_id) for peer_id in page)
    return Reply({"peers": [peer_object(call, peer) for peer in found if peer is not None], "total": total})


async def read(call: Call) -> Reply:
    """A peer; with its facts for whom its content is shown to."""
    grant, visible = call.access.authorize_with(call.session, "peer.read", "peer.see_content", call.peer(call.path["id"]))
    found = []
    if visible:
        await bury_what_expired(call, grant)
        found = await call.read(facts.facts_with_basis, grant)
    grant.note(kind="peer", facts_served=len(found))
    shown = [fact_object(fact, call.session.caller) for fact in found]
    return Reply({"peer": peer_object(call, grant.target), "facts": shown})


async def read_by_connection(call: Call) -> Reply:
    """The peer of a connection, without its facts."""
    grant = call.access.authorize(call.session, "peer.read", _by_connection(call, call.path["connection_id"]))
    grant.note(kind="peer", facts_served=0)
    return Reply({"peer": peer_object(call, grant.target)})


def _wanted(call: Call, peer_type: PeerType, peer_ref: str, connection_id: str | None) -> Peer:
    """The peer as it would be: the one with this key, or a new one; so that the policy sees whom it is about."""
    standing = call.state.peer_with_key(call.org.id, peer_type, peer_ref)
    if standing is not None:
        return standing if connection_id is None else replace(standing, connection_id=connection_id)
    return Peer(new_id(), call.org.id, peer_type, peer_ref, None, connection_id, False, Pause(), call.now)


def _connection_id(call: Call, peer_type: PeerType, peer_ref: str) -> str | None:
    """The connection that is named; the peer of a connection names it by its ref."""
    named = call.body.optional_id("platform_connection_id")
    found = call.connection(named or (peer_ref if peer_type == "platform_connection" else None))
    if isinstance(found, PlatformConnection):
        return found.id
    if named is not None:
        raise call.body.wrong("platform_connection_id", "a connection of this organisation")
    return None


def _by_connection(call: Call, connection_id: str) -> Peer | Missing:
    """The peer of a connection. An unknown connection, a foreign one and one without a peer are the same."""
    peer = call.state.peer_of_connection(connection_id) if is_id(connection_id) else None
    if peer is None or peer.org_id != call.org.id:
        return Missing("Peer", "-")
    return peer


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "peer.create",
        "POST",
        "/v1/peers",
        "Open a peer about a person, or add observers to it.",
        create,
        actions=("peer.create", "peer.link", "peer.set_observers"),
        fields=wire.OPENED,
        body_bytes=limits.LARGE_BODY_BYTES,
        answers={201: wire.ONE_PEER},
    ),
    Operation(
        "peer.list",
        "GET",
        "/v1/peers",
        "List peers: all of the organisation, or the ones about oneself.",
        list_peers,
        actions=("peer.list", "peer.list_own"),
        query=wire.LISTED,
        strict=True,
        answers={200: wire.PEERS},
    ),
    Operation(
        "peer.read",
        "GET",
        "/v1/peers/{id}",
        "Read a peer with its facts.",
        read,
        actions=("peer.read", "peer.see_content"),
        answers={200: wire.PEER_WITH_FACTS},
    ),
    Operation(
        "peer.read_by_connection",
        "GET",
        "/v1/peers/by-connection/{connection_id}",
        "Read the peer of a connection.",
        read_by_connection,
        actions=("peer.read",),
        answers={200: wire.ONE_PEER},
    ),
    *peer_context.OPERATIONS,
)
