"""Bootstrap: the one act by which a platform provisions agents and lists them as observers of the person it connects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.errors import Conflict
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.records import Agent, Credential, Peer, PlatformConnection
from gateway.store import agents
from gateway.store.observers import list_anew, remember_removed, write_list
from gateway.store.peers import check_connection, put_peer
from gateway.store.platforms import current, put_claim, save
from gateway.store.rows import Tx

Provisioned = tuple[Agent, Credential]


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """What a connection has after its bootstrap. `made` says whether this call provisioned the agents."""

    connection: PlatformConnection
    peer: Peer
    agents: list[Agent]
    made: bool
    not_added: list[str]


def bootstrap(
    tx: Tx, grant: Grant[PlatformConnection], template_id: str, provisioned: Sequence[Provisioned], wanted: Peer, claim_hash: str
) -> Bootstrapped:
    """Provision a connection's agents the first time; every time, list them as observers of its peer and issue a claim.

    INVARIANT: only agents of this very connection are listed, and none that a human took off the list or gave an end that
    has come. Erasing the peer took them all off: a peer that is missing after the first bootstrap was erased, and is made
    anew empty and observed by nobody, until a human lists somebody.

    Raises:
        Conflict: the connection was bootstrapped from another template, or another peer is linked to it.
    """
    connection = current(tx, grant)
    made = connection.status == "pending"
    if made:
        connection = replace(connection, status="active", template_id=template_id)
        save(tx, connection)
        for agent, key in provisioned:
            agents.insert(tx, agent, key)
            tx.append(grant.audit("agent.created", {"agent_id": agent.id}, resource=EntityUid("Agent", agent.id)))
    elif connection.template_id != template_id:
        raise Conflict("this connection was bootstrapped from another template; `template_id` cannot change")
    own = [agent for agent, _ in provisioned] if made else tx.state.agents_of_connection(connection.id)
    erased = not made and tx.state.peer_with_key(wanted.org_id, wanted.peer_type, wanted.peer_ref) is None
    peer = _peer(tx, grant, wanted)
    if erased:
        remember_removed(tx, peer.id, [agent.id for agent in own], at=grant.now)
    not_added = _observe(tx, grant, peer, [agent.id for agent in own], none=erased)
    put_claim(tx, grant, connection, claim_hash)
    about = {"connection_id": connection.id, "peer_id": peer.id, "agent_ids": [agent.id for agent in own]}
    tx.append(grant.audit("platform.bootstrapped", about))
    return Bootstrapped(connection, peer, own, made, not_added)


def _peer(tx: Tx, grant: Grant[PlatformConnection], wanted: Peer) -> Peer:
    peer = tx.state.peer_with_key(wanted.org_id, wanted.peer_type, wanted.peer_ref)
    if peer is not None:
        return peer
    check_connection(tx, wanted)
    put_peer(tx, wanted, new=True)
    tx.append(grant.audit("peer.created", {"peer_id": wanted.id}, resource=EntityUid("Peer", wanted.id)))
    return wanted


def _observe(tx: Tx, grant: Grant[PlatformConnection], peer: Peer, agent_ids: Sequence[str], *, none: bool) -> list[str]:
    """Merge agents into the list, or none of them; and return those that a human's decision keeps off it."""
    if none:
        return list(agent_ids)
    standing = tx.state.observers.get(peer.id, {})
    ended = {agent_id for agent_id, entry in standing.items() if not entry.live_at(grant.now)}
    kept_off = [agent_id for agent_id in agent_ids if (peer.id, agent_id) in tx.state.removed_observers or agent_id in ended]
    wanted = [agent_id for agent_id in agent_ids if agent_id not in kept_off]
    entries, added = list_anew(tx, peer.id, wanted, by=grant.caller.id, now=grant.now)
    if added:
        write_list(tx, peer.id, entries)
        about = {"peer_id": peer.id, "agent_ids": added}
        tx.append(grant.audit("peer.observers_added", about, resource=EntityUid("Peer", peer.id)))
    return kept_off
