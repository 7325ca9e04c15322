"""The log under two bundles: each recorded decision taken again by the old policies, and by the new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.model.decision import Verdict
from gateway.model.memory import MemoryGrant
from gateway.model.recorded import Recorded, RecordedPage
from gateway.policy.bundle import Bundle
from gateway.policy.cases import GRANT_KEYS
from gateway.policy.evidence import Cases
from gateway.policy.replay import Replay
from gateway.policy.schema import Question
from gateway.policy.shadow import differing


@dataclass(slots=True)
class Redecided:
    """What the log has of the actions about which two bundles differ.

    `decided` counts decisions that were taken under both, by their kind; `listings` those among them that list other rows, which
    are not compared one by one. `left_out` were not taken again, by why. `broken` is the case of the first that the new bundle
    allows and the old one does not, or denies where that is not claimed.
    """

    decided: Counter[Question] = field(default_factory=Counter)
    listings: Counter[Question] = field(default_factory=Counter)
    left_out: Mapping[str, int] = field(default_factory=dict)
    broken: Mapping[str, Any] | None = None


class Redeciding:
    """Takes the log again a page at a time: by `old`; then, as if that were recorded, by `new`; and what is lost by `only`."""

    def __init__(self, old: Bundle, new: Bundle, only: Bundle, grants: Mapping[str, MemoryGrant]) -> None:
        self.found = Redecided()
        self._old = old
        self._grants = grants
        self._actions = differing(old, new) if old.schema_hash == new.schema_hash else frozenset(old.members)
        self._bodies: Mapping[str, str] = {}
        self._decided: list[Recorded] = []
        self._lost: list[Recorded] = []
        known = {old.hash: old}.get
        self._by_old = Replay(old, {}, grants, known, self._was)
        self._by_new = Replay(new, {}, grants, known, self._is)
        self._by_only = Replay(only, {}, grants, known, self._claimed)

    def add(self, page: RecordedPage) -> None:
        """Takes the decisions of a page again."""
        self._bodies, self._decided, self._lost = page.bodies, [], []
        rows = (replace(row, bundle=self._old.hash) for row in page.rows if row.action in self._actions)
        self._by_old.add(replace(page, rows=tuple(rows)))
        self._by_new.add(replace(page, rows=tuple(self._decided)))
        self._by_only.add(replace(page, rows=tuple(self._lost)))
        old, new = self._by_old.report(), self._by_new.report()
        left_out = {"erased": old.erased, "not_replayable": old.not_replayable + new.not_replayable}
        self.found.left_out = {**left_out, "not_by_policy": old.not_by_policy}

    def _was(self, row: Recorded, verdict: Verdict, _: bool) -> None:
        by, errors = verdict.policies, verdict.errors
        self._decided.append(replace(row, allowed=verdict.allowed, deny_kind=None, policies=by, errors=errors))

    def _is(self, row: Recorded, verdict: Verdict, other_rows: bool) -> None:
        kind = Question(row.action, row.principal.type, row.planned or row.resource.type)
        self.found.decided[kind] += 1
        if row.planned is not None:
            self.found.listings[kind] += other_rows or row.allowed != verdict.allowed
        elif verdict.allowed and not row.allowed:
            self._break([row])
        elif row.allowed and not verdict.allowed:
            self._lost.append(row)

    def _claimed(self, row: Recorded, verdict: Verdict, _: bool) -> None:
        if not verdict.allowed:
            self._break([row])

    def _break(self, rows: Iterable[Recorded]) -> None:
        if self.found.broken is not None:
            return
        for policies, case in Cases(self._grants, lambda _: self._old).of(RecordedPage(tuple(rows), self._bodies, None)):
            kept = {
                name: case[name] for name in ("name", "description", "request", "entities", "decision", "reason", "num_errors")
            }
            grants = [_written(self._grants[id_]) for id_ in policies.grants]
            self.found.broken = {**kept, "grants": grants} if grants else kept


def _written(grant: MemoryGrant) -> dict[str, object]:
    return {name: getattr(grant, name) for name in sorted(GRANT_KEYS)}
