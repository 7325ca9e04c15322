"""A foreign store as it decides: questions from outside in, verdicts out, over what is stored and what was sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import cedarpy

from gateway.model.asked import Asked, Named, Unusable
from gateway.model.decision import DenyKind
from gateway.model.entity import EntityUid
from gateway.policy import partition
from gateway.policy import slice as slices
from gateway.policy.bundle import Bundle
from gateway.policy.foreign.entities import StoredEntities
from gateway.policy.foreign.overlay import AS_STORED, Laid, Layer, Overlays, layered
from gateway.policy.foreign.values import Incomplete, Reading, missing_of
from gateway.policy.panic import unless_it_panics
from gateway.policy.schema import RecordOf, Schema
from gateway.policy.value import canonical, uid_json

Kind = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Ruled:
    """What a store says of one question. `deny_kind` is None for a yes; `policies` are the ids of those that decided, sorted."""

    allowed: bool
    deny_kind: DenyKind | None
    policies: tuple[str, ...] = ()


INVALID = Ruled(False, DenyKind.INVALID_REQUEST)
FAILED = Ruled(False, DenyKind.EVALUATION_ERROR)
UNMENTIONED = Ruled(False, DenyKind.NOT_PERMITTED)
#: Ways in which policies decided together, which are kept as one verdict each.
SAID = 4_096


@dataclass(frozen=True, slots=True)
class Shape:
    """What questions of one kind have in common: the action, its context, and the policies that could match.

    `asks` says whether the context has members that have to be sent. `subjects` and `resources` are the ids of those that
    are stored, None where one that is not stored can be made of nothing, because its type requires no attribute.
    """

    kind: Kind
    action: Mapping[str, str]
    context: RecordOf
    asks: bool
    subjects: frozenset[str] | None
    resources: frozenset[str] | None
    policies: cedarpy.PolicySet


class Prepared(NamedTuple):
    """One request to Cedar, of one shape, and what it is asked over."""

    shape: Shape
    request: dict[str, Any]
    laid: Laid


Waiting = list[tuple[int, Prepared]]


@dataclass(frozen=True, slots=True)
class ForeignStore:
    """Policies, the schema and the entities of a directory. It is never changed: a new one takes its place.

    `aliases` are the Cedar types that outside names of types stand for. `hash` changes with any of them.
    """

    bundle: Bundle = field(repr=False)
    schema: Schema = field(repr=False)
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
        plain: Waiting = []
        over: Waiting = []
        for at, one in enumerate(asked):
            try:
                prepared = self.prepare(one)
            except Unusable as unusable:
                answers[at] = unusable
                continue
            if isinstance(prepared, Ruled):
                answers[at] = prepared
            elif prepared.laid is AS_STORED:
                plain.append((at, prepared))
            else:
                over.append((at, prepared))
        self._ask(plain, self.entities.handle, answers)
        for layer, places in layered([prepared.laid for _, prepared in over]):
            self._ask_over(layer, [over[place] for place in places], answers)
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
        shape = self.shape(asked.action, subject.type, resource.type)
        if isinstance(shape, Ruled):
            return shape
        _, principal, type_ = shape.kind
        request: dict[str, Any] = {
            "principal": {"type": principal, "id": subject.id},
            "action": shape.action,
            "resource": {"type": type_, "id": resource.id},
        }
        reads = asked.context or asked.action_properties is not None or shape.asks
        if not (reads or subject.properties or resource.properties):
            return Prepared(shape, request, AS_STORED) if _stored(shape, asked) else INVALID
        reading = Reading(self.aliases)
        try:
            context = self._context(asked, shape.context, reading)
            if missing_of(shape.context, context) is not None:
                return INVALID
            if context:
                request["context"] = canonical(context)
            sent = subject.properties or resource.properties
            laid = self.overlays.lay(asked, (principal, type_), reading) if sent else AS_STORED
        except Incomplete:
            return INVALID
        return Prepared(shape, request, laid) if laid is not AS_STORED or _stored(shape, asked) else INVALID

    def shape(self, action: str, subject: str, resource: str) -> Shape | Ruled:
        """Returns what is known of questions of a kind, by outside names; the verdict when no policy could match one."""
        known = self.shapes.get((action, subject, resource))
        if known is None:
            kind = (action, self.aliases.get(subject, subject), self.aliases.get(resource, resource))
            declared = self.schema.actions.get(action)
            if declared is None or kind[1] not in declared.principals or kind[2] not in declared.resources:
                return INVALID  # and not kept: there is no end of names
            made = partition.between(self.bundle.trees, self.bundle.members, (action,), *kind[1:])
            asks = missing_of(declared.context, {}) is not None
            uid = uid_json(self.bundle.action_uids[action])
            shape = Shape(kind, uid, declared.context, asks, self._whole(kind[1]), self._whole(kind[2]), made)
            known = self.shapes[action, subject, resource] = shape if len(made) else UNMENTIONED
        return known

    def _whole(self, type_: str) -> frozenset[str] | None:
        """The ids that are stored of a type, when an entity of it cannot be made of nothing."""
        made_of_nothing = missing_of(self.schema.entities[type_].attributes, {}) is None
        return None if made_of_nothing else self.entities.known.get(type_, frozenset())

    def _context(self, asked: Asked, declared: RecordOf, reading: Reading) -> dict[str, object]:
        """The context of a request: what was sent as that, and the properties of the action as its member `action`."""
        context = reading.record(asked.context, declared, "context") if asked.context else {}
        context.pop("action", None)
        known = declared.fields.get("action")
        if known is not None and asked.action_properties is not None:
            context["action"] = reading.value(known.type, asked.action_properties, "action.properties")
        return context

    def _ask_over(self, layer: Layer, waiting: Waiting, answers: list[Ruled | Unusable]) -> None:
        try:
            entities = self.overlays.entities(layer)
        except Unusable as unusable:
            if len(waiting) == 1:
                answers[waiting[0][0]] = unusable
                return
            for at, prepared in waiting:  # whose value it is shows when each is asked by itself
                self._ask_over(Layer.of(prepared.laid), [(at, prepared)], answers)
            return
        self._ask(waiting, entities, answers)

    def _ask(self, waiting: Waiting, entities: cedarpy.Entities, answers: list[Ruled | Unusable]) -> None:
        """Puts the answers to what waits into their places, asked at once for each kind of question."""
        alike: dict[Kind, Waiting] = {}
        for one in waiting:
            alike.setdefault(one[1].shape.kind, []).append(one)
        for some in alike.values():
            found = self._ruled(some[0][1].shape, [prepared.request for _, prepared in some], entities)
            if found is not None:
                for (at, _), ruled in zip(some, found, strict=True):
                    answers[at] = ruled
            elif len(some) > 1:  # over which it panics shows when each is asked by itself
                for one in some:
                    self._ask([one], entities, answers)

    def _ruled(self, shape: Shape, requests: list[dict[str, Any]], entities: cedarpy.Entities) -> list[Ruled] | None:
        """The verdicts on some requests of one kind, None when Cedar panics."""
        schema = self._schema_for(shape.kind, requests)
        answers = unless_it_panics(lambda: cedarpy.is_authorized_batch(requests, shape.policies, entities, schema))
        if answers is None:
            return None
        ruled = [_ruled(answer) for answer in answers]
        if schema is not None and "context" not in requests[0] and ruled[0] is not INVALID:
            self.valid.add(shape.kind)
        return ruled

    def _schema_for(self, kind: Kind, requests: Sequence[Mapping[str, Any]]) -> cedarpy.Schema | None:
        """The schema to validate requests with; None for a kind that is known to be valid without a context.

        INVARIANT: whether such a request is valid depends on its action and types alone, but for ids that are enumerated.
        """
        bare = kind in self.valid and not any("context" in request for request in requests)
        return None if bare and not self.enumerated else self.bundle.schema


def hash_of(bundle: Bundle, entities: StoredEntities, aliases: Mapping[str, str]) -> str:
    """Returns the hash of what a store decides by."""
    return slices.digest((bundle.hash, entities.hash, json.dumps(dict(aliases), sort_keys=True)))


def _stored(shape: Shape, asked: Asked) -> bool:
    """Whether what a question names is stored, or can be made of nothing."""
    return (shape.subjects is None or asked.subject.id in shape.subjects) and (
        shape.resources is None or asked.resource.id in shape.resources
    )


def _ruled(answer: cedarpy.AuthzResult) -> Ruled:
    decision, diagnostics = answer.decision, answer.diagnostics
    if decision is cedarpy.Decision.NoDecision:
        return INVALID
    return _said(decision is cedarpy.Decision.Allow, tuple(diagnostics.reasons), bool(diagnostics.errors))


@lru_cache(maxsize=SAID)
def _said(allow: bool, policies: tuple[str, ...], errs: bool) -> Ruled:
    policies = tuple(sorted(policies))
    if errs:
        return Ruled(False, DenyKind.EVALUATION_ERROR, policies)
    if allow:
        return Ruled(True, None, policies)
    return Ruled(False, DenyKind.FORBIDDEN if policies else DenyKind.NOT_PERMITTED, policies)
