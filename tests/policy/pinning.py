"""One store and one request as what the solver is told of its symbols, so that nothing is left open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import z3

from gateway.model.decision import Query
from gateway.model.entity import Entity, EntityUid, Value
from gateway.policy.prove import like
from gateway.policy.prove.logic import Term
from gateway.policy.prove.symbols import Record, Symbols, below

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def pinned(symbols: Symbols, entities: Sequence[Entity], query: Query, context: Record) -> list[Term]:
    """Returns that the principal, the resource and the context are these, and the store is this one."""
    said = [
        symbols.variable("principal", query.principal.type) == symbols.entity(query.principal),
        symbols.variable("resource", query.resource.type) == symbols.entity(query.resource),
        *_record(symbols, context, query.context),
    ]
    for entity in entities:
        said += _record(symbols, symbols.record(symbols.entity(entity.uid)), entity.attrs)
        for key in entity.tags:
            symbols.text(key)
    for entity in entities:
        said += _tags(symbols, entity)
    return [*said, *_placed(symbols, entities), *_fits(symbols)]


def _record(symbols: Symbols, record: Record, values: Mapping[str, Value]) -> Iterator[Term]:
    for name, field in record.type.fields.items():
        if field.optional:
            yield symbols.has(record, name) == (name in values)
        if name in values:
            yield from _is(symbols, symbols.get(record, name), values[name])


def _is(symbols: Symbols, term: Any, value: Value) -> Iterator[Term]:
    if isinstance(value, Mapping):
        yield from _record(symbols, term, value)
    else:
        yield term == _term(symbols, value, term)


def _term(symbols: Symbols, value: Value, like: Term) -> Term:
    match value:
        case bool():
            return z3.BoolVal(value)
        case int():
            return z3.IntVal(value)
        case str():
            return symbols.text(value)
        case Decimal():
            return z3.IntVal(int(value * 10_000))
        case datetime():
            return z3.IntVal((value - EPOCH) // timedelta(milliseconds=1))
        case EntityUid():
            return symbols.entity(value)
        case tuple():
            made = z3.EmptySet(like.sort().domain())
            for item in value:
                made = z3.SetAdd(made, _term(symbols, item, like))
            return made
        case _:
            raise TypeError(value)


def _tags(symbols: Symbols, entity: Entity) -> Iterator[Term]:
    term = symbols.entity(entity.uid)
    if symbols.schema.entities[entity.uid.type].tags is None:
        return
    for text, key in list(symbols.texts.items()):
        yield symbols.has_tag(term, key) == (text in entity.tags)
        if text in entity.tags:
            yield from _is(symbols, symbols.get_tag(term, key), entity.tags[text])


def _placed(symbols: Symbols, entities: Sequence[Entity]) -> Iterator[Term]:
    parents = {entity.uid: entity.parents for entity in entities}
    for uid, term in symbols.entities.items():
        above: set[EntityUid] = set()
        waiting = [uid]
        while waiting:
            new = set(parents.get(waiting.pop(), ())) - above
            above |= new
            waiting += new
        for group, other in symbols.entities.items():
            if group.type in symbols.schema.above(uid.type):
                yield below(term, other) == (group in above)


def _fits(symbols: Symbols) -> Iterator[Term]:
    for pattern in list(symbols.patterns.values()):
        for text, term in list(symbols.texts.items()):
            yield symbols.like(term, pattern) == like.fits(text, pattern)
