"""Peers as rows, and an agent with every list that it is on: what a plan over all peers of an organisation is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from gateway.model.entity import Entity, EntityUid
from gateway.model.records import Peer
from gateway.store.state import State

Row = Mapping[str, str | bool]


def listed(state: State, entities: Iterable[Entity], agent: EntityUid, now: datetime) -> list[Entity]:
    """Returns entities with the agent among them in the observers of each peer that it is listed for; any other is in none."""
    if agent.type != "Agent":
        return list(entities)
    lists = [Entity(EntityUid("Observers", peer.id)) for peer in state.observed_peers(agent.id, now)]
    parents = tuple(each.uid for each in lists)
    return [*lists, *(replace(each, parents=each.parents + parents) if each.uid == agent else each for each in entities)]


def rows(state: State, org_id: str, now: datetime) -> Iterator[Row]:
    """Yields the peers of an organisation with the attributes of their entities, other entities by their ids."""
    for peer in list(state.peers.values()):
        if peer.org_id == org_id:
            yield _row(state, peer, now)


def _row(state: State, peer: Peer, now: datetime) -> Row:
    pause, row = peer.pause, {"id": peer.id, "org": peer.org_id, "peer_type": peer.peer_type, "observers": peer.id}
    person = state.person_of(peer)
    if person is not None:
        row["person"] = person.id
    if peer.connection_id in state.connections:
        row["connection"] = peer.connection_id
    paused = pause.reading and (pause.until is None or now < pause.until)
    return {**row, "archived": peer.archived, "reading_paused": paused}
