"""Samples: requests that chance makes of cases, near what policies say, for what no proof reaches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

from cedarpy import pst

from gateway.model.entity import EntityUid
from gateway.policy.cases import Case, from_json
from gateway.policy.reading import nodes
from gateway.policy.schema import Question
from gateway.policy.value import uid_json

#: How often a value, a parent, or all attributes of an entity give way to others, one rate a request. Much varied, hardly one
#: is permitted; little varied, one differs from its case in a single value.
RATES = (0.02, 0.2)
#: Who asks, what about, the context and the names give way this much more often.
SIDE = 2.5
EXTENSIONS = frozenset(("decimal", "datetime", "duration", "ip"))
Json = Any


class _Dice(NamedTuple):
    chance: Random
    rate: float

    def change(self, share: float = 1.0) -> bool:
        """Whether something changes, of what changes at a share of the rate."""
        return self.chance.random() < self.rate * share


class Samples:
    """Makes requests of the cases of a folder: their entities with other values, in other groups, under other names.

    A value is one of its type in any case, or one that a policy of `trees` names, or lies beside that. Nothing is known of
    the schema, so some of what is made does not fit it, and is for the engine to refuse.
    """

    def __init__(self, cases: Sequence[Case], trees: Iterable[pst.Template]) -> None:
        self._cases = cases
        self._values: dict[str, list[Json]] = defaultdict(list)
        self._named: dict[str, list[str]] = defaultdict(list)
        self._alike: dict[str, list[Json]] = defaultdict(list)
        for case in cases:
            for entity in case.entities:
                self._alike[entity["uid"]["type"]].append(entity)
            for value in (case.request["context"], *(entity["attrs"] for entity in case.entities)):
                for kind, leaf in _leaves(value):
                    self._values[kind].append(leaf)
        for node in (node for tree in trees for node in nodes(tree)):
            if isinstance(node, pst.EntityUid):
                self._named[str(node.type)].append(node.id)
            for kind, leaf in _literals(node):
                self._values[kind].append(leaf)
        for kind, values in self._values.items():
            self._values[kind] = list({repr(value): value for value in values}.values())

    def of(self, kind: Question, chance: Random) -> Iterator[Case]:
        """Yields requests of a kind without end; none, where no case has entities of both types."""
        types = {kind.principal, kind.resource}
        hosts = [case for case in self._cases if types <= {entity["uid"]["type"] for entity in case.entities}]
        near = [case for case in hosts if case.action == kind.action]
        contexts = [case.request["context"] for case in self._cases if case.action == kind.action]
        contexts = contexts or [case.request["context"] for case in self._cases]
        number = 0
        while hosts:
            number += 1
            host = chance.choice(near if near and chance.random() < 0.5 else hosts)
            dice = _Dice(chance, chance.choice(RATES))
            own = host.action == kind.action and not dice.change(SIDE)
            context = host.request["context"] if own else chance.choice(contexts)
            yield self._made(f"sample {number} of {kind.action}", host, kind, context, dice)

    def _made(self, name: str, host: Case, kind: Question, context: Json, dice: _Dice) -> Case:
        chance = dice.chance
        there: dict[str, list[str]] = defaultdict(list)
        for entity in host.entities:
            there[entity["uid"]["type"]].append(entity["uid"]["id"])
        sides = [
            own if own.type == type_ and not dice.change(SIDE) else EntityUid(type_, chance.choice(there[type_]))
            for own, type_ in ((host.principal, kind.principal), (host.resource, kind.resource))
        ]
        entities = [self._entity(entity, there, dice) for entity in host.entities]
        action = host.request["action"].split("::")[:-1]
        raw: dict[str, Json] = {
            "name": name,
            "request": {
                "principal": uid_json(sides[0]),
                "action": "::".join((*action, f'"{kind.action}"')),
                "resource": uid_json(sides[1]),
                "context": self._varied(context, there, dice),
            },
            "entities": entities,
            "decision": "deny",
            "reason": [],
            "num_errors": 0,
        }
        if sides[0] == host.principal and "grants" in host.raw:
            raw["grants"] = host.raw["grants"]
        if dice.change(SIDE):
            renamed = {
                (type_, chance.choice(there[type_])): chance.choice(ids) for type_, ids in self._named.items() if there[type_]
            }
            raw = _renamed(raw, {key: id_ for key, id_ in renamed.items() if id_ not in there[key[0]]})
        request = raw["request"]
        for side in ("principal", "resource"):
            request[side] = f'{request[side]["type"]}::"{request[side]["id"]}"'
        return from_json(raw)

    def _entity(self, entity: Json, there: dict[str, list[str]], dice: _Dice) -> Json:
        alike = self._alike[entity["uid"]["type"]]
        attrs = dice.chance.choice(alike)["attrs"] if dice.change() else entity["attrs"]
        parents = [parent for parent in entity["parents"] if not dice.change(0.5)]
        if dice.change():
            parents += [_present(parent, there, dice) for parent in dice.chance.choice(alike)["parents"]]
        kept = {(parent["type"], parent["id"]): parent for parent in parents}
        return {**entity, "attrs": self._varied(attrs, there, dice), "parents": list(kept.values())}

    def _varied(self, value: Json, there: dict[str, list[str]], dice: _Dice) -> Json:
        match value:
            case {"__entity": uid}:
                return {"__entity": self._varied(uid, there, dice)}
            case {"type": str(), "id": str()} if len(value) == 2:
                return _present(value, there, dice)
            case dict() if "__extn" not in value:
                return {name: self._varied(member, there, dice) for name, member in value.items()}
            case list():
                kept = [self._varied(member, there, dice) for member in value if not dice.change()]
                return list({repr(member): member for member in kept}.values())
            case bool():
                return value != dice.change()
            case _:
                [(kind, _)] = _leaves(value)
                return dice.chance.choice(self._values[kind]) if dice.change() else value


def _present(uid: Json, there: dict[str, list[str]], dice: _Dice) -> Json:
    """An entity of a type that is there: mostly the one that is named."""
    ids = there.get(uid["type"], [])
    return {**uid, "id": dice.chance.choice(ids)} if ids and (uid["id"] not in ids or dice.change(0.5)) else uid


def _leaves(value: Json) -> Iterator[tuple[str, Json]]:
    """Yields what a value of Cedar's JSON is made of, but for entities and booleans, each beside its type."""
    match value:
        case {"__extn": {"fn": str(name)}}:
            yield name, value
        case {"__entity": _} | {"type": str(), "id": str()} | bool():
            return
        case dict():
            yield from (leaf for member in value.values() for leaf in _leaves(member))
        case list():
            yield from (leaf for member in value for leaf in _leaves(member))
        case _:
            yield type(value).__name__, value


def _literals(node: object) -> Iterator[tuple[str, Json]]:
    """Yields what a part of a policy names, and the numbers beside a number."""
    match node:
        case pst.LongLit(value):
            yield from (("int", number) for number in (value - 1, value, value + 1))
        case pst.StringLit(text):
            yield "str", text
        case pst.UnaryOp(op, pst.StringLit(text)) if op in EXTENSIONS:
            yield op, {"__extn": {"fn": op, "arg": text}}
        case _:
            pass


def _renamed(value: Json, names: dict[tuple[str, str], str]) -> Json:
    match value:
        case {"type": str(type_), "id": str(id_)}:
            return {"type": type_, "id": names.get((type_, id_), id_)}
        case dict():
            return {name: _renamed(member, names) for name, member in value.items()}
        case list():
            return [_renamed(member, names) for member in value]
        case _:
            return value
