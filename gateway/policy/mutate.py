"""Mutation: whether the cases would notice a small mistake, in any of the policies."""

from __future__ import annotations

import difflib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import cedarpy
from cedarpy import pst

from gateway.model.decision import DenyKind
from gateway.policy import grants
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case, prepare
from gateway.policy.engine import PolicyEngine
from gateway.policy.holding import Probes
from gateway.policy.mutants import Mutant, could_matter, mutants

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that no case tells from its policy; `diff` is a unified diff of the policy as Cedar writes both."""

    id: str
    policy_id: str
    file: str
    line: int
    diff: str


@dataclass(frozen=True, slots=True)
class Score:
    """How many mutants there are, how many a case notices, and the others by id."""

    total: int
    killed: int
    survivors: tuple[Survivor, ...]

    @property
    def percent(self) -> int:
        """How many of a hundred are noticed, rounded down: 100 only when all are."""
        return 100 * self.killed // self.total if self.total else 100


def mutate(
    bundle: Bundle,
    cases: Iterable[Case],
    *,
    sample: int | None = None,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Score:
    """Returns how many mutants of all policies the cases notice; raises `SliceError`.

    A mutant of a permit is judged among the permits alone, one of a forbid beside a permit of everything: it is killed when
    decision, ids or errors of any case change. One that no valid request could tell from its policy does not count.
    `sample` takes so many of them, drawn by `seed`. `progress` is told how many cases are done, and of how many.

    INVARIANT: what is changed is one policy, and each policy that holds is among the ids: of the permits when there is no
    forbid, of the forbids always. So the answer changes exactly when the policy, asked for itself, answers otherwise; and
    all mutants are asked at once.
    """
    made = [mutant for id_ in bundle.policies for mutant in mutants(bundle, id_)]
    if sample is not None and sample < len(made):
        made = random.Random(seed).sample(made, sample)  # noqa: S311 (a sample, no secret)
    unnoticed = _unnoticed(bundle, made, list(cases), progress)
    alive = sorted((mutant for mutant in unnoticed if could_matter(bundle, mutant)), key=lambda mutant: mutant.id)
    killed = len(made) - len(unnoticed)
    return Score(killed + len(alive), killed, tuple(_survivor(bundle, mutant) for mutant in alive))


def _unnoticed(bundle: Bundle, made: list[Mutant], cases: list[Case], progress: Progress) -> list[Mutant]:
    changed = {mutant.id: mutant.tree for mutant in made if mutant.tree is not None}
    probes = Probes(
        bundle, {**{("policy", id_): t for id_, t in bundle.trees.items()}, **{("mutant", i): t for i, t in changed.items()}}
    )
    engine = PolicyEngine(bundle, salt=b"")
    alive = made
    for done, (case, query, slice) in enumerate(prepare(engine, cases), start=1):
        if engine.decide(query, slice, case.grants).deny_kind is not DenyKind.INVALID_REQUEST:
            held = probes.held(query, slice)
            alive = [mutant for mutant in alive if held.of(("mutant", mutant.id)) == held.of(("policy", mutant.policy_id))]
        progress(done, len(cases))
    return alive


def _survivor(bundle: Bundle, mutant: Mutant) -> Survivor:
    info = bundle.policies[mutant.policy_id]
    before = _text(bundle.trees[mutant.policy_id])
    after = "" if mutant.tree is None else _text(mutant.tree)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), info.file, f"{info.file} ({mutant.id})", lineterm="")
    return Survivor(mutant.id, info.id, info.file, info.line, "\n".join(lines))


def _text(tree: pst.Template) -> str:
    return cedarpy.format_policies(grants.as_text({tree.id: tree}))
