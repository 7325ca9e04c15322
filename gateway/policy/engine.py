"""The engine: a query and a slice in, a verdict out, and no way to an allow but Cedar's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from typing import Any

import cedarpy

from gateway.model.condition import FALSE
from gateway.model.decision import DenyKind, Query, Reason, Verdict
from gateway.model.entity import Entity, EntityUid
from gateway.model.memory import MemoryGrant
from gateway.policy import grants as granted
from gateway.policy import planning, probe
from gateway.policy import slice as slices
from gateway.policy.bundle import Bundle
from gateway.policy.context import Context
from gateway.policy.panic import unless_it_panics
from gateway.policy.plan import Plan
from gateway.policy.reading import Path as Read
from gateway.policy.reading import emptied, read_part
from gateway.policy.sets import PolicySets
from gateway.policy.slice import Slice
from gateway.policy.source import failed
from gateway.policy.value import ValueRefused, uid_json
from gateway.recent import Recent

#: Kinds of request that are known to satisfy the schema: an action, two types and a context, which is new each minute.
KNOWN_VALID = 4_096
NOTHING: frozenset[Read] = frozenset()
NO_POLICIES, NO_ENTITIES = cedarpy.PolicySet.from_str(""), cedarpy.Entities.from_json_str("[]")
#: Verdicts that are kept, by the policies that they name.
VERDICTS = 4_096
#: Plans that are kept: one a principal, action and minute.
PLANS = 4_096
INVALID = Verdict(allowed=False, deny_kind=DenyKind.INVALID_REQUEST, policies=(), reasons=(), errors=())
FAILED = Verdict(allowed=False, deny_kind=DenyKind.EVALUATION_ERROR, policies=(), reasons=(), errors=())
UNMENTIONED = Verdict(allowed=False, deny_kind=DenyKind.NOT_PERMITTED, policies=(), reasons=(), errors=())


class PolicyEngine:
    """Decides by one bundle; `salt` goes into the hash of each slice, so that a hash does not betray what is in it."""

    def __init__(self, bundle: Bundle, *, salt: bytes) -> None:
        self.bundle = bundle
        self._salt = salt
        self._actions = {name: uid_json(uid) for name, uid in bundle.action_uids.items()}
        self._heeding = bundle.heeding()
        self._sets = PolicySets(bundle)
        self._plans: Recent[object, Plan] = Recent(PLANS)
        self._valid: set[tuple[str, str, str, str]] = set()
        self._remembers_valid = not bundle.types.enumerated
        self._reasons = {
            id_: Reason(id_, info.effect, info.reason, info.reason_code, info.precedence) for id_, info in bundle.policies.items()
        }
        # The same few policies decide again and again. It holds nothing of the engine, which is then gone as soon as it is left.
        self._said = lru_cache(maxsize=VERDICTS)(partial(_say, self._reasons))

    def sibling(self, bundle: Bundle) -> PolicyEngine:
        """Returns an engine of another bundle under the same schema, over whose slices both decide."""
        return PolicyEngine(bundle, salt=self._salt)

    def slice(self, *entities: Entity) -> Slice:
        """Returns a slice of `entities`; raises `SliceError`."""
        return slices.build(self.bundle, entities, salt=self._salt)

    def extend(self, base: Slice, *entities: Entity) -> Slice:
        """Returns `base` and `entities` as one slice, whose text and hash are those of `entities`; raises `SliceError`."""
        return slices.build(self.bundle, entities, salt=self._salt, base=base)

    def slice_json(self, entities: Sequence[object]) -> Slice:
        """Returns a slice of entities in Cedar's JSON; raises `SliceError`."""
        return slices.from_json(self.bundle, entities, salt=self._salt)

    def decide(self, query: Query, slice: Slice, grants: Sequence[MemoryGrant] = ()) -> Verdict:
        """Returns the verdict on one query; whatever Cedar cannot answer is a deny."""
        item = self._request(query, slice, granted=bool(grants))
        if isinstance(item, Verdict):
            return item
        policies = self._sets.of((query.action,), query.principal, query.resource.type, grants)
        return self._ask([item], policies, slice)[0]

    def plan(self, query: Query, resource: str, slice: Slice, grants: Sequence[MemoryGrant] = ()) -> Plan:
        """Returns what the policies say of every resource of a type; the resource of the query is left out of account."""
        context = self._checked(query, slice, query.principal)
        if isinstance(context, Verdict):
            return Plan(context, FALSE)
        # INVARIANT: all that a plan comes from is in its key, but for the bundle, which is the engine's own.
        key = (query.action, query.principal, resource, slice.hashes, context.text, tuple([grant.id for grant in grants]))
        text = context.text
        return self._plans.of(
            key,
            lambda: planning.plan(
                self.bundle,
                query.principal,
                query.action,
                text,
                self._sets.of((query.action,), query.principal, resource, grants),
                slice.handle,
                resource=resource,
                reason=self._reason,
            ),
        )

    def probe(self, grant: MemoryGrant, agent_id: str) -> None:
        """Raises `GrantRefused` when a grant is no valid policy, or allows not even a row that was made up to fit it.

        Asked are the grant and the guardrails alone. Every entity is made up: nothing of the store is looked at.
        """
        probe.check(self.bundle, self._sets, grant, agent_id)

    def decide_all(self, queries: Sequence[Query], slice: Slice, grants: Sequence[MemoryGrant] = ()) -> list[Verdict]:
        """Returns a verdict a query, in their order; neighbours of one kind go to Cedar as one batch.

        A connection is decided with its grants as policies; to any other principal they are nothing.
        """
        verdicts: list[Verdict] = []
        for _, alike in groupby(queries, key=self._asked_over):
            first, *others = alike
            items = [self._request(query, slice, granted=bool(grants)) for query in (first, *others)]
            asked = [item for item in items if not isinstance(item, Verdict)]
            policies = self._sets.of((first.action,), first.principal, first.resource.type, grants) if asked else None
            answers = iter(self._ask(asked, policies, slice) if policies is not None else ())
            verdicts += [item if isinstance(item, Verdict) else next(answers) for item in items]
        return verdicts

    def decide_together(self, query: Query, also: str, slice: Slice) -> tuple[Verdict, Verdict]:
        """Returns the verdict on a query, and on the same with another action, both asked at once over every policy that could
        match one of them: a call costs about as much as its evaluation.

        What a policy of another action says of a query is nothing, so the verdicts are those of `decide`.
        """
        item = self._request(query, slice)
        if isinstance(item, Verdict) or not self.bundle.members.get(also):
            beside = Query(query.principal, also, query.resource, query.context)
            return self.decide(query, slice), self.decide(beside, slice)
        policies = self._sets.of((query.action, also), query.principal, query.resource.type, ())
        verdict, other = self._ask([item, {**item, "action": self._actions[also]}], policies, slice)
        return verdict, other

    def _checked(self, query: Query, slice: Slice, *named: EntityUid) -> Context | Verdict:
        """Returns the context to ask with, or the verdict when there is nothing to ask.

        INVARIANT: every entity that the request names is in the slice, and every entity that these name. Cedar answers
        over missing ones too, and skips the forbids that would have needed them, in part without an error.
        """
        if query.action not in self._actions or slice.missing or slice.schema_hash != self.bundle.schema_hash:
            return INVALID
        try:
            context = query.context if isinstance(query.context, Context) else Context(query.context)
        except ValueRefused:
            return INVALID
        return context if slice.uids.issuperset((*named, *context.uids)) else INVALID

    def _request(self, query: Query, slice: Slice, *, granted: bool = False) -> dict[str, Any] | Verdict:
        """Returns what to ask Cedar, or the verdict when there is nothing to ask."""
        context = self._checked(query, slice, query.principal, query.resource)
        if isinstance(context, Verdict):
            return context
        if not self.bundle.members[query.action] and not granted:
            return UNMENTIONED
        return {
            "principal": uid_json(query.principal),
            "action": self._actions[query.action],
            "resource": uid_json(query.resource),
            "context": context.text,
        }

    def _ask(self, requests: list[dict[str, Any]], policies: cedarpy.PolicySet, slice: Slice) -> list[Verdict]:
        schema, requests = self._unvalidated(requests)
        answers = unless_it_panics(lambda: cedarpy.is_authorized_batch(requests, policies, slice.handle, schema))
        if answers is None:
            return [FAILED] * len(requests)
        if schema is not None and all(answer.decision is not cedarpy.Decision.NoDecision for answer in answers):
            self._remember(requests)
        return [self._verdict(answer) for answer in answers]

    def _unvalidated(self, requests: list[dict[str, Any]]) -> tuple[cedarpy.Schema | None, list[dict[str, Any]]]:
        """Returns the schema to validate requests with, or None when their kinds are known to be valid; then what their
        policies do not read of the context is left out. Both together are two thirds of what a small decision costs.

        INVARIANT: whether a request is valid depends on its action, its types and its context alone; entities were
        validated when their slice was made.
        """
        if not self._valid.issuperset(map(_kind, requests)):
            return self.bundle.schema, requests
        return None, [self._heeded(request) for request in requests]

    def _heeded(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns a request with what is read of its context; without one where nothing is."""
        paths = self._heeding.get(request["action"]["id"], NOTHING)
        if paths:
            return {**request, "context": read_part(request["context"], paths)}
        return {"principal": request["principal"], "action": request["action"], "resource": request["resource"]}

    def _remember(self, requests: list[dict[str, Any]]) -> None:
        if self._remembers_valid:
            if len(self._valid) > KNOWN_VALID:
                self._valid.clear()
            self._valid.update(_kind(request) for request in requests if self._says_its_types(request))

    def _says_its_types(self, request: dict[str, Any]) -> bool:
        """Whether the context of a valid request reads the same without the schema.

        Where that has a decimal or a time, Cedar takes a plain text for one. An empty text is none of these, so with its
        texts emptied such a context is not valid.
        """
        bare = {**request, "context": emptied(request["context"])}
        if bare == request:
            return True
        answers = unless_it_panics(lambda: cedarpy.is_authorized_batch([bare], NO_POLICIES, NO_ENTITIES, self.bundle.schema))
        return answers is not None and answers[0].decision is not cedarpy.Decision.NoDecision

    def _verdict(self, answer: cedarpy.AuthzResult) -> Verdict:
        decision, diagnostics = answer.decision, answer.diagnostics
        if decision is cedarpy.Decision.NoDecision:
            return INVALID
        verdict = self._said(decision is cedarpy.Decision.Allow, tuple(diagnostics.reasons))
        if not diagnostics.errors:
            return verdict
        return Verdict(False, DenyKind.EVALUATION_ERROR, verdict.policies, verdict.reasons, failed(diagnostics.errors))

    def _asked_over(self, query: Query) -> tuple[str, str, str, EntityUid | None]:
        """What tells apart the policies that queries are asked over; each connection has its own."""
        principal, resource = query.principal, query.resource.type
        return query.action, principal.type, resource, principal if self._sets.granted(principal.type, resource) else None

    def _reason(self, policy_id: str) -> Reason:
        return _reason(self._reasons, policy_id)


def _reason(reasons: Mapping[str, Reason], policy_id: str) -> Reason:
    return reasons.get(policy_id) or granted.reason_of(policy_id)


def _say(reasons: Mapping[str, Reason], allow: bool, policies: tuple[str, ...]) -> Verdict:
    """The verdict that policies come to, in whatever order Cedar names them."""
    policies = tuple(sorted(policies))
    said = tuple([_reason(reasons, id_) for id_ in policies])
    if allow:
        return Verdict(True, None, policies, said, ())
    return Verdict(False, DenyKind.FORBIDDEN if policies else DenyKind.NOT_PERMITTED, policies, said, ())


def _kind(request: dict[str, Any]) -> tuple[str, str, str, str]:
    return request["action"]["id"], request["principal"]["type"], request["resource"]["type"], request["context"]


def one_reason(verdict: Verdict) -> Reason | None:
    """Returns the forbid with the lowest precedence, ties by id, of a deny that forbids caused; else None."""
    forbids = [reason for reason in verdict.reasons if reason.effect == "forbid"]
    return min(forbids, key=_rank, default=None)


def _rank(reason: Reason) -> tuple[bool, int, str]:
    return reason.precedence is None, reason.precedence or 0, reason.policy_id
