"""Grants on memory as policies: built from typed values, one permit a grant and one forbid over all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import cedarpy
from cedarpy import pst

from gateway.model.decision import Reason
from gateway.model.entity import EntityUid
from gateway.model.memory import MemoryGrant

#: What grants are about: who holds them, on what, and the group of actions that nothing else opens to their holder.
HOLDER, ROW, GROUP = "Connection", "Memory", "memory_rows"
FORBID = "guardrails/memory/grant"
PERMITTED = "A person granted this connection rows like this one."
FORBIDDEN = "No grant of this connection covers this row."
#: Ids that no policy of a file may bear: what a grant compiles to is found by them.
RESERVED = re.compile(rf"{FORBID}|grant/[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}")

PRINCIPAL, RESOURCE = pst.Var("principal"), pst.Var("resource")


def compile_grants(connection: EntityUid, grants: Iterable[MemoryGrant]) -> dict[str, pst.Template]:
    """Returns the policies of a connection's grants by id; those of another connection are left out.

    A permit a grant, and a forbid on every row that none of them covers, so that what else permits opens nothing. Raises
    `ValueError` for a grant without an action or a tier, which could allow nothing.
    """
    own = sorted((grant for grant in grants if grant.connection_id == connection.id), key=lambda grant: grant.id)
    conditions = {grant: _condition(grant) for grant in own}
    holder = pst.ScopeEq(_uid(connection.type, connection.id))
    permits = [
        _policy(f"grant/{grant.id}", "permit", holder, _actions(grant), (pst.When(condition),))
        for grant, condition in conditions.items()
    ]
    covered = [_and(_action_in(_actions(grant)), condition) for grant, condition in conditions.items()]
    unless = (pst.Unless(_joined("or", covered)),) if covered else ()
    forbid = _policy(FORBID, "forbid", holder, pst.ActionIn((_uid("Action", GROUP),)), unless)
    return {policy.id: policy for policy in (*permits, forbid)}


def as_text(policies: Mapping[str, pst.Template]) -> str:
    """Returns policies as Cedar writes them, to be validated or shown; decisions are taken over the trees."""
    return str(cedarpy.PolicySet.from_pst(pst.PolicySet({}, policies, ())))


def reason_of(policy_id: str) -> Reason:
    """Returns what a policy that was compiled here says to people."""
    if policy_id == FORBID:
        return Reason(policy_id, "forbid", FORBIDDEN)
    return Reason(policy_id, "permit", PERMITTED)


def _policy(
    id_: str, effect: pst.Effect, holder: pst.ScopeEq, actions: pst.ActionConstraint, clauses: tuple[pst.Clause, ...]
) -> pst.Template:
    notes: Mapping[str, str] = pst.FrozenMap({"id": id_, "reason": reason_of(id_).text})
    return pst.Template(id_, effect, holder, actions, pst.ScopeIs(pst.EntityType(ROW)), clauses, notes)


def _actions(grant: MemoryGrant) -> pst.ActionIn:
    return pst.ActionIn(tuple([_uid("Action", f"memory.{action}") for action in grant.actions]))


def _action_in(actions: pst.ActionIn) -> pst.Expr:
    return pst.BinaryOp("in", pst.Var("action"), _set([pst.EntityLit(action) for action in actions.entities]))


def _condition(grant: MemoryGrant) -> pst.Expr:
    """All that a row has to be, said in full, so that whatever is missing makes it false."""
    terms = [
        _equal(_of("agent"), pst.GetAttr(PRINCIPAL, "agent")),
        pst.BinaryOp("in", RESOURCE, pst.GetAttr(PRINCIPAL, "org")),
        pst.GetAttr(PRINCIPAL, "active"),
        pst.HasAttr(RESOURCE, ("project",)),
        _equal(_of("project"), pst.StringLit(grant.project_id)),
        pst.BinaryOp("contains", _strings(grant.classifications), _of("classification")),
        *_tags(grant),
        *_provenance(grant),
        _not(_of("retracted")),
        _not(_of("superseded")),
        _unexpired(grant),
    ]
    return _joined("and", terms)


def _tags(grant: MemoryGrant) -> list[pst.Expr]:
    if not grant.tags:
        return []
    return [pst.BinaryOp("contains_all" if grant.tags_match == "all" else "contains_any", _of("tags"), _strings(grant.tags))]


def _provenance(grant: MemoryGrant) -> list[pst.Expr]:
    none = pst.UnaryOp("is_empty", _of("sources"))
    match grant.provenance:
        case "owner_only":
            return [none]
        case "own_connection":
            return [_not(none), pst.BinaryOp("contains_all", _strings([grant.connection_id]), _of("sources"))]
        case "any":
            return []


def _unexpired(grant: MemoryGrant) -> pst.Expr:
    """A row may be written that has ended; it is stored and never seen."""
    live = _not(_of("expired"))
    if "remember" not in grant.actions:
        return live
    writing = _equal(pst.Var("action"), pst.EntityLit(_uid("Action", "memory.remember")))
    return pst.BinaryOp("or", writing, live)


def _joined(op: pst.BinaryOpName, terms: Sequence[pst.Expr]) -> pst.Expr:
    """A balanced tree: the syntax tree may be 100 levels deep, and a long chain fails when it is evaluated."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return pst.BinaryOp(op, _joined(op, terms[:half]), _joined(op, terms[half:]))


def _uid(type_: str, id_: str) -> pst.EntityUid:
    return pst.EntityUid(pst.EntityType(type_), id_)


def _of(attribute: str) -> pst.Expr:
    return pst.GetAttr(RESOURCE, attribute)


def _and(left: pst.Expr, right: pst.Expr) -> pst.Expr:
    return pst.BinaryOp("and", left, right)


def _not(term: pst.Expr) -> pst.Expr:
    return pst.UnaryOp("not", term)


def _equal(left: pst.Expr, right: pst.Expr) -> pst.Expr:
    return pst.BinaryOp("eq", left, right)


def _strings(values: Sequence[str]) -> pst.Expr:
    return _set([pst.StringLit(value) for value in values])


def _set(values: Sequence[pst.Expr]) -> pst.Expr:
    if not values:
        raise ValueError("a grant of nothing")
    return pst.Set(tuple(values))
