"""Gathering: alternatives that differ in one value become one, so that many grants make a short condition."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.model.condition import And, Condition, Equals, Not, OneOf, Or, all_of, any_of

Key = tuple[str, frozenset[Condition]]
#: What a term may ask to be gathered with others: the work grows with the square of it. A grant asks ten things.
PARTS = 32


def gather(condition: Condition) -> Condition:
    """The same condition, its alternatives gathered: `a and p = 1, or a and p = 2` is `a and p one of 1, 2`.

    A query with fifty alternatives takes thirty times as long to plan as one with a list of fifty values.
    """
    match condition:
        case And(terms=terms):
            return all_of(*dict.fromkeys(gather(term) for term in terms))
        case Or(terms=terms):
            return any_of(*_gathered([gather(term) for term in terms]))
        case Not(term=term):
            return Not(gather(term))
        case _:
            return condition


def _gathered(terms: Sequence[Condition]) -> list[Condition]:
    """Each term once; those that differ in the value of one attribute only as one, where the first of them stood."""
    terms = list(dict.fromkeys(terms))
    together: dict[Key, list[Condition]] = {}
    for term in terms:
        for key in _keys(term):
            together.setdefault(key, []).append(term)
    made: list[Condition] = []
    done: set[Condition] = set()
    for term in terms:
        if term in done:
            continue
        best = max(_keys(term), key=lambda key: len(together[key]), default=None)
        alike = [other for other in together[best] if other not in done] if best is not None else [term]
        done.update(alike)
        made.append(_one(best, alike) if best is not None and len(alike) > 1 else term)
    return made


def _keys(term: Condition) -> list[Key]:
    """For each attribute that a term asks one value of: the attribute, and what else the term asks; nothing for a long term."""
    parts = _parts(term)
    if len(parts) > PARTS:
        return []
    return [(part.attribute, parts - {part}) for part in _parts_in_order(term) if isinstance(part, Equals)]


def _one(key: Key, alike: Sequence[Condition]) -> Condition:
    attribute, rest = key
    values = [part.value for term in alike for part in _parts(term) - rest if isinstance(part, Equals)]
    kept = [part for part in _parts_in_order(alike[0]) if part in rest]
    return all_of(*kept, OneOf(attribute, tuple(values)))


def _parts_in_order(term: Condition) -> tuple[Condition, ...]:
    return term.terms if isinstance(term, And) else (term,)


def _parts(term: Condition) -> frozenset[Condition]:
    return frozenset(_parts_in_order(term))
