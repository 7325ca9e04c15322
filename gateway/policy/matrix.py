"""The matrix: who may do what, as a table that is read as a diff when policies change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gateway.model.decision import Query
from gateway.model.entity import EntityUid, Value
from gateway.model.memory import MemoryGrant
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case, prepare
from gateway.policy.engine import PolicyEngine
from gateway.policy.slice import Slice
from gateway.policy.value import canonical


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """What an action between two kinds of entity is answered; `pairs` is how many pairs of them get this answer.

    `decision` is `allow`, or the kind of a deny. `policies` are the ids of all that decide, or of what failed.
    """

    action: str
    principal: str
    resource: str
    decision: str
    policies: tuple[str, ...]
    pairs: int


def matrix(bundle: Bundle, cases: Iterable[Case]) -> tuple[Row, ...]:
    """Returns what everybody of the casts is answered on everything there, sorted; raises `SliceError`.

    An action is asked between all entities of each cast that a case of it shares, and between what is in a case alone and
    all that is there with it, in the context of the first case of the action. A connection holds every grant that a case of
    its cast gives it. Entities that name others which are not there are left out: nothing can be asked of them.
    """
    engine = PolicyEngine(bundle, salt=b"")
    counted: Counter[tuple[str, str, str, str, tuple[str, ...]]] = Counter()
    for queries, slice, grants in _asked(engine, list(cases)):
        for query, verdict in zip(queries, engine.decide_all(queries, slice, grants), strict=True):
            decision = str(verdict.deny_kind or "allow")
            counted[query.action, query.principal.type, query.resource.type, decision, verdict.errors or verdict.policies] += 1
    return tuple(sorted(Row(*key, pairs) for key, pairs in counted.items()))


def table(rows: Iterable[Row]) -> str:
    """Returns the rows as text, one answer a line; no line changes when another does."""
    lines: list[str] = []
    for action, of_action in groupby(rows, key=lambda row: row.action):
        lines.append(action)
        for (principal, resource), alike in groupby(of_action, key=lambda row: (row.principal, row.resource)):
            lines.append(f"  {principal} -> {resource}")
            lines += [f"    {row.pairs:4} {row.decision:13} {', '.join(row.policies)}".rstrip() for row in alike]
    return "".join(f"{line}\n" for line in lines)


def _asked(engine: PolicyEngine, cases: list[Case]) -> Iterator[tuple[list[Query], Slice, tuple[MemoryGrant, ...]]]:
    """Yields what each principal is asked about, over what, and with which grants."""
    contexts: dict[str, Mapping[str, Value]] = {}
    held: dict[tuple[str, EntityUid], dict[str, MemoryGrant]] = {}
    casts: dict[str, Slice] = {}
    done: set[tuple[str, str, str]] = set()
    prepared = [(_cast(case), *asked) for case, asked in zip(cases, prepare(engine, cases), strict=True)]
    for name, case, query, _ in prepared:
        held.setdefault((name, query.principal), {}).update({grant.id: grant for grant in case.grants})
    for name, case, query, whole in prepared:
        context = contexts.setdefault(case.action, query.context)
        if name not in casts:
            casts[name] = engine.slice_json(_shared(case))
        for slice, known in ((casts[name], frozenset[EntityUid]()), (whole, casts[name].uids)):
            key = (case.action, name, slice.hash)
            if key in done or slice.missing:
                continue
            done.add(key)
            resources = _of_types(slice, engine.bundle.vocabulary.resources[case.action])
            for who in _of_types(slice, engine.bundle.vocabulary.principals[case.action]):
                queries = [Query(who, case.action, it, context) for it in resources if not known.issuperset((who, it))]
                yield queries, slice, tuple(held.get((name, who), {}).values())


def _of_types(slice: Slice, types: Collection[str]) -> list[EntityUid]:
    return sorted(uid for uid in slice.uids if uid.type in types)


def _shared(case: Case) -> tuple[Mapping[str, Any], ...]:
    """The entities that a case has from a cast; they follow its own."""
    return case.entities[len(case.raw["entities"]) :]


def _cast(case: Case) -> str:
    return canonical(_shared(case))
