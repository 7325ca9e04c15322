"""Columns: the attributes of a row, and the values that a policy holds against them, as they stand in Cedar's JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

from gateway.model.condition import FALSE, Condition, Equals, HoldsAll, HoldsAny, OneOf, Scalar
from gateway.model.entity import EntityUid
from gateway.policy.vocabulary import Kind, Vocabulary

Node = Mapping[str, Any]
#: The row itself, as an attribute: its id.
ITSELF = "id"
ROW: tuple[Node, ...] = ({"Var": "resource"}, {"unknown": [{"Value": "resource"}]})
TYPES: dict[str, type] = {"Bool": bool, "Long": int, "String": str, "decimal": Decimal}


class Untranslatable(ValueError):
    """A policy asks of a row what cannot be asked of a table; the message says what."""


@dataclass(frozen=True, slots=True)
class Column:
    """An attribute of the row as it is read in one place; `loose` when it may be absent there, so that reading it errs."""

    name: str
    kind: Kind
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Fixed:
    """Values that do not depend on the row: one that stands alone, or those of a set."""

    values: tuple[Scalar | EntityUid, ...]


def refuse(what: str) -> NoReturn:
    raise Untranslatable(what)


def is_row(node: Node) -> bool:
    return node in ROW


def mentions_row(node: object) -> bool:
    """Whether what a node stands for can depend on the row."""
    if isinstance(node, dict):
        if "Record" in node:  # whose keys are anything
            return any(map(mentions_row, node["Record"].values()))
        return node in ROW or any(mentions_row(inner) for key, inner in node.items() if key != "Value")
    return isinstance(node, list) and any(map(mentions_row, node))


def column(node: Node, vocabulary: Vocabulary, resource: str, present: frozenset[str]) -> Column:
    """Returns the attribute of the row that a node reads; `present` are the optional ones that are known to be there."""
    attributes = vocabulary.entities[resource].attributes
    if is_row(node):
        return (
            refuse("the row, whose type has an attribute `id`") if ITSELF in attributes else Column(ITSELF, Kind(resource, True))
        )
    match node:
        case {".": {"left": base, "attr": name}} if is_row(base):
            kind = attributes.get(name, Kind(""))
            if not kind.name:
                refuse(f"attribute `{name}`, of a type that no column has")
            return Column(name, kind, kind.optional and name not in present)
        case {".": {"attr": name}}:
            return refuse(f"`{name}` of another entity or record than the row")
        case _:
            return refuse(f"`{next(iter(node))}` where an attribute of the row was looked for")


def fixed(node: Node) -> Fixed | None:
    """Returns the values that a node without the row stands for, None when they are not known."""
    match node:
        case {"Set": items}:
            return _joined(map(fixed, items))
        case {"Value": {"__entity": {"type": str(type_), "id": str(id_)}}}:
            return Fixed((EntityUid(type_, id_),))
        case {"Value": {"__extn": {"fn": "decimal", "arg": str(text)}}} | {"decimal": [{"Value": str(text)}]}:
            return Fixed((Decimal(text),))
        case {"Value": bool() | int() | str() as value}:
            return Fixed((value,))
        case _:
            return None


def equals_any(column: Column, values: Fixed) -> Condition:
    """The attribute is one of some values; one of another type is none that it has."""
    kept = fitting(column, values)
    if not kept:
        return FALSE
    return Equals(column.name, kept[0]) if len(kept) == 1 else OneOf(column.name, kept)


def holds_any(column: Column, values: Fixed) -> Condition:
    kept = fitting(column, values)
    return HoldsAny(column.name, kept) if kept else FALSE


def holds_all(column: Column, values: Fixed) -> Condition:
    kept = fitting(column, values)
    return HoldsAll(column.name, kept) if len(kept) == len(values.values) else FALSE


def fitting(column: Column, values: Fixed) -> tuple[Scalar, ...]:
    """The values that the attribute could have; entities by their ids."""
    found: list[Scalar] = []
    for value in values.values:
        if isinstance(value, EntityUid):
            found += [value.id] if column.kind.entity and value.type == column.kind.name else []
        elif not column.kind.entity and type(value) is TYPES[column.kind.name]:
            found.append(value)
    return tuple(found)


def _joined(parts: Iterable[Fixed | None]) -> Fixed | None:
    values: list[Scalar | EntityUid] = []
    for part in parts:
        if part is None:
            return None  # one of the elements errs, or is not known
        values += part.values
    return Fixed(tuple(values))
