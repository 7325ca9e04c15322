"""A schema in full: every entity type, attribute, tag, action and context, by qualified names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import cedarpy

from gateway.model.entity import EntityUid
from gateway.policy import partition
from gateway.policy.words import Declaration, SchemaRefused, Words, declarations, qualified

#: Cedar's own types, which any declaration of the same name comes before.
PRIMITIVES = frozenset(("Bool", "Long", "String", "decimal", "datetime", "duration", "ipaddr"))
#: Types within types, through common ones too: Python would stop at some hundreds.
DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Primitive:
    """One of `PRIMITIVES`."""

    name: str


@dataclass(frozen=True, slots=True)
class Reference:
    """An entity of a type."""

    name: str


@dataclass(frozen=True, slots=True)
class ActionOf:
    """An action; each namespace has a type of its own for those that it declares."""

    name: str


@dataclass(frozen=True, slots=True)
class SetOf:
    """A set of values of one type."""

    item: Type


@dataclass(frozen=True, slots=True)
class RecordOf:
    """A record, or the attributes of an entity."""

    fields: Mapping[str, Field]


Type = Primitive | Reference | ActionOf | SetOf | RecordOf


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute of a record or an entity."""

    type: Type
    optional: bool


NOTHING = RecordOf({})


@dataclass(frozen=True, slots=True)
class EntityShape:
    """What entities of a type are directly in, their attributes, and the type of their tags, if they have any.

    `ids` are all that there are of an enumerated type, and None for any other.
    """

    parents: tuple[str, ...]
    attributes: RecordOf
    tags: Type | None
    ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ActionShape:
    """Between whom an action is, and what its context holds."""

    principals: tuple[str, ...]
    resources: tuple[str, ...]
    context: RecordOf


@dataclass(frozen=True, slots=True)
class Schema:
    """Entity types, and by id the actions that can be asked for; `groups` are all that each action is in, and itself."""

    entities: Mapping[str, EntityShape]
    actions: Mapping[str, ActionShape]
    groups: Mapping[EntityUid, frozenset[EntityUid]]

    @property
    def enumerated(self) -> bool:
        """Whether some type has enumerated ids: the one thing about an entity's id that a request is validated for."""
        return any(shape.ids is not None for shape in self.entities.values())

    def above(self, type_: str) -> frozenset[str]:
        """Returns every type of which an entity of a type could be within another entity; none for a type of actions."""
        found: set[str] = set()
        waiting = [type_]
        while waiting:
            shape = self.entities.get(waiting.pop())
            new = set(shape.parents if shape is not None else ()) - found
            found |= new
            waiting += new
        return frozenset(found)


@dataclass(frozen=True, slots=True, order=True)
class Question:
    """A kind of question: an action by its id, between two types."""

    action: str
    principal: str
    resource: str


def questions(types: Schema) -> Iterator[Question]:
    """Yields every kind of question of a schema."""
    for action, shape in sorted(types.actions.items()):
        yield from (Question(action, principal, resource) for principal in shape.principals for resource in shape.resources)


def read(handle: cedarpy.Schema) -> Schema:
    """Returns what a schema says; raises `SchemaRefused`."""
    return read_text(str(handle), partition.groups(handle))


def read_text(text: str, groups: Mapping[EntityUid, frozenset[EntityUid]]) -> Schema:
    """Returns what a text says that `str` gives of a schema: Cedar's normal form, valid and without comments.

    `groups` has each action with all that it is in, as Cedar says it. Raises `SchemaRefused` for anything in the text that is
    not known here, and for two actions of one id.
    """
    declared = list(declarations(text))
    entities = {d.name: d for d in declared if d.kind == "entity"}
    known = _Known({d.name: d for d in declared if d.kind == "type"}, entities, {uid.type for uid in groups})
    for name in known.types:
        known.common(name)
    shapes = {name: _Reader(known, declaration).entity() for name, declaration in entities.items()}
    actions: dict[str, ActionShape | None] = {}
    for declaration in (d for d in declared if d.kind == "action"):
        if declaration.name in actions:
            raise SchemaRefused(f"two actions are called `{declaration.name}`")
        actions[declaration.name] = _Reader(known, declaration).action()
    asked = {id_: shape for id_, shape in actions.items() if shape is not None}
    return Schema(shapes, asked, groups)


class _Known:
    """What a schema declares, to look names up in: common types by their declarations, each of which is read once."""

    def __init__(self, types: Mapping[str, Declaration], entities: Collection[str], actions: Collection[str]) -> None:
        self.types = types
        self.entities = entities
        self.actions = actions
        self.depth = 0
        self._read: dict[str, Type] = {}

    def common(self, name: str) -> Type:
        """Returns a common type; that it is not within itself is what Cedar has checked."""
        if name not in self._read:
            reader = _Reader(self, self.types[name])
            reader.take("=")
            self._read[name] = reader.type()
            reader.take(";")
        return self._read[name]


class _Reader(Words):
    """Reads one declaration, whose names are looked for in its namespace first."""

    def __init__(self, known: _Known, declared: Declaration) -> None:
        super().__init__(f"{declared.kind} `{declared.name}`", declared.words)
        self._known = known
        self._namespace = declared.namespace

    def entity(self) -> EntityShape:
        if self.maybe("enum"):
            shape = EntityShape((), NOTHING, None, self._list(self.string))
        else:
            parents = self._list(self._entity_type) if self.maybe("in") else ()
            attributes = self._record() if self.maybe("=") else NOTHING
            shape = EntityShape(parents, attributes, self.type() if self.maybe("tags") else None)
        self.take(";")
        return shape

    def action(self) -> ActionShape | None:
        """What the action applies to; None for one that only groups others."""
        if self.maybe("in"):
            self._list(self._group)  # which Cedar knows by itself
        if self.maybe(";"):
            return None
        self.take("appliesTo", "{", "principal", ":")
        principals = self._list(self._entity_type)
        self.take(",", "resource", ":")
        resources = self._list(self._entity_type)
        self.take(",", "context", ":")
        context = self.type()
        if not isinstance(context, RecordOf):
            raise self.refused("a record is expected")
        self.take("}", ";")
        return ActionShape(principals, resources, context)

    def type(self) -> Type:
        self._known.depth += 1
        if self._known.depth > DEEPEST:
            raise self.refused(f"at most {DEEPEST} types within types are expected")
        found = self._record() if self.next() == "{" else self._named()
        self._known.depth -= 1
        return found

    def _named(self) -> Type:
        path = self.path()
        if path == "Set" and self.maybe("<"):
            item = self.type()
            self.take(">")
            return SetOf(item)
        for name in self._meanings(path):
            if name in self._known.types:
                return self._known.common(name)
            if name in self._known.entities:
                return Reference(name)
            if name in self._known.actions:
                return ActionOf(name)
        if (own := path.removeprefix("__cedar::")) not in PRIMITIVES:
            raise self.refused("a type that is known is expected")
        return Primitive(own)

    def _record(self) -> RecordOf:
        fields: dict[str, Field] = {}
        self.take("{")
        while not self.maybe("}"):
            if fields:
                self.take(",")
            self.annotations()
            name = self.string() if self.next().startswith('"') else self.name()
            optional = self.maybe("?")
            self.take(":")
            fields[name] = Field(self.type(), optional)
        return RecordOf(fields)

    def _list(self, item: Callable[[], str]) -> tuple[str, ...]:
        self.take("[")
        items = [item()]
        while self.maybe(","):
            items.append(item())
        self.take("]")
        return tuple(items)

    def _entity_type(self) -> str:
        found = next((name for name in self._meanings(self.path()) if name in self._known.entities), None)
        if found is None:
            raise self.refused("an entity type that is known is expected")
        return found

    def _group(self) -> str:
        """An action that groups others: the path of its type, and its id."""
        path = self.name()
        self.take("::")
        while not self.next().startswith('"'):
            path += "::" + self.name()
            self.take("::")
        return f"{path}::{self.string()}"

    def _meanings(self, path: str) -> tuple[str, ...]:
        """What a path could stand for: without a namespace of its own it is looked for in the one around it first."""
        return (path,) if "::" in path else (qualified(self._namespace, path), path)
