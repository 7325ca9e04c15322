"""Random Cedar: expressions and policies of any leaves; and whole stores, of a schema, its policies, entities and requests.

What a seed makes is always the same. A name of an attribute has one type in all of a store, so that a guarded reading of it
is valid for whatever stands before it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TypeVar

from gateway.model.decision import Query
from gateway.model.entity import Entity, EntityUid, Value
from gateway.policy.bundle import Bundle
from gateway.policy.finding import PolicyError

T = TypeVar("T")
STRINGS, LONGS = ("ann", "bob", "nan", ""), (-2, -1, 0, 1, 2)
MOMENTS = (datetime(2025, 12, 30, 12, tzinfo=UTC), datetime(2025, 12, 31, 23, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
#: Some of these are too large to be added to anything.
NUMBERS = (-(2**63), -1, 0, 1, 2, 2**62)
DECIMALS = (Decimal("0.5"), Decimal("1.5"), Decimal("-1"))
#: Entity types in the order of their hierarchy: one is in those at or after its place.
TYPES = ("User", "Doc", "Team", "Org")
ACTIONS, GROUPS = ("read", "edit", "drop", "list"), ("write", "manage", "all")
#: Types of attributes by name; `boss`, `friend` and `pals` are of a random entity type.
PLAIN = {
    "active": "Bool", "level": "Long", "nick": "String", "price": "decimal", "due": "datetime", "langs": "Set<String>",
    "marks": "Set<Long>", "box": "{ name: String, open?: Bool, size: Long }",
}  # fmt: skip
#: Of what it is asked, each is true or false of a value `X`; the last of some can err.
LEAVES: Mapping[str, tuple[str, ...]] = {
    "active": ("X", "X == true", "(if X then 1 else 2) > 1"),
    "level": ("X > 1", "X <= 0", "X * 2 != 2", "X - 9223372036854775807 < -3"),
    "nick": ('X == "ann"', 'X like "a*"', 'X like "*n*"', '["ann", "bob"].contains(X)'),
    "price": ('X.lessThan(decimal("1.5"))', 'decimal("0.5").greaterThanOrEqual(X)', 'X == decimal("1.5")'),
    "due": ('X < datetime("2026-01-01")', 'X.offset(duration("1d")) >= datetime("2026-01-01T12:00:00Z")'),
    "langs": ('X.contains("ann")', 'X.containsAny(["bob", "nan"])', 'X.containsAll(["ann", "bob"])', "X.isEmpty()"),
    "marks": ("X.contains(1)", "[0, 1].containsAll(X)", "X == [1, 2]"),
    "box": ('X.name == "ann"', "X has open && X.open", "X.size > 0", "X.size * 2 != 2"),
}
OF_ENTITIES = ("X == principal", "X == resource", "principal in X", "resource in X", "X in {any}", "X is {type}")
OF_SETS = ("X.contains(principal)", "X.contains(resource)", "principal in X", "X.isEmpty()", "X.contains({any})")


@dataclass(frozen=True, slots=True)
class Kind:
    """An entity type: attributes by name, with whether each may be left out; `tags` is the type of its tags, "" for none."""

    name: str
    parents: tuple[str, ...]
    attributes: Mapping[str, bool]
    tags: str


@dataclass(frozen=True, slots=True)
class Act:
    """An action, the groups that it is in directly, what it is about, and its context as the attributes of a kind."""

    name: str
    groups: tuple[str, ...]
    principals: tuple[str, ...]
    resources: tuple[str, ...]
    context: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Store:
    """A schema and how to write under it; `prefix` is its namespace with the colons, or nothing."""

    prefix: str
    kinds: Mapping[str, Kind]
    actions: Mapping[str, Act]
    groups: Mapping[str, tuple[str, ...]]
    types: Mapping[str, str]

    def schema(self) -> str:
        """Its text."""
        lines = [self._kind(kind) for kind in self.kinds.values()]
        lines += [f'action "{name}"{_in(parents)};' for name, parents in self.groups.items()]
        for act in self.actions.values():
            about = f"principal: [{', '.join(act.principals)}], resource: [{', '.join(act.resources)}]"
            lines.append(f'action "{act.name}"{_in(act.groups)} appliesTo {{ {about}, context: {self._record(act.context)} }};')
        text = "\n".join(lines)
        return f"namespace {self.prefix[:-2]} {{\n{text}\n}}" if self.prefix else text

    def _kind(self, kind: Kind) -> str:
        within = f" in [{', '.join(kind.parents)}]" if kind.parents else ""
        tags = f" tags {kind.tags}" if kind.tags else ""
        return f"entity {kind.name}{within} = {self._record(kind.attributes)}{tags};"

    def _record(self, attributes: Mapping[str, bool]) -> str:
        shown = (f"{name}{'?' if optional else ''}: {self.types[name]}" for name, optional in attributes.items())
        return "{ " + ", ".join(shown) + " }"


def a_store(chance: random.Random) -> Store:
    """A schema of two to four entity types and as many actions, in groups and groups of groups; all have a `level`."""
    names = sorted(chance.sample(TYPES, chance.randint(2, 4)), key=TYPES.index)
    types = {**PLAIN, "boss": chance.choice(names), "friend": chance.choice(names), "pals": f"Set<{chance.choice(names)}>"}
    kinds = {}
    for at, name in enumerate(names):
        above = tuple(other for other in names[at:] if chance.random() < 0.7)
        kinds[name] = Kind(
            name, above, _attributes(chance, types, 7), chance.choice(("", "String", "Long", chance.choice(names)))
        )
    groups = {name: tuple(other for other in GROUPS[at + 1 :] if chance.random() < 0.6) for at, name in enumerate(GROUPS)}
    actions = {}
    for name in ACTIONS[: chance.randint(2, 4)]:
        about = (tuple(chance.sample(names, chance.randint(1, 2))) for _ in range(2))
        actions[name] = Act(name, tuple(some(chance, GROUPS)), *about, _attributes(chance, types, 4))
    return Store(chance.choice(("", "", "Shop::")), kinds, actions, groups, types)


def policies(chance: random.Random, store: Store) -> dict[str, str]:
    """Policies by id, each alone a text; a validator may refuse some."""
    return {f"p{n}": f'@id("p{n}") {_policy(chance, store)}' for n in range(chance.randint(1, 7))}


def loaded(chance: random.Random, store: Store) -> tuple[dict[str, str], Bundle]:
    """Policies that the validator takes, and the bundle of them, each in a file of its own."""
    while True:
        texts = policies(chance, store)
        while texts:
            try:
                return texts, Bundle.from_text(store.schema(), {f"{i}.cedar": t for i, t in texts.items()}, house_rules=False)
            except PolicyError as refused:
                found = {finding.policy_id for finding in refused.findings}
            if found.isdisjoint(texts):
                raise AssertionError(f"refused for something else than a policy: {store.schema()}")
            texts = {id_: text for id_, text in texts.items() if id_ not in found}


def _policy(chance: random.Random, store: Store) -> str:
    leaves = [_leaf(chance, store) for _ in range(6)]
    scopes = [_scope(chance, store, "principal"), _action(chance, store), _scope(chance, store, "resource")]
    return a_policy(chance, scopes, leaves, depth=2)


def a_policy(chance: random.Random, scopes: Sequence[str], leaves: Sequence[str], *, depth: int) -> str:
    """A policy of a scope, which permits twice in three times, with at most two conditions."""
    kinds = [chance.choice(("when", "unless")) for _ in range(chance.choice((0, 1, 1, 2)))]
    clauses = [f"{kind} {{ {an_expression(chance, leaves, depth)} }}" for kind in kinds]
    return f"{chance.choice(('permit', 'permit', 'forbid'))} ({', '.join(scopes)}) {' '.join(clauses)};"


def an_expression(chance: random.Random, leaves: Sequence[str], depth: int) -> str:
    """A boolean of leaves, at most `depth` operators deep."""
    if not depth or chance.random() < 0.4:
        return chance.choice(leaves)
    one, two, three = (an_expression(chance, leaves, depth - 1) for _ in range(3))
    forms: Sequence[Callable[[], str]] = (
        lambda: f"(({one}) && ({two}))",
        lambda: f"(({one}) || ({two}))",
        lambda: f"!({one})",
        lambda: f"(if {one} then {two} else {three})",
        lambda: f"(({one}) == ({two}))",
    )
    return chance.choice(forms)()


def _scope(chance: random.Random, store: Store, role: str) -> str:
    type_ = store.prefix + chance.choice(list(store.kinds))
    forms = (*[role] * 6, f"{role} is {type_}", f"{role} == {_any(chance, store)}", f"{role} in {_any(chance, store)}")
    return chance.choice((*forms, f"{role} is {type_} in {_any(chance, store)}"))


def _action(chance: random.Random, store: Store) -> str:
    one, two = (f'{store.prefix}Action::"{name}"' for name in (chance.choice(list(store.actions)), chance.choice(GROUPS)))
    return chance.choice(("action", f"action == {one}", f"action in {two}", f"action in [{one}, {two}]"))


def _leaf(chance: random.Random, store: Store) -> str:
    """A question about an attribute, behind as many guards as it takes, or about the tags or the place of an entity."""
    what = chance.random()
    whose = chance.choice(("principal", "resource", "principal", "resource", "context"))
    if what < 0.1 and whose != "context":
        return f"{whose} in {_any(chance, store)}"
    if what < 0.2:
        return _tag(chance, store)
    if what < 0.45:
        return f"{whose} has level && {whose}.level * 2 != 2"
    guards: list[str] = []
    for _ in range(chance.choice((0, 0, 0, 1, 2))):
        whose = _guarded(whose, chance.choice(("boss", "friend")), guards)
    held = (act.context for act in store.actions.values()) if whose == "context" else (k.attributes for k in store.kinds.values())
    name = chance.choice([name for attributes in held for name in attributes])
    read = _guarded(whose, name, guards)
    asked = LEAVES.get(name) or (OF_SETS if name == "pals" else OF_ENTITIES)
    text = chance.choice(asked).replace("X", read).replace("{any}", _any(chance, store))
    guards.append(text.replace("{type}", store.prefix + chance.choice(list(store.kinds))))
    return " && ".join(guards)


def _guarded(whose: str, name: str, guards: list[str]) -> str:
    guards.append(f"{whose} has {name}")
    return f"{whose}.{name}"


def _tag(chance: random.Random, store: Store) -> str:
    tagged = [kind for kind in store.kinds.values() if kind.tags]
    if not tagged:
        return "true"
    kind, whose = chance.choice(tagged), chance.choice(("principal", "resource"))
    key = f'"{chance.choice(STRINGS)}"'
    read = f"{whose}.getTag({key})"
    value = {"String": f'{read} == "ann"', "Long": f"{read} * 2 != 2"}.get(kind.tags, f"{read} == principal")
    return f"{whose} is {store.prefix}{kind.name} && {whose}.hasTag({key}) && {chance.choice(('true', value))}"


def _any(chance: random.Random, store: Store) -> str:
    return f'{store.prefix}{chance.choice(list(store.kinds))}::"e{chance.randrange(4)}"'


def entities(chance: random.Random, store: Store) -> list[Entity]:
    """Three entities of each type in long hierarchies; in one store of five some that others name are missing."""
    uids = [EntityUid(store.prefix + name, f"e{n}") for name in store.kinds for n in range(3)]
    made = []
    for at, uid in enumerate(uids):
        kind = store.kinds[uid.type.removeprefix(store.prefix)]
        above = [other for other in uids[at + 1 :] if other.type.removeprefix(store.prefix) in kind.parents]
        tags = {key: _value(chance, store, kind.tags) for key in some(chance, STRINGS)} if kind.tags else {}
        attrs = _record(chance, store, kind.attributes)
        made.append(Entity(uid, attrs, tuple(chance.sample(above, min(len(above), chance.randint(0, 2)))), tags))
    if chance.random() < 0.2:
        made = chance.sample(made, len(made) - chance.randint(1, 2))
    return made


def a_query(chance: random.Random, store: Store) -> Query:
    """A request; one in ten is about what its action is not, names what is not there, or has a context that does not fit."""
    act = chance.choice(list(store.actions.values()))
    wrong = chance.choice((*[""] * 40, "principal", "resource", "id", "less", "more", "type"))
    sides = []
    for role, types in (("principal", act.principals), ("resource", act.resources)):
        type_ = chance.choice(list(store.kinds) if wrong == role else types)
        sides.append(EntityUid(store.prefix + type_, f"e{3 if wrong == 'id' else chance.randrange(3)}"))
    context = _record(chance, store, act.context)
    if wrong == "less":
        context = {}
    if wrong == "more":
        context = {**context, "extra": 1}
    if wrong == "type" and context:
        context = {**context, chance.choice(list(context)): ("no", 1)}
    return Query(sides[0], act.name, sides[1], context)


def perhaps(chance: random.Random, attrs: dict[str, Value], **values: Value) -> None:
    """Put each value in three times of five."""
    attrs.update({name: value for name, value in values.items() if chance.random() < 0.6})


def some(chance: random.Random, values: Sequence[T]) -> tuple[T, ...]:
    """At most two of the values."""
    return tuple(chance.sample(values, chance.randint(0, 2)))


def _attributes(chance: random.Random, types: Mapping[str, str], most: int) -> dict[str, bool]:
    names = dict.fromkeys([*chance.sample(list(types), chance.randint(1, most)), "level"])
    return {name: chance.random() < 0.5 for name in names}


def _record(chance: random.Random, store: Store, attributes: Mapping[str, bool]) -> dict[str, Value]:
    kept = (name for name, optional in attributes.items() if not optional or chance.random() < 0.6)
    return {name: _value(chance, store, store.types[name]) for name in kept}


def _value(chance: random.Random, store: Store, type_: str) -> Value:
    if type_.startswith("Set<"):
        return tuple(dict.fromkeys(_value(chance, store, type_[4:-1]) for _ in range(chance.randint(0, 2))))
    if type_.startswith("{"):
        box: dict[str, Value] = {"name": chance.choice(STRINGS), "size": chance.choice(NUMBERS)}
        perhaps(chance, box, open=chance.random() < 0.5)
        return box
    plain: Mapping[str, Sequence[Value]] = {
        "Bool": (True, False), "Long": NUMBERS, "String": STRINGS, "decimal": DECIMALS, "datetime": MOMENTS,
    }  # fmt: skip
    return chance.choice(plain[type_]) if type_ in plain else EntityUid(store.prefix + type_, f"e{chance.randrange(3)}")


def _in(groups: Sequence[str]) -> str:
    named = ", ".join(f'"{name}"' for name in groups)
    return f" in [{named}]" if groups else ""
