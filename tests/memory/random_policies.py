"""Random policies of an organisation over rows of memory, each with what it means written a second time in plain Python."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.model.memory import LAYERS, TIERS, Memory

Meaning = Callable[[Memory, datetime], bool]
PROJECTS = ("alpha", "alpha2", "a_b", "axb", "a-b", "beta")
TAGS = ("x", "X", "a,b", "100%", "a_b", "'; DROP TABLE memories; --", "naïve", "naïve", "🎉", '"', "ops", "op")
CONNECTIONS = ("conn", "conn2", "other")


@dataclass(frozen=True, slots=True)
class Clause:
    """A boolean expression of Cedar over `resource`, and the same in Python."""

    text: str
    holds: Meaning


@dataclass(frozen=True, slots=True)
class Written:
    """One policy: whether it permits, its text, and when it applies."""

    permits: bool
    text: str
    actions: tuple[str, ...]
    applies: Meaning


def a_policy(chance: random.Random, number: int, *, permits: bool) -> Written:
    """A policy on every principal and action of memory rows."""
    clauses = [a_clause(chance, 3) for _ in range(chance.randint(1, 2))]
    kinds = [chance.choice(("when", "unless")) for _ in clauses]
    body = " ".join(f"{kind} {{ {clause.text} }}" for kind, clause in zip(kinds, clauses, strict=True))
    effect = "permit" if permits else "forbid"
    actions = chance.choice((("search", "read", "query", "remember"), ("search", "read"), ("query",)))
    scope = "action in [" + ", ".join(f'Action::"memory.{action}"' for action in actions) + "]"
    text = f'@id("org/{number}") @reason("Random.") {effect} (principal, {scope}, resource is Memory) {body};'
    pairs = list(zip(kinds, clauses, strict=True))
    return Written(
        permits, text, actions, lambda row, now: all(clause.holds(row, now) is (kind == "when") for kind, clause in pairs)
    )


def a_clause(chance: random.Random, depth: int) -> Clause:
    """An expression of at most `depth` operators deep."""
    if depth and chance.random() < 0.6:
        return chance.choice((_both, _either, _no, _choice))(chance, depth - 1)
    return chance.choice(_LEAVES)(chance)


def _both(chance: random.Random, depth: int) -> Clause:
    one, two = a_clause(chance, depth), a_clause(chance, depth)
    return Clause(f"({one.text} && {two.text})", lambda row, now: one.holds(row, now) and two.holds(row, now))


def _either(chance: random.Random, depth: int) -> Clause:
    one, two = a_clause(chance, depth), a_clause(chance, depth)
    return Clause(f"({one.text} || {two.text})", lambda row, now: one.holds(row, now) or two.holds(row, now))


def _no(chance: random.Random, depth: int) -> Clause:
    one = a_clause(chance, depth)
    return Clause(f"!({one.text})", lambda row, now: not one.holds(row, now))


def _choice(chance: random.Random, depth: int) -> Clause:
    one, two, three = (a_clause(chance, depth) for _ in range(3))
    return Clause(
        f"(if {one.text} then {two.text} else {three.text})",
        lambda row, now: two.holds(row, now) if one.holds(row, now) else three.holds(row, now),
    )


def _project(chance: random.Random) -> Clause:
    value = chance.choice(PROJECTS)
    return Clause(f"(resource has project && resource.project == {_quoted(value)})", lambda row, _: row.project_id == value)


def _tagged(_: random.Random) -> Clause:
    return Clause("resource has project", lambda row, _: row.project_id is not None)


def _tier(chance: random.Random) -> Clause:
    value = chance.choice(TIERS)
    return Clause(f"resource.classification == {_quoted(value)}", lambda row, _: row.classification == value)


def _tiers(chance: random.Random) -> Clause:
    values = _some(chance, TIERS)
    return Clause(f"{_list(values)}.contains(resource.classification)", lambda row, _: row.classification in values)


def _layer(chance: random.Random) -> Clause:
    value = chance.choice(LAYERS)
    return Clause(f"resource.layer != {_quoted(value)}", lambda row, _: row.layer != value)


def _has_tag(chance: random.Random) -> Clause:
    value = chance.choice(TAGS)
    return Clause(f"resource.tags.contains({_quoted(value)})", lambda row, _: value in row.tags)


def _any_tag(chance: random.Random) -> Clause:
    values = _some(chance, TAGS)
    return Clause(f"resource.tags.containsAny({_list(values)})", lambda row, _: any(value in row.tags for value in values))


def _all_tags(chance: random.Random) -> Clause:
    values = _some(chance, TAGS)
    return Clause(f"resource.tags.containsAll({_list(values)})", lambda row, _: all(value in row.tags for value in values))


def _tags_within(chance: random.Random) -> Clause:
    values = _some(chance, TAGS)
    return Clause(f"{_list(values)}.containsAll(resource.tags)", lambda row, _: set(row.tags) <= set(values))


def _no_tag(_: random.Random) -> Clause:
    return Clause("resource.tags.isEmpty()", lambda row, _: not row.tags)


def _like(chance: random.Random) -> Clause:
    start, end = chance.choice(("a", "alpha", "a_", "%", "")), chance.choice(("b", "a", "2", ""))
    return Clause(
        f"(resource has project && resource.project like {_quoted(start)[:-1]}*{_quoted(end)[1:]})",
        lambda row, _: (
            row.project_id is not None
            and row.project_id.startswith(start)
            and row.project_id.endswith(end)
            and len(row.project_id) >= len(start) + len(end)
        ),
    )


def _over(chance: random.Random) -> Clause:
    value = chance.choice(CONNECTIONS)
    return Clause(f"resource.sources.contains({_quoted(value)})", lambda row, _: value in row.sources)


def _owners(_: random.Random) -> Clause:
    return Clause("resource.sources.isEmpty()", lambda row, _: not row.sources)


def _at_home(_: random.Random) -> Clause:
    return Clause("resource in principal.org", lambda row, _: row.org_id == "home")


def _expired(_: random.Random) -> Clause:
    return Clause("resource.expired", lambda row, now: row.expired_at(now))


_LEAVES: Sequence[Callable[[random.Random], Clause]] = (
    _project, _tagged, _tier, _tiers, _layer, _has_tag, _any_tag, _all_tags, _tags_within, _no_tag, _like, _over, _owners,
    _at_home, _expired,
)  # fmt: skip


def _some(chance: random.Random, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(chance.sample(values, chance.randint(1, 3)))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _list(values: Sequence[str]) -> str:
    return "[" + ", ".join(_quoted(value) for value in values) + "]"
