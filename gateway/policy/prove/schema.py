"""A schema in full: every type, attribute, tag, action and context, which a proof ranges over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import cedarpy

from gateway.model.entity import EntityUid
from gateway.policy import partition
from gateway.policy.text import tokens

#: Cedar's own types. An address has no order here and no operators.
PRIMITIVES = frozenset(("Bool", "Long", "String", "decimal", "datetime", "duration", "ipaddr"))


class Unprovable(Exception):
    """Something is outside of what can be encoded; the message says what."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """One of `PRIMITIVES`."""

    name: str


@dataclass(frozen=True, slots=True)
class Reference:
    """An entity of a type."""

    name: str


@dataclass(frozen=True, slots=True)
class SetOf:
    """A set of values of one type."""

    item: Type


@dataclass(frozen=True, slots=True)
class RecordOf:
    """A record, or the attributes of an entity."""

    fields: Mapping[str, Field]


Type = Primitive | Reference | SetOf | RecordOf


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute of a record or an entity."""

    type: Type
    optional: bool


@dataclass(frozen=True, slots=True)
class EntityShape:
    """What entities of a type are directly in, their attributes, and the type of their tags, if they have any."""

    parents: tuple[str, ...]
    attributes: RecordOf
    tags: Type | None


@dataclass(frozen=True, slots=True)
class ActionShape:
    """Between whom an action is, and what its context holds."""

    principals: tuple[str, ...]
    resources: tuple[str, ...]
    context: RecordOf


@dataclass(frozen=True, slots=True)
class Schema:
    """Entity types, and the actions that can be asked for, both by name; `groups` are all that each action is in, and itself."""

    entities: Mapping[str, EntityShape]
    actions: Mapping[str, ActionShape]
    groups: Mapping[EntityUid, frozenset[EntityUid]]

    def above(self, type_: str) -> frozenset[str]:
        """Returns every type of which an entity of a type could be within another entity."""
        found: set[str] = set()
        waiting = [type_]
        while waiting:
            new = set(self.entities[waiting.pop()].parents) - found
            found |= new
            waiting += new
        return frozenset(found)


def read(handle: cedarpy.Schema) -> Schema:
    """Returns what a schema says, of the text that `str` gives of it; raises `Unprovable` for a namespace or an enumerated
    type."""
    reader = _Reader([token[0] for token in tokens(str(handle))])
    reader.set_common_types_aside()
    entities: dict[str, EntityShape] = {}
    actions: dict[str, ActionShape] = {}
    while reader.words:
        match reader.take():
            case "entity":
                entities |= reader.entity()
            case "action":
                actions |= reader.action()
            case word:
                raise Unprovable(f"a schema with `{word}`")
    return Schema(entities, actions, partition.groups(handle))


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


class _Reader:
    """Takes words from the front of a schema, in the normal form in which Cedar writes it."""

    def __init__(self, words: list[str]) -> None:
        self.words = words[::-1]
        self._declared: dict[str, list[str]] = {}
        self._shape_names: set[str] = {words[at + 1] for at, word in enumerate(words[:-1]) if word == "entity"}

    def take(self, *expected: str) -> str:
        word = self.words.pop()
        if expected and word not in expected:
            raise Unprovable(f"a schema with `{word}` where `{expected[0]}` is known")
        return word

    def maybe(self, word: str) -> bool:
        if self.words and self.words[-1] == word:
            self.words.pop()
            return True
        return False

    def set_common_types_aside(self) -> None:
        """Keeps the declaration of each common type as its words, to be read wherever it is named."""
        kept: list[str] = []
        while self.words:
            word = self.take()
            if word != "type" or (kept and kept[-1] != ";"):
                kept.append(word)
                continue
            name, words = self.take(), list[str]()
            self.take("=")
            while (word := self.take()) != ";":
                words.append(word)
            self._declared[name] = words
        self.words = kept[::-1]

    def entity(self) -> dict[str, EntityShape]:
        name = self.take()
        parents = self._names() if self.maybe("in") else ()
        if self.maybe("enum"):
            raise Unprovable(f"the enumerated type `{name}`")
        attributes = RecordOf({})
        if self.words[-1] in ("=", "{"):
            self.maybe("=")
            attributes = self._record()
        tags = self.type() if self.maybe("tags") else None
        self.take(";")
        return {name: EntityShape(parents, attributes, tags)}

    def action(self) -> dict[str, ActionShape]:
        name = self.take().strip('"')
        if self.maybe("in"):
            self._names()
        if not self.maybe("appliesTo"):
            self.take(";")
            return {}
        parts: dict[str, tuple[str, ...]] = {}
        context = RecordOf({})
        self.take("{")
        while not self.maybe("}"):
            key = self.take("principal", "resource", "context")
            self.take(":")
            if key != "context":
                parts[key] = self._names()
            elif isinstance(found := self.type(), RecordOf):
                context = found
            self.maybe(",")
        self.take(";")
        return {name: ActionShape(parts["principal"], parts["resource"], context)}

    def type(self) -> Type:
        if self.words[-1] == "{":
            return self._record()
        name = self.take()
        if name == "Set":
            self.take("<")
            item = self.type()
            self.take(">")
            return SetOf(item)
        while self.maybe("::"):
            name = self.take()  # `__cedar::Bool`: a namespace of one's own is refused where it is declared
        if name in self._declared:
            self.words += self._declared[name][::-1]
            return self.type()
        if name in self._shape_names:
            return Reference(name)
        if name not in PRIMITIVES:
            raise Unprovable(f"the type `{name}`")
        return Primitive(name)

    def _record(self) -> RecordOf:
        fields: dict[str, Field] = {}
        self.take("{")
        while not self.maybe("}"):
            name = self.take().strip('"')
            optional = self.maybe("?")
            self.take(":")
            fields[name] = Field(self.type(), optional)
            self.maybe(",")
        return RecordOf(fields)

    def _names(self) -> tuple[str, ...]:
        """The names in brackets; of `Action::"x"` the whole."""
        self.take("[")
        names, name = list[str](), ""
        while (word := self.take()) != "]":
            name = "" if word == "," else name + word
            if word != "," and self.words[-1] in (",", "]"):
                names.append(name)
        return tuple(names)
