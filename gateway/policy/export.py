"""Export: a policy set and its cases as the Cedar CLI takes them, so that an independent program can run our evidence.

What our own engine compiles at run time, the grants of connections, stands in the bundle as policies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import cedarpy
from cedarpy import pst

from gateway.model.decision import DenyKind
from gateway.model.entity import EntityUid
from gateway.model.memory import MemoryGrant
from gateway.policy import grants
from gateway.policy.bundle import SCHEMA, Bundle
from gateway.policy.cases import Case, CaseResult, expand, run_cases
from gateway.policy.source import PolicyInfo

POLICIES, CASES = "bundle.cedar", "tests.json"
Granted = Mapping[EntityUid, Sequence[MemoryGrant]]


class ExportError(ValueError):
    """Cases cannot be told by one bundle: they grant different things to one connection."""


def export(bundle: Bundle, cases: Iterable[Case]) -> dict[str, str]:
    """Returns the text of each file by its name: the policies, the schema and the cases.

    Left out are cases of requests that are not valid, about which Cedar is not asked. Raises `ExportError`, and
    `SliceError` for entities that break the schema.
    """
    asked = [case for case in cases if case.deny_kind is not DenyKind.INVALID_REQUEST]
    results = run_cases(bundle, asked)
    texts = [_named(info) for info in bundle.policies.values()]
    if grants.GROUP in bundle.action_uids:
        texts.append(grants.as_text(_compiled(_granted(bundle, asked))).strip())
    return {
        POLICIES: cedarpy.format_policies("\n\n".join(texts)),
        SCHEMA: bundle.schema_text,
        CASES: "[\n" + ",\n".join(json.dumps(_plain(result), ensure_ascii=False) for result in results) + "\n]\n",
    }


def _named(info: PolicyInfo) -> str:
    """The policy with an `@id`, from which the Cedar CLI takes its name; without one it would be named by its position."""
    return info.text if info.annotations.get("id") else f"@id({json.dumps(info.id)})\n{info.text}"


def _plain(result: CaseResult) -> dict[str, Any]:
    """The case without what only we read. Where a policy errs we deny; what Cedar says then follows from what is left."""
    plain = {key: value for key, value in expand(result.case).items() if key != "grants"}
    verdict = result.verdict
    if verdict.deny_kind is DenyKind.EVALUATION_ERROR:
        effects = {reason.effect for reason in verdict.reasons}
        plain["decision"] = "allow" if effects == {"permit"} else "deny"
    return plain


def _granted(bundle: Bundle, cases: Iterable[Case]) -> Granted:
    """What each connection is granted that does what only a grant opens."""
    above = bundle.types.groups
    group = bundle.action_uids[grants.GROUP]
    found: dict[EntityUid, tuple[MemoryGrant, ...]] = {}
    for case in cases:
        principal = case.principal
        if principal.type != grants.HOLDER or group not in above[bundle.action_uids[case.action]]:
            continue
        own = tuple(sorted(case.grants, key=lambda grant: grant.id))
        if found.setdefault(principal, own) != own:
            raise ExportError(f"`{case.name}` grants `{principal}` something else than an earlier case does")
    return found


def _compiled(granted: Granted) -> dict[str, pst.Template]:
    """The permits of all grants, and one forbid in place of one a connection: all of them have the same id."""
    permits: dict[str, pst.Template] = {}
    covered: list[pst.Expr] = []
    for holder, held in granted.items():
        compiled = grants.compile_grants(holder, held)
        forbid = compiled.pop(grants.FORBID)
        if taken := permits.keys() & compiled.keys():
            raise ExportError(f"two connections hold a grant of one id: {sorted(taken)}")
        permits |= compiled
        for clause in forbid.clauses:
            covered.append(pst.BinaryOp("and", pst.BinaryOp("eq", pst.Var("principal"), _literal(holder)), clause.expr))
    return {**permits, grants.FORBID: _forbid(covered)}


def _forbid(covered: Sequence[pst.Expr]) -> pst.Template:
    """The forbid on every row that no grant of the asking connection covers."""
    [own] = grants.compile_grants(EntityUid(grants.HOLDER, ""), ()).values()
    everyone = pst.ScopeIs(pst.EntityType(grants.HOLDER))
    clauses = (pst.Unless(_any(covered)),) if covered else ()
    return pst.Template(own.id, own.effect, everyone, own.action, own.resource, clauses, own.annotations)


def _any(terms: Sequence[pst.Expr]) -> pst.Expr:
    """A balanced tree: a syntax tree is at most 100 levels deep."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return pst.BinaryOp("or", _any(terms[:half]), _any(terms[half:]))


def _literal(uid: EntityUid) -> pst.Expr:
    return pst.EntityLit(pst.EntityUid(pst.EntityType(uid.type), uid.id))
