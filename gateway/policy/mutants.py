"""Mutants: what a policy would be with one small mistake in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import cedarpy
from cedarpy import pst

from gateway.policy import grants, partition
from gateway.policy.bundle import Bundle

FLIPS: dict[str, pst.BinaryOpName] = {
    "eq": "not_eq",
    "not_eq": "eq",
    "less": "less_eq",
    "less_eq": "less",
    "greater": "greater_eq",
    "greater_eq": "greater",
    "decimal_less_than": "decimal_less_eq",
    "decimal_less_eq": "decimal_less_than",
    "decimal_greater": "decimal_greater_eq",
    "decimal_greater_eq": "decimal_greater",
    "and": "or",
    "or": "and",
    "contains_all": "contains_any",
    "contains_any": "contains_all",
}
TRUE = pst.BoolLit(True)
ILL_TYPED = pst.When(pst.BinaryOp("less", pst.StringLit(""), pst.LongLit(0)))
Kind = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A policy with one change; `tree` is None when the change is that it is gone.

    `id` is that of the policy, what was changed, and which of such changes it is, from 1: it stays while the policy does.
    """

    id: str
    policy_id: str
    tree: pst.Template | None


def mutants(bundle: Bundle, policy_id: str) -> Iterator[Mutant]:
    """Yields every mutant of a policy."""
    tree = bundle.trees[policy_id]
    counted: Counter[str] = Counter()
    for change, changed in (("dropped", None), *_widened(bundle, tree), *_changed(tree)):
        counted[change] += 1
        yield Mutant(f"{policy_id}~{change}~{counted[change]}", policy_id, changed)


def could_matter(bundle: Bundle, mutant: Mutant) -> bool:
    """Returns whether some valid request could tell a mutant from its policy; False only when the schema rules it out.

    A scope can be wider in vain: where an action has resources of one type, or where no entity of another type could meet
    the clauses.
    """
    tree = bundle.trees[mutant.policy_id]
    if mutant.tree is None or mutant.tree.clauses != tree.clauses:
        return True
    return _names_an_entity(mutant.tree) != _names_an_entity(tree) or _could_hold(bundle, tree, mutant.tree)


def _changed(tree: pst.Template) -> Iterator[tuple[str, pst.Template]]:
    for at, clause in enumerate(tree.clauses):
        for change, expr in (*_negated(clause.expr), *_variants(clause.expr)):
            clauses = (*tree.clauses[:at], replace(clause, expr=expr), *tree.clauses[at + 1 :])
            yield change, replace(tree, clauses=clauses)


def _variants(expr: Any) -> Iterator[tuple[str, Any]]:
    """Yields an expression with one change in it, wherever it is."""
    yield from _here(expr)
    for field in fields(expr):
        value = getattr(expr, field.name)
        if isinstance(value, tuple):
            for at, item in enumerate(value):
                for change, variant in _variants(item) if isinstance(item, pst.Expr) else ():
                    yield change, replace(expr, **{field.name: (*value[:at], variant, *value[at + 1 :])})
        elif isinstance(value, pst.FrozenMap):
            for key, item in value.items():
                for change, variant in _variants(item):
                    yield change, replace(expr, **{field.name: pst.FrozenMap({**value, key: variant})})
        elif isinstance(value, pst.Expr):
            for change, variant in _variants(value):
                yield change, replace(expr, **{field.name: variant})


def _here(expr: pst.Expr) -> Iterator[tuple[str, pst.Expr]]:
    match expr:
        case pst.BinaryOp("and" | "or" as op, left, right):
            yield f"{op}-to-{FLIPS[op]}", replace(expr, op=FLIPS[op])
            yield f"{op}-left-out", right
            yield f"{op}-left-out", left
            for change, term in _negated(left):
                yield change, replace(expr, left=term)
            for change, term in _negated(right):
                yield change, replace(expr, right=term)
        case pst.BinaryOp("contains", held, _):
            yield "contains-to-not-empty", pst.UnaryOp("not", pst.UnaryOp("is_empty", held))
        case pst.BinaryOp("has_tag") | pst.HasAttr():
            yield "has-to-true", TRUE
        case pst.BinaryOp(op) if op in FLIPS:
            yield f"{op}-to-{FLIPS[op]}", replace(expr, op=FLIPS[op])
        case pst.Set(elements) if len(elements) > 1:
            for at in range(len(elements)):
                yield "element-left-out", pst.Set((*elements[:at], *elements[at + 1 :]))
        case pst.IfThenElse(test, then, other):
            yield "branches-exchanged", pst.IfThenElse(test, other, then)
        case pst.BoolLit(value):
            yield "boolean-flipped", pst.BoolLit(not value)
        case _:
            pass


def _negated(term: pst.Expr) -> Iterator[tuple[str, pst.Expr]]:
    """Yields the negation of a term that is no chain, and for which flipping its comparison does not say the same."""
    match term:
        case pst.BinaryOp("and" | "or" | "eq" | "not_eq"):
            pass
        case pst.UnaryOp("not", inner):
            yield "not-taken-away", inner
        case _:
            yield "negated", pst.UnaryOp("not", term)


def _widened(bundle: Bundle, tree: pst.Template) -> Iterator[tuple[str, pst.Template]]:
    for principal in _wider(tree.principal):
        yield "any-principal", replace(tree, principal=principal)
    for resource in _wider(tree.resource):
        yield "any-resource", replace(tree, resource=resource)
    for change, action in _wider_actions(bundle, tree.action):
        yield change, replace(tree, action=action)


def _wider(scope: pst.PrincipalOrResourceConstraint) -> Iterator[pst.PrincipalOrResourceConstraint]:
    """Yields a scope without its type, and without its entity."""
    match scope:
        case pst.ScopeIsIn(type_, entity):
            yield pst.ScopeIs(type_)
            yield pst.ScopeIn(entity)
        case pst.ScopeAny():
            pass
        case _:
            yield pst.ScopeAny()


def _names_an_entity(tree: pst.Template) -> tuple[bool, bool]:
    unnamed = (pst.ScopeAny, pst.ScopeIs)
    return not isinstance(tree.principal, unnamed), not isinstance(tree.resource, unnamed)


def _could_hold(bundle: Bundle, tree: pst.Template, widened: pst.Template) -> bool:
    """Whether a policy with a wider scope could be true, or err, where the scope of its own does not reach.

    Cedar's validator gives what can never be true a type of its own, and does not look at what follows it: an ill-typed
    clause at the end is found only where all before it could be true.
    """
    actions: dict[tuple[str, str], list[pst.EntityUid]] = {}
    for action, *types in sorted(_reach(bundle, widened) - _reach(bundle, tree)):
        uid = bundle.action_uids[action]
        actions.setdefault((types[0], types[1]), []).append(pst.EntityUid(_type(uid.type), uid.id))
    tried: dict[str, pst.Template] = {}
    for (principal, resource), named in actions.items():
        id_ = str(len(tried))
        tried[id_] = replace(
            widened,
            id=id_,
            principal=pst.ScopeIs(_type(principal)),
            action=pst.ActionIn(tuple(named)),
            resource=pst.ScopeIs(_type(resource)),
            clauses=(
                *_within("principal", widened.principal),
                *_within("resource", widened.resource),
                *widened.clauses,
                ILL_TYPED,
            ),
            annotations={},
        )
    return bool(tried) and not cedarpy.validate_policies(grants.as_text(tried), bundle.schema).validation_passed


def _within(name: pst.VarName, scope: pst.PrincipalOrResourceConstraint) -> Iterator[pst.Clause]:
    """What a scope says of an entity, as a clause: in a scope, what can never be true is refused."""
    match scope:
        case pst.ScopeIn(pst.EntityUid() as uid) | pst.ScopeIsIn(_, pst.EntityUid() as uid):
            yield pst.When(pst.BinaryOp("in", pst.Var(name), pst.EntityLit(uid)))
        case pst.ScopeEq(pst.EntityUid() as uid):
            yield pst.When(pst.BinaryOp("eq", pst.Var(name), pst.EntityLit(uid)))
        case _:
            pass


def _type(name: str) -> pst.EntityType:
    *namespace, basename = name.split("::")
    return pst.EntityType(basename, tuple(namespace))


def _wider_actions(bundle: Bundle, action: pst.ActionConstraint) -> Iterator[tuple[str, pst.ActionConstraint]]:
    """Yields the groups of a single action; any action for one without groups, and for a list or a group."""
    match action:
        case pst.ActionEq(entity):
            within = bundle.types.groups[bundle.action_uids[entity.id]]
            groups = sorted(uid for uid in within if uid.id != entity.id)
            for group in groups:
                yield f"action-in-{group.id}", pst.ActionIn((pst.EntityUid(entity.type, group.id),))
            if not groups:
                yield "any-action", pst.ScopeAny()
        case pst.ActionIn():
            yield "any-action", pst.ScopeAny()
        case _:
            pass


def _reach(bundle: Bundle, tree: pst.Template) -> frozenset[Kind]:
    """The kinds of valid requests that the types in a scope let through."""
    members = partition.members({tree.id: tree}, bundle.action_uids, bundle.types.groups)
    principals, resources = bundle.vocabulary.principals, bundle.vocabulary.resources
    return frozenset(
        (action, principal, resource)
        for action, ids in members.items()
        if ids and action in bundle.actions
        for principal in _left(tree.principal, principals.get(action, frozenset()))
        for resource in _left(tree.resource, resources.get(action, frozenset()))
    )


def _left(scope: pst.PrincipalOrResourceConstraint, types: frozenset[str]) -> frozenset[str]:
    match scope:
        case pst.ScopeIs(type_) | pst.ScopeIsIn(type_, _):
            return types & {str(type_)}
        case pst.ScopeEq(pst.EntityUid(type_, _)):
            return types & {str(type_)}
        case _:
            return types
