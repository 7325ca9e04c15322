"""Conditions on one row: what a policy or a grant asks of its attributes, without saying how rows are stored.

A condition is true or false of every row, never unknown: an attribute that is not there makes each of these false, so that
`Not` is safe. Attributes are called as the schema calls them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

Scalar = bool | int | str | Decimal
Order = Literal["<", "<=", ">", ">="]
#: So many values of a list weigh as much as one more condition.
VALUES_A_TERM = 100


@dataclass(frozen=True, slots=True)
class Known:
    """True or false of every row."""

    value: bool


@dataclass(frozen=True, slots=True)
class And:
    """All of them; true when there are none."""

    terms: tuple[Condition, ...]
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", _together(self.terms))


@dataclass(frozen=True, slots=True)
class Or:
    """Any of them; false when there are none."""

    terms: tuple[Condition, ...]
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", _together(self.terms))


@dataclass(frozen=True, slots=True)
class Not:
    term: Condition
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", weight(self.term))


@dataclass(frozen=True, slots=True)
class Has:
    """The attribute is there."""

    attribute: str


@dataclass(frozen=True, slots=True)
class Equals:
    """The attribute is there and has this value; an entity is given by its id alone, its type being the attribute's.

    `id` is the row's own id, `org` and `agent` are those of the entities.
    """

    attribute: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class Same:
    """Both attributes are there and equal."""

    attribute: str
    other: str


@dataclass(frozen=True, slots=True)
class Compare:
    """The attribute is there and less than (or another `order`) a number."""

    attribute: str
    order: Order
    value: int | Decimal


@dataclass(frozen=True, slots=True)
class OneOf:
    """The attribute is there and one of the values; of none of them, false."""

    attribute: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """The text attribute is there and matches: literal pieces with anything, also nothing, between one and the next."""

    attribute: str
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HoldsAny:
    """The set attribute holds at least one of the values; of none of them, false."""

    attribute: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class HoldsAll:
    """The set attribute holds every one of the values; of none of them, true."""

    attribute: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class HeldBy:
    """Every element of the set attribute is one of the values; of an empty set, true."""

    attribute: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Empty:
    """The set attribute holds nothing."""

    attribute: str


Condition = Known | And | Or | Not | Has | Equals | Same | Compare | OneOf | Like | HoldsAny | HoldsAll | HeldBy | Empty

TRUE = Known(True)
FALSE = Known(False)


def weight(condition: Condition) -> int:
    """How many conditions on one attribute each stand in it, each counted as often as it stands; a long list counts as more.

    Conditions share their parts, so what is quickly made may be slow to go through: this is told without going through it.
    """
    match condition:
        case And(weight=found) | Or(weight=found) | Not(weight=found):
            return found
        case OneOf(values=values) | HoldsAny(values=values) | HoldsAll(values=values) | HeldBy(values=values):
            return 1 + len(values) // VALUES_A_TERM
        case Known():
            return 0
        case _:
            return 1


def _together(terms: Iterable[Condition]) -> int:
    return sum(map(weight, terms))


def all_of(*terms: Condition) -> Condition:
    """The conjunction, without what is known."""
    kept = tuple(term for term in terms if term != TRUE)
    if FALSE in kept:
        return FALSE
    return kept[0] if len(kept) == 1 else And(kept) if kept else TRUE


def any_of(*terms: Condition) -> Condition:
    """The disjunction, without what is known."""
    kept = tuple(term for term in terms if term != FALSE)
    if TRUE in kept:
        return TRUE
    return kept[0] if len(kept) == 1 else Or(kept) if kept else FALSE


def negation(term: Condition) -> Condition:
    """The opposite."""
    match term:
        case Known(value=value):
            return Known(not value)
        case Not(term=inner):
            return inner
        case _:
            return Not(term)
