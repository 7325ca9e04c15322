"""A naive reader of conditions, to hold policies, plans and queries against: it looks at one row, in the plainest way."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gateway.model.condition import (
    And,
    Compare,
    Condition,
    Empty,
    Equals,
    Has,
    HeldBy,
    HoldsAll,
    HoldsAny,
    Known,
    Like,
    Not,
    OneOf,
    Or,
    Same,
)
from gateway.model.entity import Entity, EntityUid

ORDERS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def columns(entity: Entity) -> dict[str, object]:
    """An entity as a row: its id, and its attributes with entities by their ids."""
    return {"id": entity.uid.id, **{name: _plain(value) for name, value in entity.attrs.items()}}


def holds(condition: Condition, row: Mapping[str, object]) -> bool:
    """Whether a condition is true of a row; an attribute that is not in it is absent."""
    match condition:
        case Known(value=value):
            return value
        case And(terms=terms):
            return all(holds(term, row) for term in terms)
        case Or(terms=terms):
            return any(holds(term, row) for term in terms)
        case Not(term=term):
            return not holds(term, row)
        case _ if condition.attribute not in row:
            return False
        case Same(attribute=name, other=other):
            return other in row and row[name] == row[other]
        case _:
            return _of(condition, row[condition.attribute])


def _of(condition: Condition, value: object) -> bool:
    match condition, value:
        case Has(), _:
            return True
        case Equals(value=wanted), _:
            return value == wanted
        case OneOf(values=values), _:
            return value in values
        case Compare(order=order, value=bound), _:
            return bool(ORDERS[order](value, bound))
        case Like(pieces=pieces), str():
            return re.fullmatch(".*".join(map(re.escape, pieces)), value, re.DOTALL) is not None
        case HoldsAny(values=values), tuple() | frozenset():
            return not set(values).isdisjoint(value)
        case HoldsAll(values=values), tuple() | frozenset():
            return set(values) <= set(value)
        case HeldBy(values=values), tuple() | frozenset():
            return set(value) <= set(values)
        case Empty(), tuple() | frozenset():
            return not value
    raise AssertionError(condition)


def _plain(value: object) -> object:
    match value:
        case EntityUid():
            return value.id
        case tuple():
            return tuple(map(_plain, value))
        case _:
            return value
