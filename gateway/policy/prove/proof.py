"""Proofs: a claim about bundles, searched for an exception among every request and every store of the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from gateway.policy.bundle import Bundle
from gateway.policy.finding import PolicyError
from gateway.policy.prove import counterexample
from gateway.policy.prove.counterexample import Answers, Counterexample
from gateway.policy.prove.invariants import INVARIANTS, Invariant
from gateway.policy.prove.logic import Term, never, no
from gateway.policy.prove.scene import Scene
from gateway.policy.prove.schema import Unprovable, encodable
from gateway.policy.schema import Question, questions

Status = Literal["proved", "refuted", "open"]
#: Told how many of how many kinds of question are done.
Progress = Callable[[int, int], None]


def _silent(done: int, total: int) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What became of a claim.

    `questions` counts the kinds of question, an action between two types, that it speaks of; of two bundles `reached` has
    those that they differ in, and whether each is proved. `whatever` is whether the forbids alone keep an invariant, so that
    no permit that is added could break it. `assumed` names policies that cannot be encoded, and why; a proof holds whatever
    they answer. `open` says why it is neither proved nor refuted.
    """

    claim: str
    sentence: str
    status: Status
    questions: int
    whatever: bool
    assumed: tuple[str, ...]
    open: tuple[str, ...]
    counterexample: Counterexample | None
    reached: Mapping[Question, bool] = field(default_factory=dict)


@dataclass(slots=True)
class _Search:
    """One claim while it is searched for an exception."""

    claim: str
    sentence: str
    questions: int = 0
    whatever: bool = True
    assumed: dict[str, None] = field(default_factory=dict)
    open: dict[str, None] = field(default_factory=dict)
    found: Counterexample | None = None
    reached: dict[Question, bool] = field(default_factory=dict)

    def look(self, scene: Scene, answers: Answers) -> None:
        """Looks for a request at which all bundles answer so."""
        terms = [_as(scene.allowed(bundle), wanted) for bundle, wanted in answers]
        if (model := scene.model(*terms)) is None:
            return
        found = counterexample.made(scene, model, answers, f"{self.claim}: {_place(scene.question)}")
        if found.confirmed or not scene.assumed:
            self.found = found
        else:
            self.leave(scene.question, "; ".join(f"`{id_}` holds {why}" for id_, why in scene.assumed.items()))

    def leave(self, question: Question, why: str) -> None:
        self.open[f"{_place(question)}: {why}"] = None
        self.reached[question] = False

    def proof(self) -> Proof:
        refuted = self.found is not None and self.found.confirmed
        if self.found is not None and not refuted:
            self.open[f"the engine disagrees with the encoding: it {', and '.join(self.found.said)}"] = None
        status: Status = "refuted" if refuted else "open" if self.open else "proved"
        return Proof(
            self.claim,
            self.sentence,
            status,
            self.questions,
            self.whatever and status == "proved",
            tuple(self.assumed),
            tuple(self.open),
            self.found,
            self.reached,
        )


def prove(bundle: Bundle, invariants: Sequence[Invariant] = INVARIANTS, *, progress: Progress = _silent) -> list[Proof]:
    """Returns a proof for each invariant: that a bundle allows nothing that it forbids.

    An invariant that the forbids alone do not keep is tried again with the permits as they are. As all proofs it raises
    `Unprovable` for a schema that cannot be encoded.
    """
    searches = [_Search(claim.name, claim.sentence) for claim in invariants]
    claims: list[tuple[_Search, Bundle]] = []
    for search, claim in zip(searches, invariants, strict=True):
        try:
            claims.append((search, claim.bound(bundle)))
        except PolicyError as error:
            search.open[f"it is not about this schema: {error}"] = None
    for scene in _scenes(bundle, progress):
        for search, bound in claims:
            if search.found is None:
                with _named(search, scene):
                    _keeps(search, scene, bundle, bound)
    return [search.proof() for search in searches]


def implies(candidate: Bundle, current: Bundle, *, progress: Progress = _silent) -> Proof:
    """Returns a proof that a candidate grants nothing that the current bundle does not."""
    search = _Search("implies", "The candidate grants nothing new.")
    return _compared(search, [((candidate, True), (current, False))], candidate, current, progress)


def equivalent(one: Bundle, other: Bundle, *, progress: Progress = _silent) -> Proof:
    """Returns a proof that two bundles allow the same."""
    search = _Search("equivalent", "Both allow the same.")
    ways: list[Answers] = [((one, True), (other, False)), ((other, True), (one, False))]
    return _compared(search, ways, one, other, progress)


def changes(old: Bundle, new: Bundle, only: Bundle, *, progress: Progress = _silent) -> Proof:
    """Returns a proof that a new bundle allows nothing more than the old one, and less only where `only` allows.

    Of a schema that cannot be encoded nothing is proved, and `open` says so.
    """
    search = _Search("changes", "The new policies differ only where it is said, and only narrow there.")
    try:
        return _compared(search, ways(old, new, only), old, new, progress)
    except Unprovable as outside:
        search.open[str(outside)] = None
        return search.proof()


def ways(old: Bundle, new: Bundle, only: Bundle) -> list[Answers]:
    """Returns what would break such a claim: the new bundle opens something, or shuts what it should not."""
    return [((new, True), (old, False)), ((old, True), (new, False), (only, False))]


def _compared(search: _Search, ways: Sequence[Answers], one: Bundle, other: Bundle, progress: Progress) -> Proof:
    search.whatever = False
    if str(one.schema) != str(other.schema):
        search.open["the schemas differ"] = None
        return search.proof()
    for scene in _scenes(one, progress):
        if {id_: t for id_, t in scene.trees(one)} == {id_: t for id_, t in scene.trees(other)}:
            continue
        search.questions += 1
        search.reached[scene.question] = True
        for way in ways:
            if search.found is None:
                with _named(search, scene):
                    search.look(scene, way)
        if search.found is not None:
            search.reached[scene.question] = False
    return search.proof()


def _scenes(bundle: Bundle, progress: Progress) -> Iterable[Scene]:
    types = encodable(bundle.types)
    kinds = list(questions(types))
    for number, kind in enumerate(kinds, start=1):
        yield Scene(bundle, kind, types)
        progress(number, len(kinds))


def _keeps(search: _Search, scene: Scene, bundle: Bundle, bound: Bundle) -> None:
    broken = no(scene.open(bound))
    if never(broken):
        return
    search.questions += 1
    if scene.model(scene.open(bundle), broken) is None:
        return
    search.whatever = False
    search.look(scene, ((bundle, True), (bound, False)))


@contextmanager
def _named(search: _Search, scene: Scene) -> Iterator[None]:
    """Names what is outside of the encoding, and goes on with the next kind of question."""
    try:
        yield
    except Unprovable as error:
        search.leave(scene.question, str(error))
    search.assumed.update(dict.fromkeys(f"`{id_}` holds {why}" for id_, why in scene.assumed.items()))


def _as(term: Term, wanted: bool) -> Term:
    return term if wanted else no(term)


def _place(question: Question) -> str:
    return f"{question.principal} {question.action} {question.resource}"
