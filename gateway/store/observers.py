"""Observers: the list that says which agents reach a peer, and nothing else does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.errors import Invalid, NotFound
from gateway.model.grant import Grant
from gateway.model.records import Observer, Peer
from gateway.store.rows import Tx

DELETE = "DELETE FROM observers WHERE peer_id = $1 AND agent_id IN (SELECT unnest($2::VARCHAR[]))"
UPSERT = """INSERT INTO observers (peer_id, agent_id, added_by, added_at, expires_at)
  SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]), unnest($3::VARCHAR[]), unnest($4::TIMESTAMP[]), unnest($5::TIMESTAMP[])
  ON CONFLICT (peer_id, agent_id) DO UPDATE SET added_by = excluded.added_by, added_at = excluded.added_at,
  expires_at = excluded.expires_at"""
REMEMBER = """INSERT INTO removed_observers (peer_id, agent_id, removed_at)
  SELECT $1, unnest($2::VARCHAR[]), $3::TIMESTAMP ON CONFLICT DO NOTHING"""
FORGET = "DELETE FROM removed_observers WHERE peer_id = $1 AND agent_id IN (SELECT unnest($2::VARCHAR[]))"


@dataclass(frozen=True, slots=True)
class Lease:
    """An entry as a human asks for it; without an end when `expires_at` is None."""

    agent_id: str
    expires_at: datetime | None


def list_anew(tx: Tx, peer_id: str, agent_ids: Sequence[str], *, by: str, now: datetime) -> tuple[list[Observer], list[str]]:
    """The list with agents added that are not on it now, without an end; and which of them were added."""
    standing = dict(tx.state.observers.get(peer_id, {}))
    added = [agent for agent in agent_ids if agent not in standing or not standing[agent].live_at(now)]
    for agent_id in added:
        standing[agent_id] = Observer(peer_id, agent_id, by, now, None)
    return list(standing.values()), added


def write_list(tx: Tx, peer_id: str, entries: Sequence[Observer], *, removed_at: datetime | None = None) -> list[str]:
    """Make `entries` the whole list, and return which agents are no longer on it.

    With `removed_at`, those are remembered as taken off by a human; whoever is listed is not remembered so any more.
    """
    standing = tx.state.observers.get(peer_id, {})
    listed = {entry.agent_id: entry for entry in entries}
    gone = sorted(standing.keys() - listed.keys())
    fresh = [entry for agent_id, entry in listed.items() if standing.get(agent_id) != entry]
    back = [agent_id for agent_id in listed if (peer_id, agent_id) in tx.state.removed_observers]
    if gone:
        tx.run(DELETE, peer_id, gone)
    columns = list(zip(*((e.peer_id, e.agent_id, e.added_by, e.added_at, e.expires_at) for e in fresh), strict=True))
    if columns:
        tx.insert_many(UPSERT, *columns)
    if gone and removed_at is not None:
        remember_removed(tx, peer_id, gone, at=removed_at)
    if back:
        tx.run(FORGET, peer_id, back)

    def publish() -> None:
        tx.state.put_observers(peer_id, list(listed.values()))
        for agent_id in back:
            tx.state.remember_removed(peer_id, agent_id, removed=False)

    tx.after_commit(publish)
    return gone


def remember_removed(tx: Tx, peer_id: str, agent_ids: Sequence[str], *, at: datetime) -> None:
    """Remember agents as kept off a list by a human."""
    tx.run(REMEMBER, peer_id, list(agent_ids), at)

    def publish() -> None:
        for agent_id in agent_ids:
            tx.state.remember_removed(peer_id, agent_id, removed=True)

    tx.after_commit(publish)


def replace_observers(tx: Tx, grant: Grant[Peer], leases: Sequence[Lease]) -> list[Observer]:
    """Replace the list whole. A live entry keeps who added it and when.

    Raises:
        Invalid: an agent is not one of this organisation.
        NotFound: the peer was erased in the meantime.
    """
    peer_id, now = grant.target.id, grant.now
    if peer_id not in tx.state.peers:
        raise NotFound
    standing = tx.state.observers.get(peer_id, {})
    entries = []
    for index, lease in enumerate(leases):
        agent = tx.state.agents.get(lease.agent_id)
        if agent is None or agent.org_id != grant.target.org_id:
            field = f"observers[{index}].agent_id"
            raise Invalid(f"`{field}` names `{lease.agent_id}`, which is not an agent of this organisation", field=field)
        old = standing.get(lease.agent_id)
        by, at = (old.added_by, old.added_at) if old is not None and old.live_at(now) else (grant.caller.id, now)
        entries.append(Observer(peer_id, lease.agent_id, by, at, lease.expires_at))
    removed = write_list(tx, peer_id, entries, removed_at=now)
    listed = [entry.agent_id for entry in entries]
    tx.append(grant.audit("peer.observers_replaced", {"agent_ids": listed, "removed_agent_ids": removed}))
    return entries
