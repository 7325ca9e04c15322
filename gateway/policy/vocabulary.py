"""What a schema says of entity types and of what actions are about: Cedar hands a schema out only as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from gateway.policy.text import tokens

PRIMITIVES = {"Bool": "Bool", "Boolean": "Bool", "Long": "Long", "String": "String", "decimal": "decimal"}


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of an attribute; `many` is a set of it. `name` is a primitive or an entity type, "" for all else."""

    name: str
    entity: bool = False
    many: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """An entity type: what it is directly in, and its attributes."""

    parents: tuple[str, ...]
    attributes: Mapping[str, Kind]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`entities` by type, of those outside namespaces; of each action that names any, its resource and principal types."""

    entities: Mapping[str, Shape]
    resources: Mapping[str, frozenset[str]]
    principals: Mapping[str, frozenset[str]]

    def above(self, type_: str) -> frozenset[str]:
        """Returns every type of which an entity of a type could be within another entity."""
        found: set[str] = set()
        waiting = [type_]
        while waiting:
            shape = self.entities.get(waiting.pop())
            new = set(shape.parents if shape is not None else ()) - found
            found |= new
            waiting += new
        return frozenset(found)


def read(text: str) -> Vocabulary:
    """Returns what a schema says, of the text that `str` gives of its handle: valid, without comments, lists in brackets."""
    words = [token[0] for token in tokens(text)]
    raw: dict[str, tuple[list[str], list[str]]] = {}
    resources: dict[str, frozenset[str]] = {}
    principals: dict[str, frozenset[str]] = {}
    for words_ in _statements(words):
        match words_:
            case ["entity", *rest]:
                names, rest = _before(rest, {"in", "=", "{", "tags", "enum"})
                parents, rest = _parents(rest)
                for name in names:
                    raw[name] = (parents, rest)
            case ["action", *rest]:
                names, rest = _before(rest, {"in", "appliesTo"})
                for role, found in (("resource", resources), ("principal", principals)):
                    if role in rest:
                        types = frozenset(_list(rest[rest.index(role) + 2 :]))
                        found |= {name.strip('"'): types for name in names}
            case _:
                pass
    shapes = {name: Shape(tuple(parents), dict(_attributes(rest, raw.keys()))) for name, (parents, rest) in raw.items()}
    return Vocabulary(shapes, resources, principals)


def _statements(words: list[str]) -> Iterator[list[str]]:
    """Yields the words of each statement; a namespace, which ends without a semicolon, is left out."""
    start = depth = 0
    for at, word in enumerate(words):
        depth += (word in "([{<") - (word in ")]}>")
        if depth == 0 and (word == ";" or (word == "}" and words[start] == "namespace")):
            yield _unannotated(words[start:at])
            start = at + 1


def _unannotated(words: list[str]) -> list[str]:
    while words[0] == "@":
        words = words[words.index(")") + 1 :]
    return words


def _before(words: list[str], ends: set[str]) -> tuple[list[str], list[str]]:
    """The names that a statement begins with, and what follows."""
    at = next((n for n, word in enumerate(words) if word in ends), len(words))
    return [word for word in words[:at] if word != ","], words[at:]


def _parents(words: list[str]) -> tuple[list[str], list[str]]:
    if words[:1] != ["in"]:
        return [], words
    return _list(words[1:]), words[words.index("]") + 1 :]


def _list(words: list[str]) -> list[str]:
    return "".join(words[1 : words.index("]")]).split(",")


def _attributes(words: list[str], entities: Collection[str]) -> Iterator[tuple[str, Kind]]:
    words = words[1:] if words[:1] == ["="] else words
    if words[:1] != ["{"]:
        return
    depth = start = at = 1
    while depth:
        word = words[at]
        depth += (word in "([{<") - (word in ")]}>")
        if at > start and (depth == 0 or (depth == 1 and word == ",")):
            yield _attribute(_unannotated(words[start:at]), entities)
            start = at + 1
        at += 1


def _attribute(words: list[str], entities: Collection[str]) -> tuple[str, Kind]:
    name, optional = words[0].strip('"'), words[1] == "?"
    type_ = words[3:] if optional else words[2:]
    many = type_[:2] == ["Set", "<"]
    path = "".join(type_[2:-1] if many else type_)
    if path in entities:
        return name, Kind(path, entity=True, many=many, optional=optional)
    return name, Kind(PRIMITIVES.get(path, ""), many=many, optional=optional)
