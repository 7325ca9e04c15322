"""Holding: which of some policies hold in a request, each asked for itself, so that none hides another."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import cedarpy
from cedarpy import pst

from gateway.model.decision import Query
from gateway.policy import partition
from gateway.policy.bundle import Bundle
from gateway.policy.context import Context
from gateway.policy.panic import unless_it_panics
from gateway.policy.slice import Slice
from gateway.policy.source import failed
from gateway.policy.value import uid_json

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Held(Generic[K]):
    """The keys of the policies whose scope and clauses are true of a request, and of those that err; the rest are false."""

    true: frozenset[K]
    erring: frozenset[K]

    def of(self, key: K) -> bool | None:
        """Returns whether a policy holds; None when it errs."""
        return None if key in self.erring else key in self.true


class Probes(Generic[K]):
    """Policies to be asked whether they hold, by keys of any kind; permits and forbids alike are asked as permits.

    Cedar names either the permits or the forbids that decide: a forbid that fires would hide every permit.
    """

    def __init__(self, bundle: Bundle, trees: Mapping[K, pst.Template]) -> None:
        self._bundle = bundle
        self._keys = dict(zip(map(str, range(len(trees))), trees, strict=True))
        self._trees = {id_: replace(trees[key], id=id_, effect="permit", annotations={}) for id_, key in self._keys.items()}
        self._members = partition.members(self._trees, bundle.action_uids, bundle.types.groups)
        self._by_kind: dict[tuple[str, str, str], cedarpy.PolicySet] = {}

    def held(self, query: Query, slice: Slice) -> Held[K]:
        """Returns which hold.

        INVARIANT: a query is asked here only when the engine has answered it over the same slice, and not as invalid: what
        the engine checks first is not checked again.
        """
        context = query.context if isinstance(query.context, Context) else Context(query.context)
        request = {
            "principal": uid_json(query.principal),
            "action": uid_json(self._bundle.action_uids[query.action]),
            "resource": uid_json(query.resource),
            "context": context.text,
        }
        policies = self._of(query.action, query.principal.type, query.resource.type)
        answer = unless_it_panics(lambda: cedarpy.is_authorized(request, policies, slice.handle, self._bundle.schema))
        if answer is None:
            return Held(frozenset(), frozenset())
        return Held(self._named(answer.diagnostics.reasons), self._named(failed(answer.diagnostics.errors)))

    def _of(self, action: str, principal: str, resource: str) -> cedarpy.PolicySet:
        kind = (action, principal, resource)
        if kind not in self._by_kind:
            self._by_kind[kind] = partition.between(self._trees, self._members, (action,), principal, resource)
        return self._by_kind[kind]

    def _named(self, ids: Iterable[str]) -> frozenset[K]:
        return frozenset(self._keys[id_] for id_ in ids)
