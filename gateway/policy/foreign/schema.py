"""The schema of a foreign store in full: namespaces, enumerated types and every attribute, by qualified names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import cedarpy

from gateway.policy.prove.schema import PRIMITIVES, ActionShape, EntityShape, Field, Primitive, RecordOf, Reference, SetOf, Type
from gateway.policy.text import tokens

NOTHING = RecordOf({})


@dataclass(frozen=True, slots=True)
class ForeignSchema:
    """Entity types by qualified name, and by id the actions that apply to anything."""

    entities: Mapping[str, EntityShape]
    actions: Mapping[str, ActionShape]


@dataclass(frozen=True, slots=True)
class _Declaration:
    """A statement of a schema: what it declares, the namespace it stands in, and its words."""

    kind: str
    namespace: str
    words: list[str]


def read(handle: cedarpy.Schema) -> ForeignSchema:
    """Returns what a schema says, of the text that `str` gives of its handle: valid, lists in brackets, names as written."""
    words = [token[0] for token in tokens(str(handle))]
    declared = list(_declarations(words))
    types = {_qualified(d.namespace, d.words[0]): d for d in declared if d.kind == "type"}
    named = [(_qualified(d.namespace, name), d) for d in declared if d.kind == "entity" for name in _first(d.words)]
    known = _Known(types, frozenset(name for name, _ in named))
    entities = {name: _Reader(known, d.namespace, _after_names(d.words)).entity() for name, d in named}
    actions: dict[str, ActionShape] = {}
    for d in declared:
        if d.kind == "action" and "appliesTo" in d.words:
            shape = _Reader(known, d.namespace, d.words[d.words.index("appliesTo") + 1 :]).action()
            actions |= {_unquoted(name): shape for name in _first(d.words)}
    return ForeignSchema(entities, actions)


@dataclass(frozen=True, slots=True)
class _Known:
    """What a schema declares, to look names up in."""

    types: Mapping[str, _Declaration]
    entities: frozenset[str]


class _Reader:
    """Takes words from the front of one declaration, whose names are looked for in its namespace first."""

    def __init__(self, known: _Known, namespace: str, words: list[str]) -> None:
        self._known = known
        self._namespace = namespace
        self._words = words[::-1]

    def entity(self) -> EntityShape:
        parents = self._names() if self._maybe("in") else ()
        if self._maybe("enum"):
            return EntityShape((), NOTHING, None)
        attributes = NOTHING
        if self._words and self._words[-1] in ("=", "{"):
            self._maybe("=")
            attributes = self._record()
        return EntityShape(parents, attributes, self.type() if self._maybe("tags") else None)

    def action(self) -> ActionShape:
        parts: dict[str, tuple[str, ...]] = {}
        context = NOTHING
        self._take()
        while not self._maybe("}"):
            key = self._take()
            self._take()
            if key != "context":
                parts[key] = self._names()
            elif isinstance(found := self.type(), RecordOf):
                context = found
            self._maybe(",")
        return ActionShape(parts.get("principal", ()), parts.get("resource", ()), context)

    def type(self) -> Type:
        if self._words[-1] == "{":
            return self._record()
        path = self._path()
        if path == "Set":
            self._take()
            item = self.type()
            self._take()
            return SetOf(item)
        for name in _candidates(self._namespace, path):
            if name in self._known.types:
                declared = self._known.types[name]
                return _Reader(self._known, declared.namespace, declared.words[2:]).type()
            if name in self._known.entities:
                return Reference(name)
        last = path.rpartition("::")[2]
        return Primitive({"Boolean": "Bool"}.get(last, last if last in PRIMITIVES else ""))

    def _record(self) -> RecordOf:
        fields: dict[str, Field] = {}
        self._take()
        while not self._maybe("}"):
            self._annotations()
            name = _unquoted(self._take())
            optional = self._maybe("?")
            self._take()
            fields[name] = Field(self.type(), optional)
            self._maybe(",")
        return RecordOf(fields)

    def _annotations(self) -> None:
        while self._maybe("@"):
            self._take()
            if self._maybe("("):
                while self._take() != ")":
                    pass

    def _names(self) -> tuple[str, ...]:
        """Entity types in brackets, qualified."""
        names: list[str] = []
        self._take()
        while not self._maybe("]"):
            names.append(self._entity_name(self._path()))
            self._maybe(",")
        return tuple(names)

    def _entity_name(self, path: str) -> str:
        found = (name for name in _candidates(self._namespace, path) if name in self._known.entities)
        return next(found, path)

    def _path(self) -> str:
        path = self._take()
        while self._maybe("::"):
            path += "::" + self._take()
        return path

    def _take(self) -> str:
        return self._words.pop()

    def _maybe(self, word: str) -> bool:
        if self._words and self._words[-1] == word:
            self._words.pop()
            return True
        return False


def _declarations(words: list[str]) -> Iterator[_Declaration]:
    namespace, at = "", 0
    while at < len(words):
        match words[at]:
            case "@":
                at = words.index(")", at) + 1 if words[at + 2] == "(" else at + 2
            case "namespace":
                opening = words.index("{", at)
                namespace, at = "".join(words[at + 1 : opening]), opening + 1
            case "}":
                namespace, at = "", at + 1
            case kind:
                end = _end(words, at)
                yield _Declaration(kind, namespace, words[at + 1 : end])
                at = end + 1


def _end(words: list[str], at: int) -> int:
    depth = 0
    while words[at] != ";" or depth:
        depth += (words[at] in "([{<") - (words[at] in ")]}>")
        at += 1
    return at


def _first(words: list[str]) -> list[str]:
    """The names that a declaration begins with."""
    return [word for word in words[: len(words) - len(_after_names(words))] if word != ","]


def _after_names(words: list[str]) -> list[str]:
    at = 1
    while at < len(words) and words[at] == ",":
        at += 2
    return words[at:]


def _candidates(namespace: str, path: str) -> tuple[str, ...]:
    return (_qualified(namespace, path), path) if namespace else (path,)


def _qualified(namespace: str, name: str) -> str:
    return f"{namespace}::{name}" if namespace else name


def _unquoted(name: str) -> str:
    """A name as Cedar means it; in quotes it is written with the escapes of Rust, of which JSON has all that a name needs."""
    return name[1:-1].replace('\\"', '"').replace("\\\\", "\\") if name.startswith('"') else name
