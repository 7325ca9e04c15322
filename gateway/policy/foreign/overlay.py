"""Overlays: what was sent of a subject and a resource, laid over what is stored of them, for one request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

import cedarpy

from gateway.model.asked import Asked, Named, Unusable
from gateway.model.entity import EntityUid
from gateway.policy import slice as slices
from gateway.policy.bundle import Bundle
from gateway.policy.foreign.entities import StoredEntities, made_text
from gateway.policy.foreign.schema import ForeignSchema
from gateway.policy.foreign.values import Incomplete, Reading, missing_of
from gateway.policy.reading import Reads

#: The entities of a request, which of them are made anew, and what else was named.
Base = tuple[str, str, str, str, tuple[bool, ...], frozenset[EntityUid]]
#: What requests are laid over, kept for those that were made last; one is some tens of kilobytes.
BASES = 4_096
#: Of the names in a request and the entities that they come to; what is larger is not kept.
BASE_CHARACTERS = 32 * 1024


@dataclass(frozen=True, slots=True)
class Overlays:
    """Makes the entities of one request; what does not change between requests about the same entities is kept."""

    bundle: Bundle = field(repr=False)
    schema: ForeignSchema = field(repr=False)
    entities: StoredEntities = field(repr=False)
    reads: Reads = field(repr=False)
    bases: OrderedDict[Base, cedarpy.Entities] = field(default_factory=OrderedDict, repr=False)

    def lay(self, asked: Asked, types: tuple[str, str], reading: Reading) -> cedarpy.Entities | None:
        """Returns the entities to decide over, None when nothing of what was sent is declared.

        Raises `Incomplete` for an entity that is neither stored nor sent whole, and `Unusable`.
        """
        made: dict[EntityUid, str] = {}
        for uid, attrs in self._sent(asked, types, reading).items():
            stored = self.entities.by_uid.get(uid)
            if stored is None and (missing := missing_of(self.schema.entities[uid.type].attributes, attrs)):
                raise Incomplete(missing, "is required of an entity that is not stored")
            if attrs:
                made[uid] = made_text(uid, stored, attrs)
        return self._over(made, asked, types, reading) if made else None

    def _sent(self, asked: Asked, types: tuple[str, str], reading: Reading) -> dict[EntityUid, dict[str, object]]:
        """The attributes that were sent of each entity."""
        sent: dict[EntityUid, dict[str, object]] = {}
        for type_, named, place in ((types[0], asked.subject, "subject"), (types[1], asked.resource, "resource")):
            read = self._read(type_, named, reading, place)
            uid = EntityUid(type_, named.id)
            before = sent.setdefault(uid, read)
            if before is not read and any(before.setdefault(name, value) != value for name, value in read.items()):
                raise Unusable(f"{place}.properties", "are not what was sent of the same entity as the subject")
        return sent

    def _read(self, type_: str, named: Named, reading: Reading, place: str) -> dict[str, object]:
        if not named.properties:
            return {}
        return reading.record(named.properties, self.schema.entities[type_].attributes, f"{place}.properties")

    def _over(self, made: Mapping[EntityUid, str], asked: Asked, types: tuple[str, str], reading: Reading) -> cedarpy.Entities:
        """What was made on top of what a policy could come to from it."""
        subject, resource = EntityUid(types[0], asked.subject.id), EntityUid(types[1], asked.resource.id)
        which = (subject in made, resource in made)
        key = (subject.type, subject.id, resource.type, resource.id, which, frozenset(reading.named))
        base = self.bases.get(key)
        try:
            if base is None:
                roots = {subject, resource, *reading.named, *self.reads.entities}
                for uid in made:
                    stored = self.entities.by_uid.get(uid)
                    roots |= stored.reached if stored is not None else frozenset()
                text = ",".join(self.entities.reach(roots, made))
                base = slices.parse(self.bundle, f"[{text}]")
                if len(text) + sum(len(uid.id) for uid in (subject, resource, *reading.named)) <= BASE_CHARACTERS:
                    self.bases[key] = base
                if len(self.bases) > BASES:
                    self.bases.popitem(last=False)
            else:
                self.bases.move_to_end(key)
            return slices.parse(self.bundle, f"[{','.join(made.values())}]", base)
        except slices.SliceError as refused:
            raise Unusable("properties", "hold a value that Cedar does not take") from refused
