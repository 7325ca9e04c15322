"""Residuals: what Cedar leaves of a policy when the resource is unknown, as conditions on the resource.

Policies are read in Cedar's JSON. In a residual, what does not mention the row is a value, except what errs: that stands as
it was written. In a policy that nobody is asked about yet, it may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gateway.model.condition import FALSE, TRUE, Compare, Condition, Empty, Equals, Has, HeldBy, Like, Order, Same, negation
from gateway.model.entity import EntityUid
from gateway.policy import columns as c
from gateway.policy import truth as t
from gateway.policy.columns import Column, Fixed, Node, refuse
from gateway.policy.columns import Untranslatable as Untranslatable
from gateway.policy.truth import Truth
from gateway.policy.vocabulary import Vocabulary

#: An order of Long or decimal, and the one that is the same with its sides exchanged.
ORDERS: dict[str, tuple[str, Order, Order]] = {
    "<": ("Long", "<", ">"),
    "<=": ("Long", "<=", ">="),
    ">": ("Long", ">", "<"),
    ">=": ("Long", ">=", "<="),
    "lessThan": ("decimal", "<", ">"),
    "lessThanOrEqual": ("decimal", "<=", ">="),
    "greaterThan": ("decimal", ">", "<"),
    "greaterThanOrEqual": ("decimal", ">=", "<="),
}
HOLDS = ("contains", "containsAll", "containsAny")
BOOLEAN = frozenset(("!", "&&", "||", "==", "!=", "in", "is", "has", "like", "isEmpty", *ORDERS, *HOLDS))


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads policies about rows of one resource type.

    `ancestors` are those of an entity of the slice. `open` is the truth of what does not mention the row and is no value:
    an error in a residual, anything in a policy that nobody is asked about; for that one, there are no `ancestors`.
    """

    vocabulary: Vocabulary
    resource: str
    ancestors: Callable[[EntityUid], frozenset[EntityUid]] | None = None
    open: Truth = t.ERRS

    def policy(self, policy: Node) -> Truth:
        """Returns when a policy applies, its scope of the resource included; raises `Untranslatable`."""
        nodes = list(_scope(policy["resource"]))
        for condition in policy["conditions"]:
            body = condition["body"]
            nodes.append(body if condition["kind"] == "when" else {"!": {"arg": body}})
        return self._all(nodes, frozenset())

    def truth(self, node: Node, present: frozenset[str]) -> Truth:
        """Returns when a boolean is true; `present` are optional attributes that are known to be there."""
        [(op, body)] = node.items()
        match op:
            case "Value" if isinstance(body, bool):
                return t.known(body)
            case "!":
                return t.reverse(self.truth(body["arg"], present))
            case "&&":
                return self._all((body["left"], body["right"]), present)
            case "||":
                left = self.truth(body["left"], present)
                return left if left.always else t.either(left, self.truth(body["right"], present))
            case "if-then-else":
                return self._chosen(body, present)
            case _:
                return self._atom(op, body, node, present) if c.mentions_row(node) else self.open

    def _all(self, nodes: Sequence[Node], present: frozenset[str]) -> Truth:
        """The conjunction; what follows a term that is false of every row is not looked at, as Cedar does not."""
        result = t.known(True)
        for place, node in enumerate(nodes, start=1):
            result = t.both(result, self.truth(node, present))
            if result.never or place == len(nodes):
                break
            present |= _shown(node)
        return result

    def _chosen(self, body: Node, present: frozenset[str]) -> Truth:
        test = self.truth(body["if"], present)
        shown = present | _shown(body["if"])
        if test.always:
            return self.truth(body["then"], shown)
        if test.never:
            return self.truth(body["else"], present)
        return t.chosen(test, self.truth(body["then"], shown), self.truth(body["else"], present))

    def _atom(self, op: str, body: Any, node: Node, present: frozenset[str]) -> Truth:
        match op:
            case ".":
                read = self._column(node, present)
                return _reading(Equals(read.name, True), read)
            case "has":
                return self._has(body)
            case "is":
                return self._is(body, present)
            case "==":
                return self._equal(body["left"], body["right"], present)
            case "!=":
                return t.reverse(self._equal(body["left"], body["right"], present))
            case "like":
                read = self._column(body["left"], present)
                return _reading(Like(read.name, _pieces(body["pattern"])), read)
            case "isEmpty":
                read = self._column(body["arg"], present)
                return _reading(Empty(read.name), read)
            case "in":
                return self._within(body["left"], body["right"], present)
        if op in HOLDS:
            return self._holds(op, body["left"], body["right"], present)
        if op in ORDERS:
            left, right = body if isinstance(body, list) else (body["left"], body["right"])
            return self._compare(op, left, right, present)
        return refuse(f"`{op}`")

    def _has(self, body: Node) -> Truth:
        if not c.is_row(body["left"]):
            return refuse(f"`has {body['attr']}` of another entity or record than the row")
        kind = self.vocabulary.entities[self.resource].attributes.get(body["attr"])
        if kind is None or not kind.optional:
            return t.known(kind is not None)
        return t.sure(Has(body["attr"]))

    def _is(self, body: Node, present: frozenset[str]) -> Truth:
        read = self._column(body["left"], present)
        same = _reading(TRUE if read.kind.name == body["entity_type"] else FALSE, read)
        if "in" not in body or same.never:
            return same
        return t.both(same, self._within(body["left"], body["in"], present))

    def _equal(self, left: Node, right: Node, present: frozenset[str]) -> Truth:
        if self._is_boolean(left) or self._is_boolean(right):
            return t.alike(self.truth(left, present), self.truth(right, present))
        read, value, _ = self._sides(left, right, present)
        if isinstance(value, Column):
            alike = _single(read).kind.name == _single(value).kind.name
            return _reading(Same(read.name, value.name) if alike else FALSE, read, value)
        return self._given(value, lambda values: c.equals_any(read, values), _single(read))

    def _is_boolean(self, node: Node) -> bool:
        """Whether a side of `==` is seen to be a boolean; the two sides are of one type."""
        match node:
            case {"Value": value}:
                return isinstance(value, bool)
            case {"if-then-else": {"then": then, "else": other}}:
                return self._is_boolean(then) or self._is_boolean(other)
            case {".": {"left": left, "attr": name}} if c.is_row(left):
                kind = self.vocabulary.entities[self.resource].attributes.get(name)
                return kind is not None and kind.name == "Bool" and not kind.many
            case _:
                return not BOOLEAN.isdisjoint(node)

    def _compare(self, op: str, left: Node, right: Node, present: frozenset[str]) -> Truth:
        type_, order, exchanged = ORDERS[op]
        read, value, turned = self._sides(left, right, present)
        if isinstance(value, Column):
            return refuse("the order of two attributes")
        if read.kind.many or read.kind.name != type_:
            return refuse(f"the order of `{read.name}`")
        return self._given(value, lambda values: _ordered(read, exchanged if turned else order, values), read)

    def _holds(self, op: str, left: Node, right: Node, present: frozenset[str]) -> Truth:
        read, value, turned = self._sides(left, right, present)
        if isinstance(value, Column):
            return refuse(f"`{op}` of two attributes")
        if op == "contains" and turned:
            return self._given(value, lambda values: c.equals_any(read, values), _single(read))
        if op == "containsAll" and turned:
            return self._given(value, lambda values: HeldBy(read.name, c.fitting(read, values)), read)
        held = c.holds_all if op == "containsAll" else c.holds_any
        return self._given(value, lambda values: held(read, values), read)

    def _within(self, left: Node, right: Node, present: frozenset[str]) -> Truth:
        read, value, turned = self._sides(left, right, present)
        if isinstance(value, Column):
            return refuse("`in` of two attributes")
        if turned:
            return self._given(self._above(value), lambda values: c.equals_any(read, values), _single(read))
        self._check_reach(_single(read))
        return self._given(value, lambda values: self._below(read, values), read)

    def _above(self, values: Fixed | None) -> Fixed | None:
        """Entities and all that they are in, None when that is not known."""
        if values is None or self.ancestors is None:
            return None
        return Fixed(tuple(sorted({above for uid in _entities(values) for above in (uid, *self.ancestors(uid))})))

    def _below(self, read: Column, groups: Fixed) -> Condition:
        """An attribute, or the row itself, is one of some entities or in one: a condition for each of their types."""
        columns = [read]
        if read.name == c.ITSELF:
            attributes = self.vocabulary.entities[self.resource].attributes
            columns += [Column(name, attributes[name]) for type_, name in self._parents().items() if type_ != self.resource]
        return t.some(*(c.equals_any(column, groups) for column in columns))

    def _check_reach(self, read: Column) -> None:
        """What the entity is in has to be known from the row alone: for itself by its attributes, for others not at all."""
        if read.name == c.ITSELF:
            self._parents()
        elif self.vocabulary.above(read.kind.name):
            refuse(f"what the entity `{read.name}` is in")

    def _parents(self) -> dict[str, str]:
        """The attribute that names the parent of each type.

        INVARIANT: a row is in the entities that its attributes of these types name, and in no others.
        """
        shape = self.vocabulary.entities[self.resource]
        found: dict[str, str] = {}
        for type_ in shape.parents:
            names = [name for name, kind in shape.attributes.items() if kind.name == type_ and not (kind.many or kind.optional)]
            if len(names) != 1 or self.vocabulary.above(type_):
                refuse(f"what a row is in as a member of `{type_}`")
            found[type_] = names[0]
        return found

    def _given(self, value: Fixed | None, made: Callable[[Fixed], Condition], read: Column) -> Truth:
        # Where nobody is asking yet, a value is not known but will be one: it weighs what a condition does.
        return t.both(self.open, _reading(Has(read.name), read)) if value is None else _reading(made(value), read)

    def _sides(self, left: Node, right: Node, present: frozenset[str]) -> tuple[Column, Column | Fixed | None, bool]:
        """An attribute, what it is held against, and whether it stands on the right. At least one side mentions the row."""
        if not c.mentions_row(left):
            return self._column(right, present), c.fixed(left), True
        return self._column(left, present), self._column(right, present) if c.mentions_row(right) else c.fixed(right), False

    def _column(self, node: Node, present: frozenset[str]) -> Column:
        return c.column(node, self.vocabulary, self.resource, present)


def _scope(constraint: Node) -> Iterable[Node]:
    """The scope of the resource as booleans."""
    row = c.ROW[0]
    match constraint:
        case {"op": "All"}:
            return ()
        case {"op": "==", "entity": uid}:
            return ({"==": {"left": row, "right": {"Value": {"__entity": uid}}}},)
        case {"op": "in", "entity": uid} | {"op": "is", "in": {"entity": uid}}:
            within: Node = {"in": {"left": row, "right": {"Value": {"__entity": uid}}}}
            named = constraint.get("entity_type")
            return (within,) if named is None else ({"is": {"left": row, "entity_type": named}}, within)
        case {"op": "is", "entity_type": named}:
            return ({"is": {"left": row, "entity_type": named}},)
        case _:
            return refuse("a scope of the resource that is not known")


def _reading(condition: Condition, *read: Column) -> Truth:
    """The truth of a condition on attributes, each of which has to be there for it to be either."""
    loose = [Has(column.name) for column in read if column.loose]
    if not loose:
        return t.sure(condition)
    return Truth(t.every(*loose, condition), t.every(*loose, negation(condition)), False)


def _ordered(read: Column, order: Order, values: Fixed) -> Condition:
    match c.fitting(read, values):
        case (int() | Decimal() as value,):
            return Compare(read.name, order, value)
        case _:
            return refuse(f"the order of `{read.name}` and something else")


def _entities(values: Fixed) -> list[EntityUid]:
    return [value for value in values.values if isinstance(value, EntityUid)]


def _single(read: Column) -> Column:
    return refuse(f"a comparison of the set `{read.name}`") if read.kind.many else read


def _shown(node: Node) -> frozenset[str]:
    """The attributes that are there when a boolean is true."""
    match node:
        case {"has": {"left": left, "attr": name}} if c.is_row(left):
            return frozenset((name,))
        case {"&&": {"left": left, "right": right}}:
            return _shown(left) | _shown(right)
        case _:
            return frozenset()


def _pieces(pattern: list[Any]) -> tuple[str, ...]:
    pieces = [""]
    for element in pattern:
        if element == "Wildcard":
            pieces.append("")
        else:
            pieces[-1] += element["Literal"]
    return tuple(pieces)
