"""What a policy reads of a request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any

from cedarpy import pst

from gateway.model.entity import EntityUid
from gateway.policy.value import canonical

#: Names of attributes from the context on.
Path = tuple[str, ...]
#: Parts of contexts that are kept: a context is new each minute.
KEPT = 1_024
#: Keys of what is a value by itself in Cedar's JSON.
WHOLE = frozenset(("__entity", "__extn"))


def context_paths(tree: object) -> frozenset[Path]:
    """Returns what of the context a policy or an expression reads: all that is at these paths, and nothing else of it."""
    return frozenset(_paths(tree))


@lru_cache(maxsize=KEPT)
def read_part(context: str, paths: frozenset[Path]) -> str:
    """Returns a context in canonical JSON without what is at no path; the empty path is that of all."""
    return canonical(_part(json.loads(context), paths)) if paths else "{}"


@lru_cache(maxsize=KEPT)
def emptied(context: str) -> str:
    """Returns a context in canonical JSON with every text in it empty, but for those of entities and extension values."""
    return canonical(_emptied(json.loads(context)))


def mentions(tree: object, variable: pst.VarName) -> bool:
    """Whether a policy or an expression mentions a variable of the request."""
    return any(isinstance(node, pst.Var) and node.name == variable for node in nodes(tree))


@dataclass(frozen=True, slots=True)
class Reads:
    """What some policies read: the names of all attributes, of whatever; of these the names of those `followed`, where
    something is read of what they name; whether any tag; and the entities that they name where something of these is read."""

    attributes: frozenset[str]
    followed: frozenset[str]
    tags: bool
    entities: frozenset[EntityUid]


def reads(policies: Iterable[pst.Template]) -> Reads:
    """Returns what policies read: to an entity that is reached by nothing of it, no decision can come."""
    attributes: set[str] = set()
    followed: set[str] = set()
    tags = False
    entities: set[EntityUid] = set()
    for policy in policies:
        compared: set[int] = set()
        for node in nodes(policy.clauses):  # outer first
            match node:
                case pst.GetAttr(_, name):
                    attributes.add(name)
                    if id(node) not in compared:
                        followed.add(name)
                case pst.HasAttr(_, names):
                    attributes.update(names)
                    followed.update(names[:-1])
                case pst.BinaryOp("get_tag"):
                    tags = True
                case pst.BinaryOp("eq" | "not_eq" | "contains" | "contains_all" | "contains_any", left, right):
                    compared |= {id(left), id(right)}
                case pst.BinaryOp("in", _, pst.Set(elements)):
                    compared |= {id(element) for element in elements}
                case pst.BinaryOp("in", _, right) | pst.Is(_, _, right):
                    compared.add(id(right))
                case pst.EntityLit(uid) if id(node) not in compared:
                    entities.add(EntityUid(str(uid.type), uid.id))
                case _:
                    pass
    return Reads(frozenset(attributes), frozenset(followed), tags, frozenset(entities))


def _paths(root: object) -> Iterator[Path]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if (path := _path(node)) is not None:
            yield path
        else:
            waiting.extend(_within(node))


def _path(node: object) -> Path | None:
    """The path that an expression is; None for one that is none into the context."""
    match node:
        case pst.Var("context"):
            return ()
        case pst.GetAttr(base, name):
            names: Path = (name,)
        case pst.HasAttr(base, names):
            pass
        case _:
            return None
    above = _path(base)
    return None if above is None else (*above, *names)


def _part(value: Any, paths: frozenset[Path]) -> Any:
    """What is at some paths; an entity or an extension value is kept whole, for its members are no attributes."""
    if () in paths or not isinstance(value, dict) or not value.keys().isdisjoint(WHOLE):
        return value
    named = {path[0] for path in paths}
    return {
        name: _part(member, frozenset(path[1:] for path in paths if path[0] == name))
        for name, member in value.items()
        if name in named
    }


def _emptied(value: Any) -> Any:
    match value:
        case str():
            return ""
        case list():
            return [_emptied(item) for item in value]
        case dict() if value.keys().isdisjoint(WHOLE):
            return {name: _emptied(member) for name, member in value.items()}
        case _:
            return value


def nodes(root: object) -> Iterator[object]:
    """Yields a policy or an expression and all that it is made of."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_within(node))


def _within(node: object) -> Iterable[object]:
    if is_dataclass(node):
        return [getattr(node, field.name) for field in fields(node)]
    if isinstance(node, Mapping):
        return node.values()
    return node if isinstance(node, tuple) else ()
