"""The entities of a foreign store: all of them parsed at once, and the few that one question can reach."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import cedarpy

from gateway.model.entity import EntityUid
from gateway.policy import slice as slices
from gateway.policy.bundle import Bundle
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.reading import Reads
from gateway.policy.value import canonical, each_key_once, named, refuse_unknown

ENTITIES = "entities.json"
#: What is read into memory whole.
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Stored:
    """One entity: its attributes in Cedar's JSON, all that it is in, and what policies could reach from it next.

    `text` is all of it as JSON, `members` and `tail` the parts of that.
    """

    uid: EntityUid
    attrs: Mapping[str, object]
    above: frozenset[EntityUid]
    reached: frozenset[EntityUid]
    members: Mapping[str, str] = field(repr=False)
    tail: str = field(repr=False)
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoredEntities:
    """Every entity of a store by uid, as one handle, and the ids of each type in order."""

    handle: cedarpy.Entities = field(repr=False)
    by_uid: Mapping[EntityUid, Stored] = field(repr=False)
    ids: Mapping[str, tuple[str, ...]] = field(repr=False)
    known: Mapping[str, frozenset[str]] = field(repr=False)
    hash: str
    _below: dict[tuple[str, EntityUid], tuple[EntityUid, ...]] = field(default_factory=dict, repr=False)

    def reach(self, root: EntityUid) -> frozenset[EntityUid]:
        """Returns everything that a policy could come to from an entity, which is among it."""
        waiting, seen = [root], set[EntityUid]()
        while waiting:
            uid = waiting.pop()
            if uid not in seen:
                seen.add(uid)
                stored = self.by_uid.get(uid)
                waiting += stored.reached if stored is not None else ()
        return frozenset(seen)

    def above(self, uid: EntityUid) -> frozenset[EntityUid]:
        """Returns all that an entity is in."""
        stored = self.by_uid.get(uid)
        return stored.above if stored is not None else frozenset()

    def below(self, type_: str, group: EntityUid) -> tuple[EntityUid, ...]:
        """Returns the entities of a type that are another, or in it."""
        key = (type_, group)
        known = self._below.get(key)
        if known is None:
            inside = (uid for uid in map(EntityUid, [type_] * len(self.ids.get(type_, ())), self.ids.get(type_, ())))
            found = [uid for uid in inside if uid != group and group in self.by_uid[uid].above]
            known = (*([group] if group.type == type_ else []), *found)
            if group in self.by_uid:  # there is no end of others
                self._below[key] = known
        return known


def load(bundle: Bundle, text: str, reads: Reads) -> StoredEntities:
    """Returns the entities of a text in Cedar's JSON; `reads` is what the policies read. Raises `PolicyError`."""
    try:
        given = json.loads(text, object_pairs_hook=each_key_once)
        refuse_unknown(given)
        handle = slices.parse(bundle, canonical(given), others_run=True)
    except (ValueError, RecursionError) as error:
        raise PolicyError([Finding(ENTITIES, 0, "", str(error))]) from error
    actions = frozenset(bundle.action_uids.values())
    written = json.loads(str(handle))
    above = {EntityUid(**e["uid"]): frozenset(EntityUid(**parent) for parent in e["parents"]) for e in written}
    found = {stored.uid: stored for stored in (_stored(each, above, reads) for each in written)}
    by_uid = {uid: found[uid] for uid in sorted(found.keys() - actions)}
    ids: dict[str, list[str]] = defaultdict(list)
    for uid in by_uid:
        ids[uid.type].append(uid.id)
    # As it was given: what Cedar writes of the same entities has their attributes and sets in another order each time.
    whole = slices.digest(sorted(map(canonical, given)))
    ordered = {type_: tuple(found) for type_, found in ids.items()}
    return StoredEntities(handle, by_uid, ordered, {type_: frozenset(found) for type_, found in ids.items()}, whole)


def made_text(uid: EntityUid, stored: Stored | None, attrs: Mapping[str, object]) -> str:
    """Returns an entity in Cedar's JSON as it is with some attributes, over those that are stored of it, if it is."""
    kept = [text for name, text in stored.members.items() if name not in attrs] if stored is not None else []
    given = [json.dumps(attrs)[1:-1]] if attrs else []
    return _text(uid, [*kept, *given], stored.tail if stored is not None else _tail({}, ()))


def _text(uid: EntityUid, members: Iterable[str], tail: str) -> str:
    named = f'{{"type":{json.dumps(uid.type)},"id":{json.dumps(uid.id)}}}'
    return f'{{"uid":{named},"attrs":{{{",".join(members)}}}{tail}}}'


def _tail(tags: Mapping[str, object], parents: Iterable[EntityUid]) -> str:
    named = [{"type": parent.type, "id": parent.id} for parent in parents]
    return f',"parents":{json.dumps(named)},"tags":{json.dumps(tags)}'


def _stored(entity: Mapping[str, Any], above: Mapping[EntityUid, frozenset[EntityUid]], reads: Reads) -> Stored:
    """An entity as Cedar writes it: everything that is named is marked as an entity. `above` is what every entity is in."""
    uid = EntityUid(**entity["uid"])
    attrs, tags = entity["attrs"], entity.get("tags", {})
    followed = [value for name, value in attrs.items() if name in reads.followed]
    reached = above[uid].union(named(followed), named(list(tags.values())) if reads.tags else ())
    members = {name: f"{json.dumps(name)}:{json.dumps(value)}" for name, value in attrs.items()}
    # What a parent is in need not be said again, and reading a parent is a good part of what an entity costs.
    said = frozenset[EntityUid]().union(*(above.get(parent, ()) for parent in above[uid]))
    tail = _tail(tags, sorted(above[uid] - said))
    return Stored(uid, attrs, above[uid], reached, members, tail, _text(uid, members.values(), tail))
