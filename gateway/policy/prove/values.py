"""What an expression can come to, and what sets and equality are of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from gateway.model.entity import EntityUid
from gateway.policy.prove.logic import Term, every, known, no, same, some
from gateway.policy.prove.schema import Unprovable
from gateway.policy.prove.symbols import Record


@dataclass(frozen=True, slots=True)
class Items:
    """A set that is written out, of terms or of actions."""

    items: tuple[Term | EntityUid, ...]


#: A `Term`, a `Record`, `Items`, or the `EntityUid` of an action. Policies are well typed: which it is follows from the operator.
Value = Any


def type_of(value: Value) -> str:
    """Returns the type of an entity."""
    return value.type if isinstance(value, EntityUid) else str(value.sort())


def term(value: Value) -> Term:
    """Returns a value as one of the solver, a set that is written out too; raises `Unprovable`."""
    if not isinstance(value, Items):
        return value
    if not value.items or isinstance(value.items[0], EntityUid):
        raise Unprovable("a set of actions as a value")
    made = z3.EmptySet(value.items[0].sort())
    for item in value.items:
        made = z3.SetAdd(made, item)
    return made


def empty(value: Term) -> Term:
    """Returns the empty set of the sort of a set."""
    return z3.EmptySet(value.sort().domain())


def equal(left: Value, right: Value) -> Term:
    """Returns whether two values are equal; raises `Unprovable`."""
    if isinstance(left, Record) or isinstance(right, Record):
        raise Unprovable("the equality of records")
    if isinstance(left, EntityUid) or isinstance(right, EntityUid):
        return known(left == right)
    return same(term(left), term(right))


def holds(held: Value, item: Value) -> Term:
    """Returns whether a set holds a value."""
    if isinstance(held, Items):
        return some(*(equal(one, item) for one in held.items))
    return z3.IsMember(item, held)


def holds_all(held: Value, wanted: Value) -> Term:
    """Returns whether a set holds all of another."""
    if isinstance(wanted, Items):
        return every(*(holds(held, item) for item in wanted.items))
    return z3.IsSubset(wanted, term(held))


def holds_any(held: Value, wanted: Value) -> Term:
    """Returns whether a set holds any of another."""
    if isinstance(wanted, Items):
        return some(*(holds(held, item) for item in wanted.items))
    if isinstance(held, Items):
        return holds_any(wanted, held)
    return no(z3.SetIntersect(held, wanted) == empty(held))
