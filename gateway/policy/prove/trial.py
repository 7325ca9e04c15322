"""A trial: a claim of where two bundles differ, put to the engine with the log, cases and samples where no proof reaches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

from gateway.model.decision import DenyKind
from gateway.policy import cases as written
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case
from gateway.policy.engine import PolicyEngine
from gateway.policy.prove import counterexample
from gateway.policy.prove.counterexample import Answers, Counterexample
from gateway.policy.prove.proof import Proof, ways
from gateway.policy.redecided import Redecided
from gateway.policy.samples import Samples
from gateway.policy.schema import Question
from gateway.policy.shadow import differing
from gateway.policy.slice import SliceError

#: Requests that are made of each kind of question that is not proved, and how many are made for each that fits the schema.
SAMPLES, WASTED = 200, 20


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a kind of question that two bundles differ in: a proof, or else only so many requests that were asked.

    `replayed` are decisions of the log, of which `listings` list rows under another condition that nobody compared; `cases`
    and `sampled` are requests of files and of chance, of what is not proved.
    """

    question: Question
    proved: bool
    replayed: int = 0
    listings: int = 0
    cases: int = 0
    sampled: int = 0


@dataclass(frozen=True, slots=True)
class Trial:
    """A proof with what was tried beside it; its status is `refuted` where anything that was asked breaks the claim."""

    proof: Proof
    standings: tuple[Standing, ...]


def tried(
    proof: Proof,
    old: Bundle,
    new: Bundle,
    only: Bundle,
    cases: Sequence[Case],
    *,
    log: Redecided | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Trial:
    """Returns what is known of each kind of question that two bundles differ in; nothing more is asked once the claim is broken.

    Of kinds that are not proved the cases are decided, and as many requests of chance, which a seed makes again. Without a
    schema that a proof can read the kinds are those of the cases and of the log.
    """
    log = log if log is not None else Redecided()
    jury = _Jury(old, new, only)
    if proof.status != "refuted" and log.broken is not None:
        jury.ask(written.from_json(log.broken))
    actions = differing(old, new) if old.schema_hash == new.schema_hash else frozenset(old.members)
    asked: dict[Question, list[Case]] = {}
    for case in cases:
        asked.setdefault(Question(case.action, case.principal.type, case.resource.type), []).append(case)
    kinds = dict(proof.reached)
    if not kinds:
        kinds = dict.fromkeys((*(kind for kind in asked if kind.action in actions), *log.decided), False)
    made = Samples(cases, [bundle.trees[id_] for bundle in (old, new) for id_ in _changed(old, new) & bundle.trees.keys()])
    counted: dict[Question, tuple[int, int]] = {}
    for kind in sorted(kind for kind, proved in kinds.items() if not proved and proof.status != "refuted"):
        own = jury.count(asked.get(kind, ()), len(asked.get(kind, ())))
        chance = Random(f"{seed} {kind}")  # noqa: S311 - to be made again, not to be unforeseen
        counted[kind] = own, jury.count(islice(made.of(kind, chance), samples * WASTED), samples)
    standings = [
        Standing(kind, proved, log.decided[kind], log.listings[kind], *counted.get(kind, (0, 0)))
        for kind, proved in sorted(kinds.items())
    ]
    proof = replace(proof, questions=len(kinds))
    if jury.found is not None:
        proof = replace(proof, status="refuted", counterexample=jury.found)
    return Trial(proof, tuple(standings))


class _Jury:
    """The engine under the old bundle, the new one and the claim."""

    def __init__(self, old: Bundle, new: Bundle, only: Bundle) -> None:
        self.found: Counterexample | None = None
        self._ways: list[Answers] = ways(old, new, only)
        self._engines = [PolicyEngine(bundle, salt=b"") for bundle in (old, new, only)]

    def count(self, cases: Iterable[Case], most: int) -> int:
        """Returns how many requests were asked, until as many fit the schema or one breaks the claim."""
        asked = 0
        for case in cases:
            if asked == most or self.found is not None:
                break
            asked += self.ask(case)
        return asked

    def ask(self, case: Case) -> bool:
        """Decides a case under all, and keeps it when the answers break the claim; returns whether it fits the schema."""
        try:
            asked = [written.prepare(engine, [case])[0] for engine in self._engines]
        except SliceError:
            return False
        old, new, only = (e.decide(query, slice, case.grants) for e, (_, query, slice) in zip(self._engines, asked, strict=True))
        broken = [new.allowed and not old.allowed, old.allowed and not new.allowed and not only.allowed]
        for way, breaks in zip(self._ways, broken, strict=True):
            if breaks:
                self.found = counterexample.tried(case, way)
        return DenyKind.INVALID_REQUEST not in (old.deny_kind, new.deny_kind)


def _changed(old: Bundle, new: Bundle) -> set[str]:
    """The ids of the policies that are not the same in both."""
    one, other = ({(id_, info.text) for id_, info in bundle.policies.items()} for bundle in (old, new))
    return {id_ for id_, _ in one ^ other}
