"""The matrix: who may do what, as a table that is read as a diff when policies change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from gateway.model.decision import Query, Verdict
from gateway.model.entity import EntityUid
from gateway.model.memory import MemoryGrant
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case, prepare
from gateway.policy.context import Context
from gateway.policy.engine import PolicyEngine
from gateway.policy.slice import Slice
from gateway.policy.value import canonical

#: A decision, and what decided it or failed.
_Answer = tuple[str, tuple[str, ...]]
_Asked = tuple[Case, Query, Slice]


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """What an action between two kinds of entity is answered; `pairs` is how many pairs of them get this answer.

    `decision` is `allow`, or the kind of a deny. `policies` are the ids of all that decide, or of what failed. `where` says
    how a context differs from the first in which the action is asked, and is empty for that one: of the others there are
    only the pairs that are answered otherwise.
    """

    action: str
    where: str
    principal: str
    resource: str
    decision: str
    policies: tuple[str, ...]
    pairs: int


def matrix(bundle: Bundle, cases: Iterable[Case]) -> tuple[Row, ...]:
    """Returns what everybody of the casts is answered on everything there, sorted; raises `SliceError`.

    An action is asked between all entities of each cast that a case of it shares, and between what is in a case alone and
    all that is there with it, in every context that a case of the action has. A connection holds every grant that a case of
    its cast gives it. Entities that name others which are not there are left out: nothing can be asked of them.
    """
    engine = PolicyEngine(bundle, salt=b"")
    asked = prepare(engine, cases)
    contexts = _contexts(case for case, _, _ in asked)
    counted: Counter[tuple[str, str, str, str, str, tuple[str, ...]]] = Counter()
    for queries, slice, grants in _asked(engine, asked):
        first: list[_Answer] = []
        for where, context in contexts[queries[0].action].items():
            here = [replace(query, context=context) for query in queries]
            answers = [_answer(verdict) for verdict in engine.decide_all(here, slice, grants)]
            first = first or answers
            for query, answer, before in zip(here, answers, first, strict=True):
                if not where or answer != before:
                    counted[query.action, where, query.principal.type, query.resource.type, *answer] += 1
    return tuple(sorted(Row(*key, pairs) for key, pairs in counted.items()))


def table(rows: Iterable[Row]) -> str:
    """Returns the rows as text, one answer a line; no line changes when another does."""
    lines: list[str] = []
    for (action, where), of_action in groupby(rows, key=lambda row: (row.action, row.where)):
        lines.append(f"{action}, where {where}" if where else action)
        for (principal, resource), alike in groupby(of_action, key=lambda row: (row.principal, row.resource)):
            lines.append(f"  {principal} -> {resource}")
            lines += [f"    {row.pairs:4} {row.decision:13} {', '.join(row.policies)}".rstrip() for row in alike]
    return "".join(f"{line}\n" for line in lines)


def _answer(verdict: Verdict) -> _Answer:
    return str(verdict.deny_kind or "allow"), verdict.errors or verdict.policies


def _contexts(cases: Iterable[Case]) -> dict[str, dict[str, Context]]:
    """Returns each context that an action is asked in, by how it differs from the first."""
    first: dict[str, dict[str, object]] = {}
    found: dict[str, dict[str, Context]] = {}
    for case in cases:
        raw = case.request["context"]
        flat = dict(_flat("", raw))
        known = first.setdefault(case.action, flat)
        differs = [
            f"{name} is {flat.get(name, 'not there')}" for name in sorted(known | flat) if known.get(name) != flat.get(name)
        ]
        found.setdefault(case.action, {}).setdefault(", ".join(differs), Context.from_json(raw))
    return found


def _flat(path: str, value: Any) -> Iterator[tuple[str, object]]:
    """Yields what is in a context by its path; an extension value is its text."""
    match value:
        case {"__extn": {"arg": text}}:
            yield path, text
        case dict():
            for name, member in value.items():
                yield from _flat(f"{path}.{name}".removeprefix("."), member)
        case _:
            yield path, value


def _asked(engine: PolicyEngine, asked: list[_Asked]) -> Iterator[tuple[list[Query], Slice, tuple[MemoryGrant, ...]]]:
    """Yields what each principal is asked about, over what, and with which grants."""
    held: dict[tuple[str, EntityUid], dict[str, MemoryGrant]] = {}
    casts: dict[str, Slice] = {}
    done: set[tuple[str, str, str]] = set()
    prepared = [(_cast(case), case, query, slice) for case, query, slice in asked]
    for name, case, query, _ in prepared:
        held.setdefault((name, query.principal), {}).update({grant.id: grant for grant in case.grants})
    for name, case, query, whole in prepared:
        if name not in casts:
            casts[name] = engine.slice_json(_shared(case))
        for slice, known in ((casts[name], frozenset[EntityUid]()), (whole, casts[name].uids)):
            key = (case.action, name, slice.hash)
            if key in done or slice.missing:
                continue
            done.add(key)
            resources = _of_types(slice, engine.bundle.vocabulary.resources[case.action])
            for who in _of_types(slice, engine.bundle.vocabulary.principals[case.action]):
                pairs = [replace(query, principal=who, resource=it) for it in resources if not known.issuperset((who, it))]
                if pairs:
                    yield pairs, slice, tuple(held.get((name, who), {}).values())


def _of_types(slice: Slice, types: Collection[str]) -> list[EntityUid]:
    return sorted(uid for uid in slice.uids if uid.type in types)


def _shared(case: Case) -> tuple[Mapping[str, Any], ...]:
    """The entities that a case has from a cast; they follow its own."""
    return case.entities[len(case.raw["entities"]) :]


def _cast(case: Case) -> str:
    return canonical(_shared(case))
