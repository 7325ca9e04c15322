"""Conditions asked of rows that lie in memory, such as stored entities."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, assert_never

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
    Order,
    Same,
)
from gateway.policy.columns import ITSELF
from gateway.policy.foreign.entities import Stored

Row = Mapping[str, Any]
Test = Callable[[Row], bool]
#: Conditions on the value of one attribute.
OfValue = Equals | OneOf | Compare | Like | HoldsAny | HoldsAll | HeldBy | Empty
ORDERS: Mapping[Order, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def row_of(stored: Stored) -> Row:
    """Returns an entity as a row: its attributes, entities by their ids, and its own id."""
    return {**{name: _plain(value) for name, value in stored.attrs.items()}, ITSELF: stored.uid.id}


def test_of(condition: Condition) -> Test:
    """Returns what says whether the condition is true of a row; of an attribute that is not there, each is false."""
    match condition:
        case Known(value=value):
            return lambda row: value
        case And(terms=terms):
            tests = list(map(test_of, terms))
            return lambda row: all(test(row) for test in tests)
        case Or(terms=terms):
            tests = list(map(test_of, terms))
            return lambda row: any(test(row) for test in tests)
        case Not(term=term):
            test = test_of(term)
            return lambda row: not test(row)
        case Same(attribute=name, other=other):
            return lambda row: name in row and other in row and bool(row[name] == row[other])
        case Has(attribute=name):
            return lambda row: name in row
        case _:
            name, holds = condition.attribute, _of_value(condition)
            return lambda row: name in row and holds(row[name])


def _of_value(condition: OfValue) -> Callable[[Any], bool]:
    match condition:
        case Equals(value=wanted):
            return lambda value: bool(value == wanted)
        case OneOf(values=values):
            return frozenset(values).__contains__
        case Compare(order=order, value=bound):
            compare = ORDERS[order]
            return lambda value: compare(value, bound)
        case Like(pieces=pieces):
            like = re.compile(".*".join(map(re.escape, pieces)), re.DOTALL)
            return lambda value: like.fullmatch(value) is not None
        case HoldsAny(values=values):
            return lambda value: not frozenset(values).isdisjoint(value)
        case HoldsAll(values=values):
            return lambda value: bool(frozenset(values) <= value)
        case HeldBy(values=values):
            return lambda value: bool(frozenset(values) >= value)
        case Empty():
            return lambda value: not value
        case _:
            assert_never(condition)


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
