"""A corpus of random stores: the engine answers as plain Cedar over everything, but for what the fail-closed rules demand.

Plain Cedar is asked with the whole text of the policies in the order of their files, entities parsed anew for each request,
and the schema. `PEERGATE_CORPUS_STORES` asks for more stores than the suite has time for, of the seeds that follow.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import cedarpy

from gateway.model.decision import DenyKind, Query, Verdict
from gateway.model.entity import Entity, EntityUid, Value
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from tests.policy import random_cedar as r

STORES, REQUESTS = int(os.environ.get("PEERGATE_CORPUS_STORES", "420")), 12
SAME = ("allow", "forbidden", "not permitted")
RULES = (
    "denied: a policy erred, and Cedar allows",
    "denied: a policy erred, and Cedar denies",
    "denied: not all entities are there, and Cedar allows",
    "denied: not all entities are there, and Cedar denies",
    "denied: the request does not fit the schema, and Cedar has no decision",
    "denied: no policy names the action, and the request does not fit the schema",
)


def test_the_engine_answers_as_plain_cedar_but_for_the_fail_closed_rules() -> None:
    """Each answer is held to the one rule that it falls under: which way, by which policies, with which errors."""
    counts: Counter[str] = Counter()
    for seed in range(STORES):
        chance = random.Random(seed)
        store = r.a_store(chance)
        texts, bundle = r.loaded(chance, store)
        schema = cedarpy.Schema.from_str(store.schema())
        engine, turned = PolicyEngine(bundle, salt=b""), PolicyEngine(_turned(chance, bundle), salt=b"")
        found = r.entities(chance, store)
        slice = engine.slice(*found)
        queries = [r.a_query(chance, store) for _ in range(REQUESTS)]
        for query, verdict in zip(queries, engine.decide_all(queries, slice), strict=True):
            rule, expected = _expected(store, schema, texts, found, query, named=bundle.members[query.action])
            counts[rule] += 1
            told = (seed, rule, query, expected, verdict, texts)
            assert _answer(verdict) == expected, told
            assert engine.decide(query, slice) == turned.decide(query, slice) == verdict, told
            also = chance.choice(list(store.actions))
            other = turned.decide(replace(query, action=also), slice)
            assert engine.decide_together(query, also, slice) == (verdict, other), told
            worded = replace(query, context=_worded(query.context))
            _, expected = _expected(store, schema, texts, found, worded, named=bundle.members[query.action])
            assert [_answer(engine.decide(worded, slice)) for _ in range(2)] == [expected] * 2, (*told, worded)
    sys.stdout.write("".join(f"{counts[rule]:6} {rule}\n" for rule in (*SAME, *RULES)))
    assert sum(counts.values()) == STORES * REQUESTS
    assert set(counts) == {*SAME, *RULES}
    assert all(count >= STORES // 50 for count in counts.values()), counts


Answer = tuple[bool, str | None, tuple[str, ...], tuple[str, ...]]


def _expected(
    store: r.Store,
    schema: cedarpy.Schema,
    texts: Mapping[str, str],
    found: Sequence[Entity],
    query: Query,
    *,
    named: Sequence[str],
) -> tuple[str, Answer]:
    """What plain Cedar says, and what the rules make of it, with the name of the rule."""
    request = {
        "principal": _uid(query.principal),
        "action": _uid(EntityUid(f"{store.prefix}Action", query.action)),
        "resource": _uid(query.resource),
        "context": _json(query.context),
    }
    answer = cedarpy.is_authorized(request, "\n".join(texts.values()), [_entity(each) for each in found], schema)
    ids, wrong = list(texts), answer.diagnostics.errors
    policies = tuple(sorted(ids[int(name.removeprefix("policy"))] for name in answer.diagnostics.reasons))
    erred = tuple(id_ for n, id_ in enumerate(ids) if any(f"policy `policy{n}`" in error for error in wrong))
    allows = answer.decision is cedarpy.Decision.Allow
    invalid: Answer = (False, DenyKind.INVALID_REQUEST, (), ())
    if not _complete(found, query):
        return f"denied: not all entities are there, and Cedar {'allows' if allows else 'denies'}", invalid
    if answer.decision is cedarpy.Decision.NoDecision:
        if not named:
            return RULES[5], (False, DenyKind.NOT_PERMITTED, (), ())
        return RULES[4], invalid
    if wrong:
        rule = f"denied: a policy erred, and Cedar {'allows' if allows else 'denies'}"
        return rule, (False, DenyKind.EVALUATION_ERROR, policies, erred)
    if allows:
        return "allow", (True, None, policies, ())
    kind = DenyKind.FORBIDDEN if policies else DenyKind.NOT_PERMITTED
    return kind.replace("_", " "), (False, kind, policies, ())


def _answer(verdict: Verdict) -> Answer:
    return verdict.allowed, verdict.deny_kind, verdict.policies, verdict.errors


def _turned(chance: random.Random, bundle: Bundle) -> Bundle:
    """The same policies in one file, in another order."""
    texts = [info.text for info in bundle.policies.values()]
    made = Bundle.from_text(bundle.schema_text, {"all.cedar": "\n".join(chance.sample(texts, len(texts)))}, house_rules=False)
    assert made.hash == bundle.hash
    return made


def _complete(found: Iterable[Entity], query: Query) -> bool:
    """Whether all that is named is there, found out in the plainest way."""
    there = {entity.uid for entity in found}
    named = {query.principal, query.resource, *_named(query.context)}
    for entity in found:
        named |= {*entity.parents, *_named(entity.attrs), *_named(entity.tags)}
    return named <= there


def _named(value: Value) -> set[EntityUid]:
    match value:
        case EntityUid():
            return {value}
        case tuple():
            return {uid for item in value for uid in _named(item)}
        case Mapping():
            return {uid for item in value.values() for uid in _named(item)}
        case _:
            return set()


def _worded(context: Mapping[str, Value]) -> dict[str, Value]:
    """A context with plain texts for decimals and times, which Cedar reads by the schema."""
    worded = {name: _json(value) for name, value in context.items() if isinstance(value, Decimal | datetime)}
    return {**context, **{name: value["__extn"]["arg"] for name, value in worded.items()}}  # type: ignore[index]


def _entity(entity: Entity) -> dict[str, object]:
    parents = [_uid(parent) for parent in entity.parents]
    return {"uid": _uid(entity.uid), "attrs": _json(entity.attrs), "parents": parents, "tags": _json(entity.tags)}


def _json(value: Value) -> object:
    match value:
        case EntityUid():
            return {"__entity": _uid(value)}
        case Decimal():
            return {"__extn": {"fn": "decimal", "arg": f"{value:.1f}"}}
        case datetime():
            return {"__extn": {"fn": "datetime", "arg": value.strftime("%Y-%m-%dT%H:%M:%SZ")}}
        case tuple():
            return [_json(item) for item in value]
        case Mapping():
            return {name: _json(item) for name, item in value.items()}
        case _:
            return value


def _uid(uid: EntityUid) -> dict[str, str]:
    return {"type": uid.type, "id": uid.id}
