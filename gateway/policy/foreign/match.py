"""Conditions asked of stored entities, which are the rows that a plan is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

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
from gateway.policy.columns import ITSELF
from gateway.policy.foreign.entities import Stored

Row = Mapping[str, Any]


def row_of(stored: Stored) -> Row:
    """Returns an entity as a row: its attributes, entities by their ids, and its own id."""
    return {**{name: _plain(value) for name, value in stored.attrs.items()}, ITSELF: stored.uid.id}


def matches(condition: Condition, row: Row) -> bool:
    """Whether a condition is true of a row; of an attribute that is not there, each is false."""
    match condition:
        case Known(value=value):
            return value
        case And(terms=terms):
            return all(matches(term, row) for term in terms)
        case Or(terms=terms):
            return any(matches(term, row) for term in terms)
        case Not(term=term):
            return not matches(term, row)
        case _:
            return condition.attribute in row and _is(condition, row[condition.attribute], row)


def _is(condition: Condition, value: Any, row: Row) -> bool:
    match condition:
        case Has():
            return True
        case Equals(value=wanted):
            return bool(value == wanted)
        case Same(other=other):
            return other in row and bool(value == row[other])
        case OneOf(values=values):
            return value in values
        case Compare(order="<", value=bound):
            return bool(value < bound)
        case Compare(order="<=", value=bound):
            return bool(value <= bound)
        case Compare(order=">", value=bound):
            return bool(value > bound)
        case Compare(value=bound):
            return bool(value >= bound)
        case Like(pieces=pieces):
            return re.fullmatch(".*".join(map(re.escape, pieces)), value, re.DOTALL) is not None
        case HoldsAny(values=values):
            return not frozenset(values).isdisjoint(value)
        case HoldsAll(values=values):
            return bool(frozenset(values) <= value)
        case HeldBy(values=values):
            return bool(frozenset(values) >= value)
        case Empty():
            return not value
    raise TypeError(f"{type(condition).__name__} is no condition on one attribute")


def _plain(value: object) -> object:
    match value:
        case {"__entity": {"id": str(id_)}}:
            return id_
        case {"__extn": {"fn": "decimal", "arg": str(text)}}:
            return Decimal(text)
        case list():
            return frozenset(_plain(item) for item in value if not isinstance(item, list | dict) or "__entity" in item)
        case _:
            return value
