"""Peers: what the gateway holds a person's history under, one for each (organisation, type, ref)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from gateway.errors import Conflict, Invalid, NotFound
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.records import Org, Pause, Peer
from gateway.store.observers import list_anew, write_list
from gateway.store.rows import Rows, Tx

INSERT = """INSERT INTO peers (id, org_id, peer_type, peer_ref, display_name, connection_id, status, pause_reading,
  pause_learning, pause_until, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"""
UPDATE = """UPDATE peers SET display_name = $2, connection_id = $3, status = $4, pause_reading = $5, pause_learning = $6,
  pause_until = $7 WHERE id = $1"""

_LISTED = """FROM peers p LEFT JOIN platform_connections c ON c.id = p.connection_id
  WHERE p.org_id = $1 AND ($2::VARCHAR IS NULL OR p.status = $2)
  AND ($3::VARCHAR IS NULL OR CASE WHEN p.peer_type = 'user' THEN p.peer_ref ELSE c.user_id END = $3)"""
PAGE = f"SELECT p.id {_LISTED} ORDER BY p.created_at, p.id LIMIT $4 OFFSET $5"  # constants only
TOTAL = f"SELECT count(*) {_LISTED}"  # constants only


def open_peer(tx: Tx, grant: Grant[Peer], *, display_name: str | None, agent_ids: Sequence[str]) -> Peer:
    """Make the granted peer, or merge into the one that has its key; and list agents as observers.

    A name that is given replaces the old one. A live entry of the list stays as it is; one that has ended is listed anew.

    Raises:
        Invalid: an agent is not one of this organisation.
        Conflict: the connection belongs to another peer, or the peer to another connection.
    """
    wanted = grant.target
    for agent_id in agent_ids:
        agent = tx.state.agents.get(agent_id)
        if agent is None or agent.org_id != wanted.org_id:
            field = "observer_agent_ids"
            raise Invalid(f"`{field}` names `{agent_id}`, which is not an agent of this organisation", field=field)
    standing = tx.state.peer_with_key(wanted.org_id, wanted.peer_type, wanted.peer_ref)
    if standing is None:
        peer = replace(wanted, display_name=display_name)
        check_connection(tx, peer)
        put_peer(tx, peer, new=True)
        tx.append(grant.audit("peer.created", {"peer_id": peer.id}, resource=EntityUid("Peer", peer.id)))
    else:
        peer = replace(
            standing,
            display_name=standing.display_name if display_name is None else display_name,
            connection_id=standing.connection_id or wanted.connection_id,
        )
        if wanted.connection_id not in (None, peer.connection_id):
            raise Conflict("this peer is linked to another `platform_connection_id`", field="platform_connection_id")
        check_connection(tx, peer)
        if peer != standing:
            put_peer(tx, peer)
            tx.append(grant.audit("peer.updated", {"peer_id": peer.id}, resource=EntityUid("Peer", peer.id)))
    entries, added = list_anew(tx, peer.id, agent_ids, by=grant.caller.id, now=grant.now)
    if added:
        write_list(tx, peer.id, entries)
        about = {"peer_id": peer.id, "agent_ids": added}
        tx.append(grant.audit("peer.observers_added", about, resource=EntityUid("Peer", peer.id)))
    return peer


def check_connection(tx: Tx, peer: Peer) -> None:
    """Refuse a second peer for one connection: the look-up by connection has one answer."""
    other = None if peer.connection_id is None else tx.state.peer_of_connection(peer.connection_id)
    if other is not None and other.id != peer.id:
        raise Conflict("`platform_connection_id` already has a peer", field="platform_connection_id")


def put_peer(tx: Tx, peer: Peer, *, new: bool = False) -> None:
    """Write a peer's row and publish it."""
    status = "archived" if peer.archived else "active"
    pause = peer.pause
    if new:
        tx.run(
            INSERT,
            peer.id,
            peer.org_id,
            peer.peer_type,
            peer.peer_ref,
            peer.display_name,
            peer.connection_id,
            status,
            pause.reading,
            pause.learning,
            pause.until,
            peer.created_at,
        )
    else:
        tx.run(UPDATE, peer.id, peer.display_name, peer.connection_id, status, pause.reading, pause.learning, pause.until)
    tx.after_commit(lambda: tx.state.put_peer(peer))


def set_pause(tx: Tx, grant: Grant[Peer], pause: Pause) -> Pause:
    """Set the two switches of the person.

    Raises:
        NotFound: the peer was erased in the meantime.
    """
    peer = tx.state.peers.get(grant.target.id)
    if peer is None:
        raise NotFound
    put_peer(tx, replace(peer, pause=pause))
    tx.append(grant.audit("peer.paused", {"reading": pause.reading, "learning": pause.learning, "until": _text(pause.until)}))
    return pause


def list_peers(rows: Rows, grant: Grant[Org], *, status: str | None, limit: int, offset: int) -> tuple[list[str], int]:
    """The ids of a page of peers, oldest first, and how many there are: all, or with `peer.list_own` the caller's own."""
    person = None if grant.action == "peer.list" else grant.caller.id
    which = (grant.target.id, status, person)
    page = [peer_id for (peer_id,) in rows.all(PAGE, *which, limit, offset)]
    grant.note(served=len(page))
    return page, rows.value(TOTAL, *which)


def _text(until: datetime | None) -> str | None:
    return None if until is None else until.isoformat()
