"""Idle policies: those that change no decision, because of what they say themselves or of what another one says.

Found are those that can be seen from scopes and conjuncts alone; what it takes a proof to see is not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from cedarpy import pst

from gateway.model.entity import EntityUid
from gateway.policy.bundle import Bundle
from gateway.policy.finding import Finding

Groups = Mapping[EntityUid, frozenset[EntityUid]]


def idle(bundle: Bundle) -> Iterator[Finding]:
    """Yields each policy that never applies, that another of its effect makes idle, or whose every permission is forbidden."""
    groups = bundle.types.groups
    near: dict[pst.ActionConstraint, list[str]] = {}
    for id_, tree in bundle.trees.items():
        near.setdefault(tree.action, []).append(id_)
    broad = [id_ for action, ids in near.items() if not isinstance(action, pst.ActionEq) for id_ in ids]
    for id_, tree in bundle.trees.items():
        others = [*near[tree.action], *broad] if isinstance(tree.action, pst.ActionEq) else broad
        if message := _why_idle(tree, (bundle.trees[other] for other in others if other != id_), groups):
            info = bundle.policies[id_]
            yield Finding(info.file, info.line, id_, message)


def covers(wide: pst.Template, narrow: pst.Template, groups: Groups) -> bool:
    """Whether one policy is seen to apply wherever another does: its scope is no narrower, and it asks nothing more."""
    return (
        _scope_covers(wide.principal, narrow.principal)
        and _scope_covers(wide.resource, narrow.resource)
        and _action_covers(wide.action, narrow.action, groups)
        and conjuncts(wide) <= conjuncts(narrow)
    )


@lru_cache(maxsize=8_192)
def conjuncts(policy: pst.Template) -> frozenset[pst.Expr]:
    """Returns what all has to be true for a policy to apply within its scope."""
    found: set[pst.Expr] = set()
    waiting: list[pst.Expr] = [c.expr if isinstance(c, pst.When) else pst.UnaryOp("not", c.expr) for c in policy.clauses]
    while waiting:
        match waiting.pop():
            case pst.BinaryOp("and", left, right):
                waiting += (left, right)
            case pst.UnaryOp("not", pst.BinaryOp("or", left, right)):
                waiting += (pst.UnaryOp("not", left), pst.UnaryOp("not", right))
            case pst.UnaryOp("not", pst.UnaryOp("not", inner)):
                waiting.append(inner)
            case pst.UnaryOp("not", pst.BoolLit(value)):
                waiting.append(pst.BoolLit(not value))
            case pst.BoolLit(True):
                pass
            case other:
                found.add(other)
    return frozenset(found)


def _why_idle(policy: pst.Template, others: Iterator[pst.Template], groups: Groups) -> str | None:
    if _never(policy):
        return "never applies: its conditions cannot all be true"
    return next((message for other in others if (message := _shadow(other, policy, groups))), None)


def _never(policy: pst.Template) -> bool:
    asked = conjuncts(policy)
    return any(term == pst.BoolLit(False) or pst.UnaryOp("not", term) in asked for term in asked)


def _shadow(other: pst.Template, policy: pst.Template, groups: Groups) -> str | None:
    if not covers(other, policy, groups):
        return None
    if other.effect != policy.effect:
        return f"permits nothing: `{other.id}` forbids all of it" if policy.effect == "permit" else None
    if covers(policy, other, groups) and policy.id < other.id:  # of two that say the same, the later is the idle one
        return None
    return f"changes nothing: `{other.id}` applies wherever it does"


def _scope_covers(wide: pst.PrincipalOrResourceConstraint, narrow: pst.PrincipalOrResourceConstraint) -> bool:
    match wide, narrow:
        case (pst.ScopeAny(), _):
            return True
        case (pst.ScopeIs(wanted), pst.ScopeIs(named) | pst.ScopeIsIn(named, _)):
            return wanted == named
        case (pst.ScopeIs(wanted), pst.ScopeEq(pst.EntityUid(named, _))):
            return wanted == named
        case (pst.ScopeIn(group), pst.ScopeIsIn(_, within) | pst.ScopeEq(within)):
            return group == within
        case _:
            return wide == narrow


def _action_covers(wide: pst.ActionConstraint, narrow: pst.ActionConstraint, groups: Groups) -> bool:
    """Whether every action that one constraint matches is matched by another."""
    if isinstance(wide, pst.ScopeAny) or wide == narrow:
        return True
    if isinstance(narrow, pst.ScopeAny) or isinstance(wide, pst.ActionEq):
        return False
    named = (narrow.entity,) if isinstance(narrow, pst.ActionEq) else narrow.entities
    within = {_uid(entity) for entity in wide.entities}
    return all(not within.isdisjoint(groups.get(_uid(entity), ())) for entity in named)


def _uid(entity: pst.EntityUid) -> EntityUid:
    return EntityUid(str(entity.type), entity.id)
