"""A foreign store as it decides: questions from outside in, verdicts out, over what is stored and what was sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cedarpy

from gateway.model.asked import Asked, Named, Unusable
from gateway.model.decision import DenyKind
from gateway.model.entity import EntityUid
from gateway.policy import partition
from gateway.policy import slice as slices
from gateway.policy.bundle import Bundle
from gateway.policy.foreign.entities import StoredEntities
from gateway.policy.foreign.overlay import Overlays
from gateway.policy.foreign.schema import ForeignSchema
from gateway.policy.foreign.values import Incomplete, Reading, missing_of
from gateway.policy.panic import unless_it_panics
from gateway.policy.prove.schema import RecordOf
from gateway.policy.value import canonical, uid_json

Kind = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Ruled:
    """What a store says of one question. `kind` is None for a yes; `policies` are the ids of those that decided, sorted."""

    allowed: bool
    kind: DenyKind | None
    policies: tuple[str, ...] = ()


INVALID = Ruled(False, DenyKind.INVALID_REQUEST)
FAILED = Ruled(False, DenyKind.EVALUATION_ERROR)
NO_CONTEXT: Mapping[str, object] = {}
UNMENTIONED = Ruled(False, DenyKind.NOT_PERMITTED)


@dataclass(frozen=True, slots=True)
class Shape:
    """What questions of one kind have in common: the action, its context, and the policies that could match.

    `asks` says whether the context has members that have to be sent; `whole` whether a subject, and a resource, has
    attributes that have to be there, so that one that is not stored cannot be made of nothing.
    """

    action: Mapping[str, str]
    context: RecordOf
    asks: bool
    whole: tuple[bool, bool]
    policies: cedarpy.PolicySet


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request to Cedar, of one kind; `entities` is None when it is asked over the store as it is."""

    kind: Kind
    request: dict[str, Any]
    entities: cedarpy.Entities | None


@dataclass(frozen=True, slots=True)
class ForeignStore:
    """Policies, the schema and the entities of a directory. It is never changed: a new one takes its place.

    `aliases` are the Cedar types that outside names of types stand for. `hash` changes with any of them.
    """

    bundle: Bundle = field(repr=False)
    schema: ForeignSchema = field(repr=False)
    entities: StoredEntities = field(repr=False)
    aliases: Mapping[str, str]
    overlays: Overlays = field(repr=False)
    hash: str
    enumerated: bool
    shapes: dict[Kind, Shape | Ruled] = field(default_factory=dict, repr=False)
    valid: set[Kind] = field(default_factory=set, repr=False)

    def decide(self, asked: Asked) -> Ruled:
        """Returns what the store says of one question; raises `Unusable` for a value that it cannot take."""
        [ruled] = self.decide_all([asked])
        if isinstance(ruled, Unusable):
            raise ruled
        return ruled

    def decide_all(self, asked: Sequence[Asked]) -> list[Ruled | Unusable]:
        """Returns what the store says of each question, in their order; none depends on another."""
        answers: list[Ruled | Unusable] = [FAILED] * len(asked)
        together: dict[Kind, list[tuple[int, dict[str, Any]]]] = {}
        for at, one in enumerate(asked):
            try:
                prepared = self.prepare(one)
            except Unusable as unusable:
                answers[at] = unusable
                continue
            if isinstance(prepared, Ruled):
                answers[at] = prepared
            elif prepared.entities is None:
                together.setdefault(prepared.kind, []).append((at, prepared.request))
            else:
                [answers[at]] = self._ask(prepared.kind, [prepared.request], prepared.entities)
        for kind, alike in together.items():
            ruled = self._ask(kind, [request for _, request in alike], self.entities.handle)
            for (at, _), one_ruled in zip(alike, ruled, strict=True):
                answers[at] = one_ruled
        return answers

    def type_of(self, named: Named) -> str:
        """Returns the Cedar type that a name of a type stands for."""
        return self.aliases.get(named.type, named.type)

    def uid_of(self, named: Named) -> EntityUid:
        """Returns the entity that is named."""
        return EntityUid(self.type_of(named), named.id)

    def prepare(self, asked: Asked) -> Prepared | Ruled:
        """Returns what to ask Cedar, or the verdict when there is nothing to ask; raises `Unusable`.

        INVARIANT: Cedar is asked about entities that are stored, or that can be made of what was sent: over one that is
        missing it skips forbids, in part without an error.
        """
        subject, resource = asked.subject, asked.resource
        kind = (asked.action, self.type_of(subject), self.type_of(resource))
        shape = self.shape(kind)
        if isinstance(shape, Ruled):
            return shape
        reading, context = Reading(self.aliases), NO_CONTEXT
        if asked.context or asked.action_properties is not None or shape.asks:
            try:
                context = self._context(asked, shape.context, reading)
            except Incomplete:
                return INVALID
            if missing_of(shape.context, context) is not None:
                return INVALID
        request = {
            "principal": {"type": kind[1], "id": subject.id},
            "action": shape.action,
            "resource": {"type": kind[2], "id": resource.id},
            "context": canonical(context) if context else "{}",
        }
        if subject.properties or resource.properties:
            try:
                return Prepared(kind, request, self.overlays.lay(asked, (kind[1], kind[2]), reading))
            except Incomplete:
                return INVALID
        if shape.whole[0] and not self.entities.has(kind[1], subject.id):
            return INVALID
        if shape.whole[1] and not self.entities.has(kind[2], resource.id):
            return INVALID
        return Prepared(kind, request, None)

    def shape(self, kind: Kind) -> Shape | Ruled:
        """Returns what is known of questions of a kind; the verdict when no policy could match one."""
        known = self.shapes.get(kind)
        if known is None:
            action, principal, resource = kind
            declared = self.schema.actions.get(action)
            if declared is None or principal not in declared.principals or resource not in declared.resources:
                return INVALID  # and not kept: there is no end of names
            made = partition.between(self.bundle.trees, self.bundle.members, (action,), principal, resource)
            whole = [missing_of(self.schema.entities[type_].attributes, {}) is not None for type_ in (principal, resource)]
            asks = missing_of(declared.context, {}) is not None
            uid = uid_json(self.bundle.action_uids[action])
            shape = Shape(uid, declared.context, asks, (whole[0], whole[1]), made)
            known = self.shapes[kind] = shape if len(made) else UNMENTIONED
        return known

    def _context(self, asked: Asked, declared: RecordOf, reading: Reading) -> dict[str, object]:
        """The context of a request: what was sent as that, and the properties of the action as its member `action`."""
        context = reading.record(asked.context, declared, "context") if asked.context else {}
        context.pop("action", None)
        known = declared.fields.get("action")
        if known is not None and asked.action_properties is not None:
            context["action"] = reading.value(known.type, asked.action_properties, "action.properties")
        return context

    def _ask(self, kind: Kind, requests: list[dict[str, Any]], entities: cedarpy.Entities) -> list[Ruled]:
        shape = self.shape(kind)
        if isinstance(shape, Ruled):
            return [shape] * len(requests)
        policies, schema = shape.policies, self._schema_for(kind, requests)
        answers = unless_it_panics(lambda: cedarpy.is_authorized_batch(requests, policies, entities, schema))
        if answers is None:
            return [FAILED] * len(requests)
        ruled = [_ruled(answer) for answer in answers]
        if schema is not None and requests[0]["context"] == "{}" and ruled[0] is not INVALID:
            self.valid.add(kind)
        return ruled

    def _schema_for(self, kind: Kind, requests: Sequence[Mapping[str, Any]]) -> cedarpy.Schema | None:
        """The schema to validate requests with; None for a kind that is known to be valid without a context.

        INVARIANT: whether such a request is valid depends on its action and types alone, but for ids that are enumerated.
        """
        bare = kind in self.valid and all(request["context"] == "{}" for request in requests)
        return None if bare and not self.enumerated else self.bundle.schema


def hash_of(bundle: Bundle, entities: StoredEntities, aliases: Mapping[str, str]) -> str:
    """Returns the hash of what a store decides by."""
    return slices.digest((bundle.hash, entities.hash, json.dumps(dict(aliases), sort_keys=True)))


def _ruled(answer: cedarpy.AuthzResult) -> Ruled:
    decision, diagnostics = answer.decision, answer.diagnostics
    if decision is cedarpy.Decision.NoDecision:
        return INVALID
    policies = tuple(sorted(diagnostics.reasons))
    if diagnostics.errors:
        return Ruled(False, DenyKind.EVALUATION_ERROR, policies)
    if decision is cedarpy.Decision.Allow:
        return Ruled(True, None, policies)
    return Ruled(False, DenyKind.FORBIDDEN if policies else DenyKind.NOT_PERMITTED, policies)
