"""Operands: the paths that an expression reads of a request, and what stands there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from cedarpy import pst

from gateway.model.decision import Query
from gateway.model.entity import EntityUid
from gateway.policy.context import Context
from gateway.policy.slice import Slice
from gateway.policy.value import canonical

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MISSING = object()


def operands(expr: pst.Expr, query: Query, slice: Slice) -> dict[str, str | None]:
    """Returns what stands at each path that an expression reads, as text, in the order of reading; None for nothing.

    An entity is written `Type::"id"`. What is left of `in` is there once more as `ancestors(path)`, which are the entities
    that it is in.
    """
    reader = _Reader(query, slice)
    found: dict[str, str | None] = {}
    for path in _paths(expr):
        value = reader.value(path)
        found[_spelled(path)] = None if value is MISSING else _text(value)
    for path in _within(expr):
        value = reader.value(path)
        found[f"ancestors({_spelled(path)})"] = ", ".join(reader.ancestors(value)) if isinstance(value, EntityUid) else None
    return found


class _Reader:
    def __init__(self, query: Query, slice: Slice) -> None:
        self._entities = {_uid(entity["uid"]): entity for entity in json.loads(str(slice.handle))}
        context = query.context if isinstance(query.context, Context) else Context(query.context)
        self._variables: Mapping[str, Any] = {
            "principal": query.principal,
            "action": EntityUid("Action", query.action),
            "resource": query.resource,
            "context": json.loads(context.text),
        }

    def ancestors(self, uid: EntityUid) -> list[str]:
        """Cedar writes all ancestors of an entity as its parents."""
        parents = self._entities[uid]["parents"] if uid in self._entities else ()
        return sorted(str(_uid(parent)) for parent in parents)

    def value(self, path: pst.Expr) -> Any:
        match path:
            case pst.Var(name):
                return self._variables[name]
            case pst.GetAttr(base, name):
                return self._at(self.value(base), "attrs", name)
            case pst.BinaryOp("get_tag", base, key):
                return self._at(self.value(base), "tags", self.value(key))
            case pst.StringLit(text):
                return text
            case _:
                return MISSING

    def _at(self, value: Any, part: str, name: Any) -> Any:
        record = self._entities.get(value, {}).get(part, {}) if isinstance(value, EntityUid) else value
        return _read(record[name]) if isinstance(record, dict) and isinstance(name, str) and name in record else MISSING


def _read(value: Any) -> Any:
    return _uid(value["__entity"]) if isinstance(value, dict) and "__entity" in value else value


def _text(value: Any) -> str:
    match value:
        case EntityUid():
            return str(value)
        case {"__extn": {"arg": text}}:
            return str(text)
        case list():
            return "[" + ", ".join(sorted(_text(_read(item)) for item in value)) + "]"
        case _:
            return canonical(value)


def _uid(json_: Mapping[str, str]) -> EntityUid:
    return EntityUid(json_["type"], json_["id"])


def _paths(node: object) -> Iterator[pst.Expr]:
    """The longest paths, from left to right; the key of a tag is read too."""
    match node:
        case pst.HasAttr(base, names) if _is_path(base):
            for name in names:
                base = pst.GetAttr(base, name)
            yield base
        case pst.BinaryOp("get_tag" | "has_tag", base, key) if _is_path(base):
            yield from _paths(key)
            yield pst.BinaryOp("get_tag", base, key)
        case pst.Var() | pst.GetAttr() if _is_path(node):
            yield from _keys(node)
            yield node
        case _:
            for child in _children(node):
                yield from _paths(child)


def _keys(path: pst.Expr) -> Iterator[pst.Expr]:
    match path:
        case pst.GetAttr(base, _):
            yield from _keys(base)
        case pst.BinaryOp("get_tag", base, key):
            yield from _keys(base)
            yield from _paths(key)
        case _:
            pass


def _within(node: object) -> Iterator[pst.Expr]:
    match node:
        case pst.BinaryOp("in", left, _) if _is_path(left):
            yield left
        case pst.Is(left, _, group) if group is not None and _is_path(left):
            yield left
        case _:
            pass
    for child in _children(node):
        yield from _within(child)


def _children(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        yield from node
    elif isinstance(node, Mapping):
        yield from node.values()
    elif is_dataclass(node):
        for field in fields(node):
            yield getattr(node, field.name)


def _is_path(node: object) -> bool:
    match node:
        case pst.Var():
            return True
        case pst.GetAttr(base, _) | pst.BinaryOp("get_tag", base, _):
            return _is_path(base)
        case _:
            return False


def _spelled(path: pst.Expr) -> str:
    match path:
        case pst.Var(name):
            return name
        case pst.GetAttr(base, name):
            return f"{_spelled(base)}.{name}" if PLAIN.fullmatch(name) else f"{_spelled(base)}[{json.dumps(name)}]"
        case pst.BinaryOp("get_tag", base, key):
            return f"{_spelled(base)}.getTag({_spelled(key)})"
        case pst.StringLit(text):
            return json.dumps(text)
        case _:
            return "..."
