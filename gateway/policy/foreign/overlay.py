"""Overlays: what was sent of a subject and a resource, laid over what is stored of them, for one request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import cedarpy

from gateway.model.asked import Asked, Named, Unusable
from gateway.model.entity import EntityUid
from gateway.policy import slice as slices
from gateway.policy.bundle import Bundle
from gateway.policy.foreign.entities import Stored, StoredEntities, made_text
from gateway.policy.foreign.values import ABSENT, Incomplete, Reading, missing_of
from gateway.policy.reading import Reads
from gateway.policy.schema import Schema

#: Stored entities of which it is kept what can be reached from them.
KEPT = 4_096


@dataclass(frozen=True, slots=True)
class Laid:
    """What a question is asked over: entities that are `made` for it, as texts, and all that policies can come to from it."""

    made: Mapping[EntityUid, str]
    reached: frozenset[EntityUid]


#: Over the store as it is.
AS_STORED = Laid({}, frozenset())


@dataclass(frozen=True, slots=True)
class Layer:
    """Entities that some questions are asked over together."""

    made: dict[EntityUid, str]
    reached: set[EntityUid]

    @staticmethod
    def of(laid: Laid) -> Layer:
        """Returns the layer of one question."""
        return Layer(dict(laid.made), set(laid.reached))


def layered(laid: Sequence[Laid]) -> list[tuple[Layer, list[int]]]:
    """Returns layers for some questions, each with the places of its questions; a question is in the first that it fits into.

    INVARIANT: what a question can come to is in its layer as it is for that question alone, however many are in it.

    Layers that have come to an entity are kept as bits of one number, so that a question is held against all of them at once.
    """
    layers: list[tuple[Layer, list[int]]] = []
    made = {uid for each in laid for uid in each.made}
    come_to: defaultdict[EntityUid, int] = defaultdict(int)
    come_to_as: defaultdict[tuple[EntityUid, str | None], int] = defaultdict(int)
    for place, each in enumerate(laid):
        # Whatever else it can come to is as it is stored for everybody.
        met = [(uid, each.made.get(uid)) for uid in made & each.reached]
        unfit = 0
        for uid, text in met:
            unfit |= come_to[uid] & ~come_to_as[uid, text]
        first = ~unfit & (unfit + 1)
        for uid, text in met:
            come_to[uid] |= first
            come_to_as[uid, text] |= first
        if first.bit_length() > len(layers):
            layers.append((Layer({}, set()), []))
        layer, places = layers[first.bit_length() - 1]
        layer.made.update(each.made)
        layer.reached.update(each.reached)
        places.append(place)
    return layers


class Overlays:
    """Makes the entities of requests."""

    def __init__(self, bundle: Bundle, schema: Schema, entities: StoredEntities, reads: Reads) -> None:
        self._bundle = bundle
        self._schema = schema
        self._entities = entities
        self._reads = reads
        self._reach_stored = lru_cache(maxsize=KEPT)(entities.reach)

    def lay(self, asked: Asked, types: tuple[str, str], reading: Reading) -> Laid:
        """Returns what to ask over, which is the store as it is when nothing of what was sent can make a difference.

        Raises `Incomplete` for an entity that is neither stored nor sent whole, and `Unusable`.
        """
        subject, resource = EntityUid(types[0], asked.subject.id), EntityUid(types[1], asked.resource.id)
        sent = {subject: self._read(subject, asked.subject, reading, "subject")}
        of_resource = self._read(resource, asked.resource, reading, "resource")
        before = sent.setdefault(resource, of_resource)
        if before is not of_resource and any(before.setdefault(name, value) != value for name, value in of_resource.items()):
            raise Unusable("resource.properties", "are not what was sent of the same entity as the subject")
        made: dict[EntityUid, str] = {}
        for uid, attrs in sent.items():
            stored = self._entities.by_uid.get(uid)
            if stored is None and (missing := missing_of(self._schema.entities[uid.type].attributes, attrs)):
                raise Incomplete(missing, "is required of an entity that is not stored")
            if told := attrs if stored is None else self._telling(stored, attrs):
                made[uid] = made_text(uid, stored, told)
        if not made:
            return AS_STORED
        roots = {*sent, *reading.named, *self._reads.entities}
        return Laid(made, frozenset[EntityUid]().union(*map(self._reach, roots)))

    def entities(self, layer: Layer) -> cedarpy.Entities:
        """Returns the entities of a layer; raises `Unusable` for values that Cedar does not take."""
        stored = [self._entities.by_uid[uid].text for uid in layer.reached - layer.made.keys() if uid in self._entities.by_uid]
        try:
            return slices.parse(self._bundle, f"[{','.join([*stored, *layer.made.values()])}]")
        except slices.SliceError as refused:
            raise Unusable("properties", "hold a value that Cedar does not take") from refused

    def _reach(self, uid: EntityUid) -> frozenset[EntityUid]:
        """What can be reached from an entity; one that is not stored leads nowhere, and is whatever somebody sent."""
        return self._reach_stored(uid) if uid in self._entities.by_uid else frozenset((uid,))

    def _telling(self, stored: Stored, attrs: Mapping[str, object]) -> dict[str, object]:
        """The attributes that some policy reads, and that are not as they are stored."""
        read, held = self._reads.attributes, stored.attrs
        return {name: value for name, value in attrs.items() if name in read and held.get(name, ABSENT) != value}

    def _read(self, uid: EntityUid, named: Named, reading: Reading, place: str) -> dict[str, object]:
        if not named.properties:
            return {}
        return reading.record(named.properties, self._schema.entities[uid.type].attributes, f"{place}.properties")
