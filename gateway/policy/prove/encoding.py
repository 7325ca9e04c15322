"""Cedar as terms of the solver: for each policy, when it is satisfied and when it errs."""

from __future__ import annotations

from dataclasses import dataclass

import z3
from cedarpy import pst

from gateway.model.entity import EntityUid
from gateway.policy.prove import literals, values
from gateway.policy.prove.logic import FALSE, TRUE, Term, always, chosen, every, known, never, no, some
from gateway.policy.prove.schema import Unprovable
from gateway.policy.prove.symbols import LONGS, Record, Symbols
from gateway.policy.prove.values import Items, Value
from gateway.policy.schema import RecordOf

ORDERS = {
    "less": ("less", False), "less_eq": ("greater", True), "greater": ("greater", False), "greater_eq": ("less", True),
    "decimal_less_than": ("less", False), "decimal_less_eq": ("greater", True),
    "decimal_greater": ("greater", False), "decimal_greater_eq": ("less", True),
}  # fmt: skip
SUMS = {"add": 1, "offset": 1, "sub": -1, "duration_since": -1}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an expression comes to, and when it does not err; where it errs, the value means nothing."""

    value: Value
    sure: Term = TRUE


@dataclass(frozen=True, slots=True)
class Judged:
    """When a policy is satisfied, and when it errs; never both."""

    satisfied: Term
    errs: Term


class Encoder:
    """Encodes for one kind of question: one action, between two types."""

    def __init__(
        self,
        symbols: Symbols,
        principal: str,
        action: EntityUid,
        resource: str,
        context: RecordOf,
    ) -> None:
        self._symbols = symbols
        self._variables: dict[str, Value] = {
            "principal": symbols.variable("principal", principal),
            "action": action,
            "resource": symbols.variable("resource", resource),
            "context": Record("context", (), context),
        }

    def policy(self, tree: pst.Template) -> Judged:
        """Returns when a policy is satisfied and when it errs; raises `Unprovable`."""
        terms = [*_scope("principal", tree.principal), *_action(tree.action), *_scope("resource", tree.resource)]
        terms += [c.expr if isinstance(c, pst.When) else pst.UnaryOp("not", c.expr) for c in tree.clauses]
        result = Outcome(TRUE)
        for term in terms:
            result = self._both(result, term)
        return Judged(every(result.sure, result.value), no(result.sure))

    def _of(self, expr: pst.Expr) -> Outcome:
        match expr:
            case pst.Var(name):
                return Outcome(self._variables[name])
            case pst.BoolLit(value):
                return Outcome(known(value))
            case pst.LongLit(value):
                return Outcome(z3.IntVal(value))
            case pst.StringLit(value):
                return Outcome(self._symbols.text(value))
            case pst.EntityLit(uid):
                return Outcome(self._entity(uid))
            case pst.GetAttr(base, attribute):
                return self._read(base, attribute)
            case pst.HasAttr(base, attributes):
                return self._has(base, attributes)
            case pst.Like(base, pattern):
                held = self._of(base)
                return Outcome(self._symbols.like(held.value, pattern), held.sure)
            case pst.Is(base, type_, within):
                held = self._of(base)
                is_ = Outcome(known(values.type_of(held.value) == str(type_)), held.sure)
                return is_ if within is None else self._both(is_, pst.BinaryOp("in", base, within))
            case pst.IfThenElse(test, then, other):
                return self._chosen(self._of(test), then, other)
            case pst.Set(elements):
                found = [self._of(element) for element in elements]
                return Outcome(Items(tuple(item.value for item in found)), every(*(item.sure for item in found)))
            case pst.UnaryOp(op, arg):
                return self._unary(op, arg)
            case pst.BinaryOp(op, left, right):
                return self._binary(op, left, right)
            case pst.Record():
                raise Unprovable("a record that is written out")
            case _:
                raise Unprovable(f"`{type(expr).__name__}`")

    def _entity(self, uid: pst.EntityUid) -> Value:
        named = EntityUid(str(uid.type), uid.id)
        return named if named.type == "Action" else self._symbols.entity(named)

    def _unary(self, op: str, arg: pst.Expr) -> Outcome:
        match op, arg:
            case "not", _:
                held = self._of(arg)
                return Outcome(no(held.value), held.sure)
            case "neg", _:
                held = self._of(arg)
                return _within_longs(-held.value, held.sure)
            case "is_empty", _:
                held = self._of(arg)
                return Outcome(FALSE if isinstance(held.value, Items) else held.value == values.empty(held.value), held.sure)
            case "decimal", pst.StringLit(text):
                return Outcome(z3.IntVal(literals.amount(text)))
            case "datetime", pst.StringLit(text):
                return Outcome(z3.IntVal(literals.moment(text)))
            case "duration", pst.StringLit(text):
                return Outcome(z3.IntVal(literals.length(text)))
            case _:
                raise Unprovable(f"`{op}`")

    def _binary(self, op: str, left: pst.Expr, right: pst.Expr) -> Outcome:
        one = self._of(left)
        if op == "and":
            return self._both(one, right)
        if op == "or":
            return _reversed(self._both(_reversed(one), pst.UnaryOp("not", right)))
        if op in ("get_tag", "has_tag"):
            _refuse_fixed(left)
        two = self._of(right)
        sure = every(one.sure, two.sure)
        held, other = one.value, two.value
        if op in ORDERS:
            order, turned = ORDERS[op]
            term = held < other if order == "less" else held > other
            return Outcome(no(term) if turned else term, sure)
        if op in SUMS:
            return _within_longs(held + SUMS[op] * other, sure)
        match op:
            case "eq" | "not_eq":
                equal = values.equal(held, other)
                return Outcome(equal if op == "eq" else no(equal), sure)
            case "in":
                return Outcome(self._within(held, other), sure)
            case "contains":
                return Outcome(values.holds(held, other), sure)
            case "contains_all":
                return Outcome(values.holds_all(held, other), sure)
            case "contains_any":
                return Outcome(values.holds_any(held, other), sure)
            case "has_tag":
                return Outcome(self._symbols.has_tag(held, other), sure)
            case "get_tag":
                return Outcome(self._symbols.get_tag(held, other), every(sure, self._symbols.has_tag(held, other)))
            case _:
                raise Unprovable(f"`{op}`")

    def _both(self, one: Outcome, right: pst.Expr) -> Outcome:
        """The conjunction: what follows a term that types alone make false is not looked at, as Cedar does not."""
        if never(one.value):
            return one
        two = self._of(right)
        return Outcome(every(one.value, two.value), every(one.sure, some(no(one.value), two.sure)))

    def _chosen(self, test: Outcome, then: pst.Expr, other: pst.Expr) -> Outcome:
        if always(test.value) or never(test.value):
            taken = self._of(then if always(test.value) else other)
            return Outcome(taken.value, every(test.sure, taken.sure))
        one, two = self._of(then), self._of(other)
        if any(isinstance(side.value, Record | EntityUid) for side in (one, two)):
            raise Unprovable("a choice between records or actions")
        sure = every(test.sure, chosen(test.value, one.sure, two.sure))
        return Outcome(chosen(test.value, values.term(one.value), values.term(two.value)), sure)

    def _record(self, expr: pst.Expr) -> tuple[Record, Term]:
        held = self._of(expr)
        if isinstance(held.value, Record):
            return held.value, held.sure
        _refuse_fixed(expr)
        return self._symbols.record(held.value), held.sure

    def _read(self, base: pst.Expr, name: str) -> Outcome:
        record, sure = self._record(base)
        if name not in record.type.fields:
            raise Unprovable(f"`{name}`, which `{record.path}` does not have")
        return Outcome(self._symbols.get(record, name), every(sure, self._symbols.has(record, name)))

    def _has(self, base: pst.Expr, names: tuple[str, ...]) -> Outcome:
        record, sure = self._record(base)
        result = Outcome(self._symbols.has(record, names[0]), sure)
        if len(names) == 1:
            return result
        return self._both(result, pst.HasAttr(pst.GetAttr(base, names[0]), names[1:]))

    def _within(self, held: Value, group: Value) -> Term:
        if isinstance(group, Items):
            return some(*(self._within(held, item) for item in group.items))
        if isinstance(held, EntityUid) or isinstance(group, EntityUid):
            return known(isinstance(held, EntityUid) and group in self._symbols.schema.groups[held])
        if z3.is_array(group):
            if str(group.sort().domain()) in self._symbols.schema.above(str(held.sort())):
                raise Unprovable("`in` of a set that is not written out")
            return values.holds(group, held)
        return self._symbols.within(held, group)


def _scope(variable: pst.VarName, constraint: pst.PrincipalOrResourceConstraint) -> list[pst.Expr]:
    match constraint:
        case pst.ScopeEq(pst.EntityUid() as uid):
            return [pst.BinaryOp("eq", pst.Var(variable), pst.EntityLit(uid))]
        case pst.ScopeIn(pst.EntityUid() as uid):
            return [pst.BinaryOp("in", pst.Var(variable), pst.EntityLit(uid))]
        case pst.ScopeIs(type_):
            return [pst.Is(pst.Var(variable), type_, None)]
        case pst.ScopeIsIn(type_, pst.EntityUid() as uid):
            return [pst.Is(pst.Var(variable), type_, pst.EntityLit(uid))]
        case _:
            return []


def _action(constraint: pst.ActionConstraint) -> list[pst.Expr]:
    match constraint:
        case pst.ActionEq(uid):
            return [pst.BinaryOp("eq", pst.Var("action"), pst.EntityLit(uid))]
        case pst.ActionIn(uids):
            return [pst.BinaryOp("in", pst.Var("action"), pst.Set(tuple(pst.EntityLit(uid) for uid in uids)))]
        case _:
            return []


def _refuse_fixed(expr: pst.Expr) -> None:
    """An entity that a policy names need not be in the store: Cedar errs over it, or says nothing."""
    match expr:
        case pst.EntityLit():
            raise Unprovable("an attribute or a tag of an entity that is named")
        case pst.IfThenElse(_, then, other):
            _refuse_fixed(then)
            _refuse_fixed(other)
        case _:
            pass


def _reversed(outcome: Outcome) -> Outcome:
    return Outcome(no(outcome.value), outcome.sure)


def _within_longs(value: Term, sure: Term) -> Outcome:
    return Outcome(value, every(sure, value >= LONGS[0], value <= LONGS[1]))
