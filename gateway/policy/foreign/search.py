"""Searches of a foreign store: which subjects, resources or actions a question would be answered yes for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gateway.model.asked import A_TURN_CHARACTERS, Asked, Sizes, Sought, Unusable
from gateway.model.decision import DenyKind, Reason
from gateway.model.entity import EntityUid
from gateway.policy import columns as c
from gateway.policy import planning
from gateway.policy import truth as t
from gateway.policy.columns import Column, Fixed, Node
from gateway.policy.foreign.match import row_of, test_of
from gateway.policy.foreign.overlay import AS_STORED
from gateway.policy.foreign.store import ForeignStore, Ruled
from gateway.policy.residual import Reader
from gateway.policy.truth import Truth

#: Candidates that are decided at once, before others get their turn; fewer of a large question.
AT_ONCE = 100
#: Candidates that a plan is held against for each of those.
LOOKED_AT = 10
#: Whether a plan keeps a candidate.
Keeps = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Found:
    """What some candidates came to: those that are allowed, each with its place among all of them."""

    allowed: tuple[tuple[int, str], ...]


def search(store: ForeignStore, sought: Sought, asked: Asked, start: int = 0) -> Iterator[Found]:
    """Yields what is found from a place among the candidates on, by some candidates at a time, in the order of their ids.

    A plan leaves candidates out; whatever is left is decided one by one, so that a plan can never add a result. Unknown
    names find nothing. Raises `Unusable` for a value that the store cannot take.
    """
    if not _known(store, sought, asked):
        return
    candidates = _candidates(store, sought, asked)
    plan = _planned(store, asked, candidates) if sought == "resource" else None
    at_once = max(1, min(AT_ONCE, A_TURN_CHARACTERS // max(1, Sizes().of(asked))))
    for chunk in chunks(candidates, plan, range(start, len(candidates)), at_once):
        ruled = store.decide_all([asked.about(sought, candidates[at]) for at in chunk])
        for one in ruled:
            # Of the context, each action has a type of its own.
            if isinstance(one, Unusable) and not (sought == "action" and one.place.startswith("context")):
                raise one
        pairs = zip(chunk, ruled, strict=True)
        yield Found(tuple((at, candidates[at]) for at, one in pairs if isinstance(one, Ruled) and one.allowed))


def chunks(candidates: Sequence[str], plan: Keeps | None, places: range, at_once: int) -> Iterator[list[int]]:
    """Yields the places a plan keeps, so many at a time; none where it keeps none of many, so that others get their turn."""
    for first in range(0, len(places), at_once * LOOKED_AT):
        looked_at = places[first : first + at_once * LOOKED_AT]
        kept = [at for at in looked_at if plan is None or plan(candidates[at])]
        yield from (kept[at : at + at_once] for at in range(0, max(1, len(kept)), at_once))


def _known(store: ForeignStore, sought: Sought, asked: Asked) -> bool:
    """Whether everything that the question names is stored, or was sent."""
    given = {"subject": asked.subject, "resource": asked.resource}
    given.pop(sought, None)
    return all(named.properties or store.uid_of(named) in store.entities.by_uid for named in given.values())


def _candidates(store: ForeignStore, sought: Sought, asked: Asked) -> Sequence[str]:
    if sought == "action":
        return sorted(store.schema.actions)
    return store.entities.ids.get(store.type_of(asked.subject if sought == "subject" else asked.resource), ())


def _planned(store: ForeignStore, asked: Asked, candidates: Sequence[str]) -> Keeps | None:
    """What a plan says of a candidate; None where there is no plan, because something in it has no translation."""
    if not candidates:
        return None
    prepared = store.prepare(asked.about("resource", candidates[0]))
    if isinstance(prepared, Ruled) or prepared.laid is not AS_STORED:
        return None
    (action, _, type_), bundle = prepared.shape.kind, store.bundle
    if type_ not in bundle.vocabulary.entities:
        return None
    reader = StoredReader(bundle.vocabulary, type_, store.entities.above, t.ERRS, store.entities.below)
    plan = planning.plan(
        bundle,
        store.uid_of(asked.subject),
        action,
        prepared.request.get("context", "{}"),
        prepared.shape.policies,
        store.entities.handle,
        resource=type_,
        reason=_unsaid,
        reader=reader,
    )
    if plan.verdict.deny_kind in (DenyKind.EVALUATION_ERROR, DenyKind.INVALID_REQUEST):
        return None
    test, stored = test_of(plan.condition), store.entities.by_uid
    return lambda id_: test(row_of(stored[EntityUid(type_, id_)]))


def _unsaid(policy_id: str) -> Reason:
    return Reason(policy_id, "", "")


@dataclass(frozen=True, slots=True)
class StoredReader(Reader):
    """A reader that knows all entities: what a row, or an entity that it names, is in is looked up and not read from it."""

    below: Callable[[str, EntityUid], Sequence[EntityUid]] = lambda type_, group: ()

    def _within(self, left: Node, right: Node, present: frozenset[str]) -> Truth:
        read, value, turned = self._sides(left, right, present)
        if isinstance(value, Column):
            return c.refuse("`in` of two attributes")
        if turned:
            return self._given(self._above(value), lambda values: c.equals_any(read, values), _one(read))
        return self._given(value, lambda values: c.equals_any(read, self._inside(read, values)), _one(read))

    def _inside(self, read: Column, values: Fixed) -> Fixed:
        groups = [value for value in values.values if isinstance(value, EntityUid)]
        return Fixed(tuple(dict.fromkeys(uid for group in groups for uid in self.below(read.kind.name, group))))


def _one(read: Column) -> Column:
    return c.refuse(f"a comparison of the set `{read.name}`") if read.kind.many else read
