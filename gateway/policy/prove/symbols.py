"""The symbols of one kind of question: a store of any shape, as sorts, functions and what is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import z3
from cedarpy import pst

from gateway.model.entity import EntityUid
from gateway.policy.prove import like
from gateway.policy.prove.logic import FALSE, Term, every, known, no, same, some
from gateway.policy.prove.schema import Unprovable
from gateway.policy.schema import Field, Primitive, RecordOf, Reference, Schema, SetOf, Type

LONGS = (-(2**63), 2**63 - 1)
#: Whole numbers of the solver: a decimal counts ten-thousandths, times count milliseconds.
NUMBERS: dict[str, tuple[int, int]] = {
    "Long": LONGS,
    "decimal": LONGS,
    "duration": LONGS,
    "datetime": (-62_167_305_600_000, 253_402_387_200_000),  # what can be written: the years 0 to 9999, in any zone
}


@dataclass(frozen=True, slots=True)
class Record:
    """A record, or the attributes of an entity: each is a function called by its path, of what the record belongs to."""

    path: str
    of: tuple[Term, ...]
    type: RecordOf


class Symbols:
    """Makes symbols and remembers which values were spoken of: what is known is said of those alone.

    INVARIANT: nothing is quantified. A relation that is transitive and has no cycles among the entities spoken of is that
    of some store, and of such a store it is true, so what follows without quantifiers is exact.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.texts: dict[str, Term] = {}
        self.entities: dict[EntityUid, Term] = {}
        self.patterns: dict[str, tuple[pst.PatternElem, ...]] = {}
        self._spoken: dict[tuple[Type, Term], None] = {}
        self._compared: set[tuple[str, str]] = set()

    def spoken(self, type_: Type) -> list[Term]:
        """Returns the values of a type that were spoken of."""
        return [term for of, term in self._spoken if of == type_]

    def text(self, value: str) -> Term:
        """Returns a string that a policy writes."""
        term = self.texts.setdefault(value, z3.Const(f'"{value}"', sort(Primitive("String"))))
        return self._noted(Primitive("String"), term)

    def entity(self, uid: EntityUid) -> Term:
        """Returns an entity that a policy names."""
        term = self.entities.setdefault(uid, z3.Const(str(uid), sort(Reference(uid.type))))
        return self._noted(Reference(uid.type), term)

    def variable(self, name: str, type_: str) -> Term:
        """Returns the principal or the resource."""
        return self._noted(Reference(type_), z3.Const(name, sort(Reference(type_))))

    def record(self, entity: Term) -> Record:
        """Returns the attributes of an entity."""
        type_ = str(entity.sort())
        return Record(type_, (entity,), self.schema.entities[type_].attributes)

    def get(self, record: Record, name: str) -> Term | Record:
        """Returns a field of a record, whether it is there or not; raises `KeyError` where the schema has none."""
        return self._value(f"{record.path}.{name}", record.of, record.type.fields[name].type)

    def has(self, record: Record, name: str) -> Term:
        """Returns whether a record has a field."""
        field = record.type.fields.get(name, Field(Primitive("Bool"), optional=False))
        if name not in record.type.fields or not field.optional:
            return known(name in record.type.fields)
        return _applied(f"has {record.path}.{name}", record.of, z3.BoolSort())

    def get_tag(self, entity: Term, key: Term) -> Term | Record:
        """Returns a tag of an entity, whether it is there or not."""
        tags = self.schema.entities[str(entity.sort())].tags
        if tags is None:
            raise Unprovable("tags of a type that has none")
        return self._value(f"{entity.sort()} tag", (entity, key), tags)

    def has_tag(self, entity: Term, key: Term) -> Term:
        """Returns whether an entity has a tag."""
        if self.schema.entities[str(entity.sort())].tags is None:
            return FALSE
        return _applied(f"has {entity.sort()} tag", (entity, key), z3.BoolSort())

    def within(self, entity: Term, group: Term) -> Term:
        """Returns whether an entity is a group or is in it."""
        types = (str(entity.sort()), str(group.sort()))
        if types[1] not in self.schema.above(types[0]):
            return same(entity, group)
        self._compared.add(types)
        return some(same(entity, group), below(entity, group))

    def like(self, text: Term, pattern: tuple[pst.PatternElem, ...]) -> Term:
        """Returns whether a string fits a pattern: of strings that no policy writes, nothing is known but that.

        This keeps a proof sound; what it refutes may fit no string, which is seen when it is made into a case.
        """
        name = like.shown(pattern)
        if name == "*":
            return known(True)
        self.patterns[name] = pattern
        return _applied(f"like {name}", (text,), z3.BoolSort())

    def axioms(self) -> list[Term]:
        """Returns what holds of all that was spoken of so far, in any store."""
        return [*self._distinct(), *self._fits(), *self._bounds(), *self._order()]

    def _distinct(self) -> Iterator[Term]:
        for type_ in {str(term.sort()) for term in self.entities.values()}:
            yield z3.Distinct(*(term for term in self.entities.values() if str(term.sort()) == type_))
        if len(self.texts) > 1:
            yield z3.Distinct(*self.texts.values())

    def _fits(self) -> Iterator[Term]:
        for pattern, (text, term) in product(list(self.patterns.values()), self.texts.items()):
            yield self.like(term, pattern) == known(like.fits(text, pattern))

    def _bounds(self) -> Iterator[Term]:
        for name, (least, most) in NUMBERS.items():
            yield from (z3.And(least <= term, term <= most) for term in self.spoken(Primitive(name)))

    def _order(self) -> Iterator[Term]:
        """`in` is transitive and has no cycles, among the types between which it was asked for."""
        types = dict.fromkeys(type_ for pair in self._compared for type_ in (pair[0], *self.schema.above(pair[0])))
        for low, middle in product(types, types):
            if middle not in self.schema.above(low):
                continue
            for one, two in product(self.spoken(Reference(low)), self.spoken(Reference(middle))):
                if low == middle:
                    yield z3.Implies(one == two, no(below(one, two)))
                for high in self.schema.above(middle):
                    for three in self.spoken(Reference(high)):
                        yield z3.Implies(every(below(one, two), below(two, three)), below(one, three))

    def _value(self, path: str, of: tuple[Term, ...], type_: Type) -> Term | Record:
        if isinstance(type_, RecordOf):
            return Record(path, of, type_)
        return self._noted(type_, _applied(path, of, sort(type_)))

    def _noted(self, type_: Type, term: Term) -> Term:
        self._spoken[type_, term] = None
        return term


def sort(type_: Type) -> Term:
    """Returns the sort of the values of a type; raises `Unprovable`."""
    match type_:
        case Primitive("Bool"):
            return z3.BoolSort()
        case Primitive(name) if name in NUMBERS:
            return z3.IntSort()
        case Primitive("String") | Reference():
            return z3.DeclareSort(type_.name)
        case SetOf(Primitive() | Reference() as item):
            return z3.SetSort(sort(item))
        case _:
            raise Unprovable("a set of sets or records" if isinstance(type_, SetOf) else "an address")


def below(entity: Term, group: Term) -> Term:
    """Returns whether an entity is in a group, which is another entity."""
    return _applied(f"{entity.sort()} in {group.sort()}", (entity, group), z3.BoolSort())


def _applied(name: str, arguments: tuple[Term, ...], result: Term) -> Term:
    if not arguments:
        return z3.Const(name, result)
    return z3.Function(name, *(argument.sort() for argument in arguments), result)(*arguments)
