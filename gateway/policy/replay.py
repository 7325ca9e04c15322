"""Replay: recorded decisions taken again under other policies, and who gains or loses by that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gateway.model.decision import Query, Verdict
from gateway.model.memory import MemoryGrant
from gateway.model.recorded import Recorded, RecordedPage
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.laid import Laid, Laying, Lost
from gateway.recent import Recent

Change = Literal["gains", "loses", "other rows"]
#: Told each decision that was taken again, its verdict, and whether it lists other rows.
Told = Callable[[Recorded, Verdict, bool], None]
#: Decisions of one kind that go to Cedar at once.
AT_ONCE = 200
#: Answers that are kept for the decisions that follow, and engines of recorded policies.
ANSWERS, ENGINES = 32_768, 32
#: Ids that a line of the table names.
SAMPLES = 5
#: What a decision counts as that is not taken again.
COUNTED: Mapping[Lost, str] = {"withdrawn": "not_by_policy", "erased": "erased", "never_kept": "erased"}


@dataclass(frozen=True, slots=True, order=True)
class Flip:
    """One line of the table: decisions of one principal and action that come out otherwise, for one and the same cause.

    `before` are the policies that decided as recorded, `now` those that decide under the candidate; `samples` are the ids of
    the first decisions. `other rows` stands for a listing that is allowed both times, with another condition on its rows.
    """

    change: Change
    principal: str
    action: str
    resource_type: str
    before: tuple[str, ...]
    now: tuple[str, ...]
    count: int
    samples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay found. All but `bundle` and `flips` are counts of answers.

    `decided` were taken again: they are the `same`, `gains`, `loses` and `other_rows`; `other_policies` of the same came about
    by other policies, or with other errors. Left out are the `erased`, whose entities are not kept any more; the
    `not_replayable`, which need a grant or a context that is not kept, do not fit the schema, or cannot be read; and those
    `not_by_policy`, which the gateway withdrew.
    """

    bundle: str
    decided: int
    same: int
    gains: int
    loses: int
    other_rows: int
    other_policies: int
    erased: int
    not_replayable: int
    not_by_policy: int
    flips: tuple[Flip, ...]

    @property
    def opens(self) -> bool:
        """Whether anybody gains, or could: rows that are listed under another condition are not compared one by one."""
        return self.gains + self.other_rows > 0


@dataclass(slots=True)
class _Line:
    count: int = 0
    samples: list[str] = field(default_factory=list)


def _untold(row: Recorded, verdict: Verdict, other_rows: bool) -> None:
    """Nobody wants to know of one alone."""


def _goes_on() -> None:
    """Nothing ends it."""


class Replay:
    """Takes recorded decisions again under a candidate, a page at a time.

    `own` are the bundles of the organisations that have policies of their own, by their id, under the candidate's schema.
    `grants` are all that there were, by id; `bundle_of` gives the bundle of a hash, None when it is not known. `told` is
    called with each answer, and `between` between two calls to Cedar: what it raises ends the page there.
    """

    def __init__(
        self,
        candidate: Bundle,
        own: Mapping[str, Bundle],
        grants: Mapping[str, MemoryGrant],
        bundle_of: Callable[[str], Bundle | None],
        told: Told = _untold,
        between: Callable[[], None] = _goes_on,
    ) -> None:
        self._told = told
        self._between = between
        self._engine = PolicyEngine(candidate, salt=b"")
        self._own = {org_id: self._engine.sibling(bundle) for org_id, bundle in own.items()}
        self._bundle_of = bundle_of
        self._deciding = {e.bundle.hash: e for e in (self._engine, *self._own.values())}
        self._engines: Recent[str, PolicyEngine | None] = Recent(ENGINES)
        self._heeding = {e.bundle.hash: e.bundle.heeding() for e in (self._engine, *self._own.values())}
        self._laying = Laying(candidate, grants)
        self._verdicts: dict[Hashable, Verdict] = {}
        self._counts: Counter[str] = Counter()
        self._lines: dict[tuple[Change, str, str, str, tuple[str, ...], tuple[str, ...]], _Line] = {}

    def add(self, page: RecordedPage) -> None:
        """Takes the decisions of a page again; those over the same entities are asked together."""
        alike: dict[Hashable, list[Laid]] = {}
        for row in page.rows:
            self._between()
            laid = self._laying.lay_out(row, page.bodies)
            if isinstance(laid, str):
                self._counts[COUNTED.get(laid, "not_replayable")] += 1
            else:
                alike.setdefault((row.org_id, row.slices, laid.grants), []).append(laid)
        for asked in alike.values():
            self._decide(self._own.get(asked[0].row.org_id, self._engine), asked)

    def report(self) -> Report:
        """Returns what was found so far."""
        counts = self._counts
        return Report(
            bundle=self._engine.bundle.hash,
            decided=counts["same"] + counts["gains"] + counts["loses"] + counts["other rows"],
            same=counts["same"],
            gains=counts["gains"],
            loses=counts["loses"],
            other_rows=counts["other rows"],
            other_policies=counts["other_policies"],
            erased=counts["erased"],
            not_replayable=counts["not_replayable"],
            not_by_policy=counts["not_by_policy"],
            flips=tuple(sorted(Flip(*key, line.count, tuple(line.samples)) for key, line in self._lines.items())),
        )

    def _decide(self, engine: PolicyEngine, asked: Sequence[Laid]) -> None:
        """Decides over the same entities; the same question is asked once, for nothing else is in its answer."""
        over = asked[0]
        single: list[tuple[Recorded, Hashable, Verdict | None]] = []
        fresh: dict[Hashable, Query] = {}
        answered: dict[Hashable, Verdict] = {}
        bundle, ids = engine.bundle.hash, tuple([grant.id for grant in over.grants])
        heeding = self._heeding[bundle]
        for laid in asked:
            row = laid.row
            if row.planned is not None:
                self._plan(engine, row.planned, laid)
                continue
            context = repr(row.context) if row.action in heeding else None
            key: Hashable = (bundle, row.principal, row.action, row.resource, context, row.slices, ids)
            verdict = self._verdicts.get(key)
            if verdict is None and key not in fresh:
                fresh[key] = laid.query
            single.append((row, key, verdict))
        alike = sorted(fresh.items(), key=_kind)
        for start in range(0, len(alike), AT_ONCE):
            self._between()
            part = alike[start : start + AT_ONCE]
            verdicts = engine.decide_all([query for _, query in part], over.slice, over.grants)
            answered.update(zip([key for key, _ in part], verdicts, strict=True))
        for row, key, verdict in single:
            self._note(row, verdict or answered[key])
        if len(self._verdicts) + len(answered) > ANSWERS:
            self._verdicts.clear()
        self._verdicts.update(answered)

    def _plan(self, engine: PolicyEngine, planned: str, laid: Laid) -> None:
        """Plans a listing again. When it is allowed both times, what it says of the rows has to be the same as well."""
        self._between()
        row, made = laid.row, engine.plan(laid.query, planned, laid.slice, laid.grants)
        recorded = self._recorded_engine(row.bundle)
        if not (row.allowed and made.verdict.allowed) or recorded is engine:
            self._note(row, made.verdict)
        elif recorded is None or recorded.bundle.schema_hash != engine.bundle.schema_hash:
            self._counts["not_replayable"] += 1
        else:
            other = recorded.plan(laid.query, planned, laid.slice, laid.grants).condition != made.condition
            self._note(row, made.verdict, other_rows=other)

    def _recorded_engine(self, bundle_hash: str) -> PolicyEngine | None:
        return self._deciding.get(bundle_hash) or self._engines.of(bundle_hash, lambda: self._engine_of(bundle_hash))

    def _engine_of(self, bundle_hash: str) -> PolicyEngine | None:
        bundle = self._bundle_of(bundle_hash)
        return None if bundle is None else PolicyEngine(bundle, salt=b"")

    def _note(self, row: Recorded, verdict: Verdict, *, other_rows: bool = False) -> None:
        self._told(row, verdict, other_rows)
        if row.allowed == verdict.allowed and not other_rows:
            self._counts["same"] += 1
            self._counts["other_policies"] += row.policies is not None and (row.policies, row.errors) != (
                verdict.policies,
                verdict.errors,
            )
            return
        change: Change = "other rows" if other_rows else "gains" if verdict.allowed else "loses"
        self._counts[change] += 1
        about = row.planned or row.resource.type
        key = (change, str(row.principal), row.action, about, row.policies or (), verdict.policies)
        line = self._lines.setdefault(key, _Line())
        line.count += 1
        if len(line.samples) < SAMPLES:
            line.samples.append(row.id)


def _kind(asked: tuple[Hashable, Query]) -> tuple[str, str, str, str]:
    _, query = asked
    return query.action, query.principal.type, query.principal.id, query.resource.type
