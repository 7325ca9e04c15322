"""A foreign store as it decides: questions from outside in, verdicts out, over what is stored and what was sent."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cedarpy

from gateway.model.asked import Asked, Named, Unusable
from gateway.model.decision import DenyKind
from gateway.model.entity import EntityUid
from gateway.policy import partition
from gateway.policy import slice as slices
from gateway.policy.bundle import Bundle
from gateway.policy.foreign.entities import StoredEntities, entity_text
from gateway.policy.foreign.schema import ForeignSchema
from gateway.policy.foreign.values import Incomplete, Reading, missing_of
from gateway.policy.panic import unless_it_panics
from gateway.policy.prove.schema import RecordOf
from gateway.policy.reading import Reads
from gateway.policy.value import canonical, uid_json

Kind = tuple[str, str, str]
#: What is made for one request, and everything that is named in it.
Base = tuple[frozenset[EntityUid], frozenset[EntityUid]]
#: What requests are laid over, kept for those that were made last; one is some tens of kilobytes.
BASES = 4_096


@dataclass(frozen=True, slots=True)
class Ruled:
    """What a store says of one question. `kind` is None for a yes; `policies` are the ids of those that decided, sorted."""

    allowed: bool
    kind: DenyKind | None
    policies: tuple[str, ...] = ()


INVALID = Ruled(False, DenyKind.INVALID_REQUEST)
FAILED = Ruled(False, DenyKind.EVALUATION_ERROR)
UNMENTIONED = Ruled(False, DenyKind.NOT_PERMITTED)


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
    reads: Reads = field(repr=False)
    hash: str
    actions: Mapping[str, Mapping[str, str]] = field(repr=False)
    sets: dict[Kind, cedarpy.PolicySet | None] = field(default_factory=dict, repr=False)
    bases: OrderedDict[Base, cedarpy.Entities] = field(default_factory=OrderedDict, repr=False)

    def decide(self, asked: Asked) -> Ruled:
        """Returns what the store says of one question; raises `Unusable` for a value that it cannot take."""
        [ruled] = self.decide_all([asked])
        if isinstance(ruled, Unusable):
            raise ruled
        return ruled

    def decide_all(self, asked: Sequence[Asked]) -> list[Ruled | Unusable]:
        """Returns what the store says of each question, in their order; none depends on another."""
        answers: list[Ruled | Unusable] = []
        together: dict[Kind, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        for at, one in enumerate(asked):
            try:
                prepared = self.prepare(one)
            except Unusable as unusable:
                answers.append(unusable)
                continue
            if isinstance(prepared, Ruled):
                answers.append(prepared)
            elif prepared.entities is None:
                answers.append(FAILED)
                together[prepared.kind].append((at, prepared.request))
            else:
                answers += self._ask(prepared.kind, [prepared.request], prepared.entities)
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

    def policies(self, kind: Kind) -> cedarpy.PolicySet | None:
        """Returns the policies that could match an action between two types to which it applies; None when there is none."""
        if kind not in self.sets:
            action, principal, resource = kind
            made = partition.between(self.bundle.trees, self.bundle.members, (action,), principal, resource)
            self.sets[kind] = made if len(made) else None
        return self.sets[kind]

    def prepare(self, asked: Asked) -> Prepared | Ruled:
        """Returns what to ask Cedar, or the verdict when there is nothing to ask; raises `Unusable`.

        INVARIANT: Cedar is asked about entities that are stored, or that can be made of what was sent: over one that is
        missing it skips forbids, in part without an error.
        """
        subject, resource = self.uid_of(asked.subject), self.uid_of(asked.resource)
        shape = self.schema.actions.get(asked.action)
        if shape is None or subject.type not in shape.principals or resource.type not in shape.resources:
            return INVALID
        kind = (asked.action, subject.type, resource.type)
        if self.policies(kind) is None:
            return UNMENTIONED
        reading = Reading(self.aliases)
        try:
            context = self._context(asked, shape.context, reading)
            sent = self._sent(asked, (subject, resource), reading)
        except Incomplete:
            return INVALID
        if missing_of(shape.context, context) is not None:
            return INVALID
        made: dict[EntityUid, str] = {}
        for uid in (subject, resource):
            attrs = sent.get(uid)
            stored = self.entities.by_uid.get(uid)
            if stored is None and missing_of(self.schema.entities[uid.type].attributes, attrs or {}) is not None:
                return INVALID
            if attrs:
                made[uid] = (
                    entity_text(uid, attrs, {}, ())
                    if stored is None
                    else entity_text(uid, {**stored.attrs, **attrs}, stored.tags, stored.above)
                )
        request = {
            "principal": uid_json(subject),
            "action": self.actions[asked.action],
            "resource": uid_json(resource),
            "context": canonical(context) if context else "{}",
        }
        over = self._laid_over(made, (subject, resource, *reading.named)) if made else None
        return Prepared(kind, request, over)

    def _context(self, asked: Asked, declared: RecordOf, reading: Reading) -> dict[str, object]:
        """The context of a request: what was sent as that, and the properties of the action as its member `action`."""
        context = reading.record(asked.context, declared, "context") if asked.context else {}
        context.pop("action", None)
        known = declared.fields.get("action")
        if known is not None and asked.action_properties is not None:
            context["action"] = reading.value(known.type, asked.action_properties, "action.properties")
        return context

    def _sent(self, asked: Asked, uids: tuple[EntityUid, EntityUid], reading: Reading) -> dict[EntityUid, dict[str, object]]:
        """The attributes that were sent of each entity."""
        sent: dict[EntityUid, dict[str, object]] = {}
        for uid, named, place in zip(uids, (asked.subject, asked.resource), ("subject", "resource"), strict=True):
            if not named.properties:
                continue
            read = reading.record(named.properties, self.schema.entities[uid.type].attributes, f"{place}.properties")
            before = sent.setdefault(uid, read)
            if any(before.setdefault(name, value) != value for name, value in read.items()):
                raise Unusable(f"{place}.properties", "are not what was sent of the same entity as the subject")
        return sent

    def _laid_over(self, made: Mapping[EntityUid, str], named: Iterable[EntityUid]) -> cedarpy.Entities:
        """What was made on top of what a policy could come to from it; that stays the same for the same entities."""
        key = (frozenset(made), frozenset(named))
        base = self.bases.get(key)
        try:
            if base is None:
                roots = {*key[1], *self.reads.entities}
                for uid in made:
                    stored = self.entities.by_uid.get(uid)
                    roots |= stored.reached if stored is not None else frozenset()
                base = self.bases[key] = slices.parse(self.bundle, f"[{','.join(self.entities.reach(roots, made))}]")
                if len(self.bases) > BASES:
                    self.bases.popitem(last=False)
            else:
                self.bases.move_to_end(key)
            return slices.parse(self.bundle, f"[{','.join(made.values())}]", base)
        except slices.SliceError as refused:
            raise Unusable("properties", "hold a value that Cedar does not take") from refused

    def _ask(self, kind: Kind, requests: list[dict[str, Any]], entities: cedarpy.Entities) -> list[Ruled]:
        policies = self.policies(kind)
        if policies is None:
            return [UNMENTIONED] * len(requests)
        answers = unless_it_panics(lambda: cedarpy.is_authorized_batch(requests, policies, entities, self.bundle.schema))
        return [FAILED] * len(requests) if answers is None else [_ruled(answer) for answer in answers]


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
