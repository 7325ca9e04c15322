"""A store out of a model of the solver: its values as entities and a request, in Cedar's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from gateway.model.entity import EntityUid
from gateway.policy.prove import like, symbols
from gateway.policy.prove.literals import EPOCH
from gateway.policy.prove.logic import Term, always
from gateway.policy.prove.schema import Unprovable
from gateway.policy.prove.symbols import NUMBERS, Record, Symbols
from gateway.policy.schema import Primitive, RecordOf, Reference, SetOf, Type
from gateway.policy.value import canonical, uid_json

STRING = Primitive("String")


class Store:
    """Reads a model: the entities that the question names, and those that these name, until none is missing."""

    def __init__(self, symbols: Symbols, model: Any) -> None:
        self._symbols = symbols
        self._model = model
        self._names: dict[tuple[str, str], str] = {}
        self._entities: dict[EntityUid, dict[str, Any]] = {}
        for uid, term in list(symbols.entities.items()):
            self._names[uid.type, self._told(term)] = uid.id
        for text, term in list(symbols.texts.items()):
            self._names["String", self._told(term)] = text

    def entities(self) -> list[Mapping[str, Any]]:
        """Returns the entities that were met so far and what they are in, in the order of their ids."""
        waiting = [term for shape in self._symbols.schema.entities for term in self._symbols.spoken(Reference(shape))]
        for term in waiting:
            self.uid(term)
        self._place(waiting)
        return [self._entities[uid] for uid in sorted(self._entities)]

    def uid(self, term: Term) -> EntityUid:
        """Returns the id of an entity, which is in the store from then on."""
        type_ = str(term.sort())
        uid = EntityUid(type_, self._name(type_, term))
        if uid not in self._entities:
            made = self._entities[uid] = {"uid": uid_json(uid), "attrs": {}, "parents": []}
            made["attrs"] = self.record(self._symbols.record(self._value(term)))
            made |= self._tags(self._value(term))
        return uid

    def string(self, term: Term) -> str:
        """Returns a string: one that a policy writes, or a new one that fits the patterns it has to fit."""
        key = "String", self._told(term)
        if key not in self._names:
            wanted = {name: always(self._value(self._symbols.like(term, p))) for name, p in self._symbols.patterns.items()}
            patterns = self._symbols.patterns
            made = like.fitting(
                [patterns[name] for name, held in wanted.items() if held],
                [patterns[name] for name, held in wanted.items() if not held],
                f"text{len(self._names)}",
            )
            if made is None or made in self._names.values():
                raise Unprovable("a string for the patterns of `like` was not found")
            self._names[key] = made
        return self._names[key]

    def record(self, record: Record) -> dict[str, Any]:
        """Returns a record without the fields that it does not have."""
        return {
            name: self._json(self._symbols.get(record, name), field.type)
            for name, field in record.type.fields.items()
            if always(self._value(self._symbols.has(record, name)))
        }

    def _tags(self, entity: Term) -> dict[str, Any]:
        tags = self._symbols.schema.entities[str(entity.sort())].tags
        if tags is None:
            return {}
        keys = {self._told(key): key for key in self._values(STRING)}
        held = [key for key in keys.values() if always(self._value(self._symbols.has_tag(entity, key)))]
        return {"tags": {self.string(key): self._json(self._symbols.get_tag(entity, key), tags) for key in held}}

    def _json(self, value: Term | Record, type_: Type) -> Any:
        if isinstance(value, Record):
            return self.record(value)
        found = self._value(value)
        match type_:
            case Reference():
                return {"__entity": uid_json(self.uid(found))}
            case SetOf(item):
                members = {canonical(m): m for m in self._members(found, item)}
                return [members[key] for key in sorted(members)]
            case Primitive("Bool"):
                return always(found)
            case Primitive("String"):
                return self.string(found)
            case Primitive("Long"):
                return found.as_long()
            case Primitive(name) if name in NUMBERS:
                return {"__extn": {"fn": name, "arg": _written(name, found.as_long())}}
            case _:
                raise Unprovable("an address")

    def _members(self, found: Term, item: Type) -> list[Any]:
        return [self._json(value, item) for value in self._values(item) if always(self._value(found[value]))]

    def _values(self, type_: Type) -> list[Term]:
        """Every value of a type that the model knows."""
        sort = symbols.sort(type_)
        known = self._model.get_universe(sort) or [] if isinstance(type_, Reference) or type_ == STRING else []
        return [*map(self._value, self._symbols.spoken(type_)), *known]

    def _place(self, spoken: list[Term]) -> None:
        """Puts each entity into those that it is in, with what must lie between them."""
        for entity in spoken:
            for group in spoken:
                below, above = str(entity.sort()), str(group.sort())
                if above in self._symbols.schema.above(below) and always(self._value(symbols.below(entity, group))):
                    self._link(self.uid(entity), self.uid(group))

    def _link(self, uid: EntityUid, group: EntityUid) -> None:
        shapes = self._symbols.schema.entities
        if group.type not in shapes[uid.type].parents:
            middle = next(type_ for type_ in shapes[uid.type].parents if group.type in self._symbols.schema.above(type_))
            between = EntityUid(middle, f"between-{uid.id}-and-{group.id}")
            self._entities.setdefault(between, {"uid": uid_json(between), "attrs": self._anything(middle), "parents": []})
            self._link(between, group)
            group = between
        if uid_json(group) not in self._entities[uid]["parents"]:
            self._entities[uid]["parents"].append(uid_json(group))

    def _anything(self, type_: str) -> dict[str, Any]:
        """Attributes of an entity that no policy reads."""
        return self.record(self._symbols.record(self._symbols.variable(f"between {type_}", type_)))

    def _value(self, term: Term) -> Term:
        return self._model.eval(term, model_completion=True)

    def _told(self, term: Term) -> str:
        return str(self._value(term))

    def _name(self, type_: str, term: Term) -> str:
        key = type_, self._told(term)
        if key not in self._names:
            taken = {id_ for (of, _), id_ in self._names.items() if of == type_}
            fresh = (f"{type_.lower()}{number}" for number in range(1, len(taken) + 2))
            self._names[key] = next(id_ for id_ in fresh if id_ not in taken)
        return self._names[key]


def context(store: Store, type_: RecordOf) -> dict[str, Any]:
    """Returns the context of the request."""
    return store.record(Record("context", (), type_))


def _written(name: str, number: int) -> str:
    match name:
        case "decimal":
            return f"{Decimal(number).scaleb(-4):.4f}"
        case "datetime":
            try:
                return (EPOCH + timedelta(milliseconds=number)).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
            except OverflowError as error:
                raise Unprovable("a moment before the year 1 or after 9999") from error
        case _:
            return f"{number}ms"
