"""Explanations: why a request is answered as it is, down to the file and the line, and what was nearly met."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cedarpy import pst

from gateway.model.decision import DenyKind, Query, Reason, Verdict
from gateway.model.entity import EntityUid
from gateway.model.memory import MemoryGrant
from gateway.policy import clauses as written
from gateway.policy import grants as granted
from gateway.policy import partition, source
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.holding import Probes
from gateway.policy.operands import operands
from gateway.policy.reading import mentions
from gateway.policy.slice import Slice
from gateway.policy.source import PolicyInfo


@dataclass(frozen=True, slots=True)
class Cited:
    """A policy that is spoken of. `file` is empty and `line` 0 for one that a grant was compiled to."""

    policy_id: str
    effect: str
    reason: str
    code: str | None
    precedence: int | None
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Unmet:
    """What a permit asks and the request is not: one part of its scope, or of a chain of `&&`, as Cedar text.

    `line` is that of its clause, or of the policy. `reads` are the paths that the text reads. `values` are what stands at
    them, None for nothing; they are the request's own, and a caller may keep them back. `erred` when it could not be
    evaluated.
    """

    text: str
    line: int
    reads: tuple[str, ...]
    values: Mapping[str, str | None]
    erred: bool


@dataclass(frozen=True, slots=True)
class Nearest:
    """The permit of the action that was nearest to being met, the first thing that it lacked, and how many there are."""

    policy: Cited
    unmet: Unmet
    lacking: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a request is allowed or denied.

    `policies` are the determining ones: forbids in the order in which the reason is chosen, permits by id. `errors` are the
    policies that failed. `nearest` is there where it is for want of a permit: for what is `not_permitted`, and beside the
    forbid that grants are compiled to; None when no permit could match the action.
    """

    allowed: bool
    deny_kind: DenyKind | None
    policies: tuple[Cited, ...]
    errors: tuple[Cited, ...]
    nearest: Nearest | None


def explain(engine: PolicyEngine, query: Query, slice: Slice, grants: Sequence[MemoryGrant] = ()) -> Explanation:
    """Returns why the engine answers a query as it does; the same query over the same slice has the same explanation."""
    return explain_verdict(engine.bundle, engine.decide(query, slice, grants), query, slice, grants)


def explain_verdict(
    bundle: Bundle, verdict: Verdict, query: Query, slice: Slice, grants: Sequence[MemoryGrant] = ()
) -> Explanation:
    """Returns why a query has the verdict that an engine of the bundle gave it."""
    return _explained(bundle, verdict, query, slice, grants, rows=False)


def explain_plan(
    bundle: Bundle, verdict: Verdict, query: Query, resource: str, slice: Slice, grants: Sequence[MemoryGrant] = ()
) -> Explanation:
    """Returns why rows of a type could be listed, or why none could: the nearest permit is looked for in what is known without
    a row, and is None where all of that is met."""
    return _explained(bundle, verdict, replace(query, resource=EntityUid(resource, "-")), slice, grants, rows=True)


def cite(bundle: Bundle | None, policy_id: str) -> Cited:
    """Returns a policy by its id; all but the id is empty where there is no bundle any more, or it does not hold the policy."""
    info = None if bundle is None else bundle.policies.get(policy_id)
    if info is not None:
        return _cited(info)
    if granted.RESERVED.fullmatch(policy_id):
        known = granted.reason_of(policy_id)
        return Cited(policy_id, known.effect, known.text, None, None, "", 0)
    return Cited(policy_id, "", "", None, None, "", 0)


def _explained(
    bundle: Bundle, verdict: Verdict, query: Query, slice: Slice, grants: Sequence[MemoryGrant], *, rows: bool
) -> Explanation:
    infos = {**bundle.policies, **dict(_compiled(query, grants))}
    by_id = {reason.policy_id: reason for reason in verdict.reasons}
    # The forbid that grants are compiled to fires where none of them permits: what was nearly met is the answer there too.
    unpermitted = verdict.deny_kind is DenyKind.NOT_PERMITTED or granted.FORBID in verdict.policies
    return Explanation(
        allowed=verdict.allowed,
        deny_kind=verdict.deny_kind,
        policies=tuple(_cited(infos[id_]) for id_ in sorted(by_id, key=lambda id_: _order(by_id[id_]))),
        errors=tuple(_cited(infos[id_]) for id_ in verdict.errors),
        nearest=_nearest(bundle, infos, query, slice, rows=rows) if unpermitted else None,
    )


@dataclass(frozen=True, slots=True)
class _Term:
    """One thing that a permit asks; `scope` when it stands in its head."""

    text: str
    line: int
    expr: pst.Expr
    scope: bool


def _nearest(bundle: Bundle, infos: Mapping[str, PolicyInfo], query: Query, slice: Slice, *, rows: bool) -> Nearest | None:
    """The permit that lacks the least: of its scope first, then of its clauses; ties by id. Of `rows` that nobody has looked
    at, what mentions the resource is neither met nor unmet."""
    permits = _permits(bundle, infos, query.action)
    terms = {
        id_: [term for term in _terms(tree, infos[id_]) if not (rows and mentions(term.expr, "resource"))]
        for id_, tree in permits.items()
    }
    probes = {(id_, n): _alone(permits[id_], term) for id_, asked in terms.items() for n, term in enumerate(asked)}
    held = Probes(bundle, probes).held(query, slice)
    lacking = {id_: [n for n in range(len(asked)) if held.of((id_, n)) is not True] for id_, asked in terms.items()}
    ranks = [(sum(terms[id_][n].scope for n in wanted), len(wanted), id_) for id_, wanted in lacking.items() if wanted]
    if not ranks:
        return None
    id_ = min(ranks)[2]
    first = terms[id_][lacking[id_][0]]
    values = operands(first.expr, query, slice)
    erred = held.of((id_, lacking[id_][0])) is None
    return Nearest(_cited(infos[id_]), Unmet(first.text, first.line, tuple(values), values, erred), len(lacking[id_]))


def _permits(bundle: Bundle, infos: Mapping[str, PolicyInfo], action: str) -> dict[str, pst.Template]:
    """The permits that could match an action, those of grants among them."""
    compiled = {id_: source.read("", infos[id_].text)[0][0].tree for id_ in infos.keys() - bundle.trees.keys()}
    members = partition.members(compiled, bundle.action_uids, bundle.types.groups) if compiled else {action: ()}
    trees = {**bundle.trees, **compiled}
    return {id_: trees[id_] for id_ in (*bundle.members[action], *members[action]) if trees[id_].effect == "permit"}


def _compiled(query: Query, grants: Sequence[MemoryGrant]) -> Iterator[tuple[str, PolicyInfo]]:
    """What the grants of a connection are compiled to, as policies that stand in no file."""
    if query.principal.type != granted.HOLDER:
        return
    for id_, tree in granted.compile_grants(query.principal, grants).items():
        [policy], _ = source.read("", granted.as_text({id_: tree}))
        yield id_, replace(policy.info, line=0)


def _terms(tree: pst.Template, info: PolicyInfo) -> Iterator[_Term]:
    for text, expr in (*_scope("principal", tree.principal), *_scope("resource", tree.resource)):
        yield _Term(text, info.line, expr, True)
    for clause in written.clauses(info):
        for text in written.conjuncts(clause):
            yield _Term(text, clause.line if info.line else 0, written.expression(text), False)


def _scope(name: pst.VarName, scope: pst.PrincipalOrResourceConstraint) -> Iterator[tuple[str, pst.Expr]]:
    """What a scope says, as conditions; a policy that loads has no slots."""
    if isinstance(scope, pst.ScopeIs | pst.ScopeIsIn):
        yield f"{name} is {scope.entity_type}", pst.Is(pst.Var(name), scope.entity_type, None)
    if isinstance(scope, pst.ScopeEq | pst.ScopeIn | pst.ScopeIsIn) and isinstance(scope.entity, pst.EntityUid):
        equal, uid = isinstance(scope, pst.ScopeEq), scope.entity
        op: pst.BinaryOpName = "eq" if equal else "in"
        text = f"{name} {'==' if equal else 'in'} {uid.type}::{json.dumps(uid.id, ensure_ascii=False)}"
        yield text, pst.BinaryOp(op, pst.Var(name), pst.EntityLit(uid))


def _alone(tree: pst.Template, term: _Term) -> pst.Template:
    """A policy of one term and of any principal and resource, for the action of its own."""
    return replace(tree, principal=pst.ScopeAny(), resource=pst.ScopeAny(), clauses=(pst.When(term.expr),))


def _cited(info: PolicyInfo) -> Cited:
    return Cited(info.id, info.effect, info.reason, info.reason_code, info.precedence, info.file, info.line)


def _order(reason: Reason) -> tuple[bool, int, str]:
    return reason.precedence is None, reason.precedence or 0, reason.policy_id
