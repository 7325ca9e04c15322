"""Replay: recorded decisions taken again under other policies, and who gains or loses by that."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gateway.model.decision import DenyKind, Query, Verdict
from gateway.model.memory import MemoryGrant
from gateway.model.recorded import Recorded, RecordedPage
from gateway.policy.bundle import Bundle
from gateway.policy.context import Context
from gateway.policy.engine import PolicyEngine
from gateway.policy.grants import HOLDER, ROW
from gateway.policy.slice import Slice, SliceError, from_texts
from gateway.policy.value import ValueRefused

Change = Literal["gains", "loses", "other rows"]
#: Told each decision that was taken again, its verdict, and whether it lists other rows.
Told = Callable[[Recorded, Verdict, bool], None]
#: Decisions of one kind that go to Cedar at once.
AT_ONCE = 200
#: Slices and contexts that are kept for the decisions that follow; a slice is some kilobytes.
#: INVARIANT: more than one page has decisions, so that none is dropped before its page is done.
KEPT = 8_192
#: Ids that a line of the table names.
SAMPLES = 5
#: Denials that no policy caused: the gateway withdrew what had been allowed.
NOT_BY_POLICY = frozenset({DenyKind.STALE, DenyKind.DEADLINE})


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
    `not_replayable`, which need a grant or a context that is not kept, or do not fit the schema; and those
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


@dataclass(frozen=True, slots=True)
class _Held:
    """Entities that are ready to be asked over, the grants that they name by the id of their holder, and what was answered."""

    slice: Slice
    grants: Mapping[str, tuple[str, ...]]
    verdicts: dict[Hashable, Verdict] = field(default_factory=dict)


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
        self._grants = grants
        self._bundle_of = bundle_of
        self._engines: dict[str, PolicyEngine | None] = {e.bundle.hash: e for e in (self._engine, *self._own.values())}
        self._heeding = {e.bundle.hash: e.bundle.heeding() for e in (self._engine, *self._own.values())}
        self._held: OrderedDict[tuple[str, ...], _Held | None] = OrderedDict()
        self._contexts: dict[str, Context] = {}
        self._counts: Counter[str] = Counter()
        self._lines: dict[tuple[Change, str, str, str, tuple[str, ...], tuple[str, ...]], _Line] = {}

    def add(self, page: RecordedPage) -> None:
        """Takes the decisions of a page again; those over the same entities are asked together."""
        alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Recorded]] = {}
        for row in page.rows:
            self._between()
            left_out = self._left_out(row, page.bodies)
            if left_out is not None:
                self._counts[left_out] += 1
            else:
                alike.setdefault((row.org_id, row.slices, self._granted(row)), []).append(row)
        for (org_id, slices, ids), asked in alike.items():
            if all(id_ in self._grants for id_ in ids):
                engine = self._own.get(org_id, self._engine)
                self._decide(engine, asked, self._entities(slices, page.bodies), [self._grants[id_] for id_ in ids])
            else:
                self._counts["not_replayable"] += len(asked)

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

    def _left_out(self, row: Recorded, bodies: Mapping[str, str]) -> str | None:
        """Returns what a row counts as that cannot be asked; None for one that can, as far as is seen before its context."""
        if row.deny_kind in NOT_BY_POLICY:
            return "not_by_policy"
        if not row.slices or row.context is None:
            return "not_replayable"
        if row.slices not in self._held and any(hash_ not in bodies for hash_ in row.slices):
            return "erased"
        try:
            self._entities(row.slices, bodies)
        except (SliceError, KeyError, ValueError, TypeError):
            return "not_replayable"
        return None

    def _query(self, row: Recorded) -> Query | None:
        """Returns what to ask; None, and the row is counted, when its context is not one."""
        try:
            return Query(row.principal, row.action, row.resource, self._context(row.context or {}))
        except (ValueRefused, KeyError, ValueError, TypeError):
            self._counts["not_replayable"] += 1
            return None

    def _context(self, shown: Mapping[str, object]) -> Context:
        key = repr(shown)
        if key not in self._contexts:
            if len(self._contexts) >= KEPT:
                self._contexts.clear()
            self._contexts[key] = Context.from_record(shown)
        return self._contexts[key]

    def _entities(self, slices: tuple[str, ...], bodies: Mapping[str, str]) -> _Held:
        """Returns the entities of some slices laid together; raises `SliceError` for those that do not fit the schema."""
        if slices in self._held:
            self._held.move_to_end(slices)
        else:
            self._held[slices] = self._read(slices, bodies)
            if len(self._held) > KEPT:
                self._held.popitem(last=False)
        held = self._held[slices]
        if held is None:
            raise SliceError("entities of another schema")
        return held

    def _read(self, slices: tuple[str, ...], bodies: Mapping[str, str]) -> _Held | None:
        try:
            made = from_texts(self._engine.bundle, [bodies[hash_] for hash_ in slices], salt=b"")
        except SliceError:
            return None
        holders = [entity for entity in json.loads(made.text) if entity["uid"]["type"] == HOLDER]
        return _Held(made, {holder["uid"]["id"]: tuple(holder["attrs"]["grants"]) for holder in holders})

    def _granted(self, row: Recorded) -> tuple[str, ...]:
        """The grants that decide a row: those that its principal held, where it is a remote agent that asks about rows."""
        if row.principal.type != HOLDER or ROW not in (row.planned, row.resource.type):
            return ()
        held = self._held[row.slices]
        return () if held is None else held.grants.get(row.principal.id, ())

    def _decide(self, engine: PolicyEngine, asked: Iterable[Recorded], held: _Held, grants: Sequence[MemoryGrant]) -> None:
        """Decides over the same entities; the same question is asked once, for nothing else is in its answer."""
        single: list[tuple[Recorded, Hashable]] = []
        fresh: dict[Hashable, Query] = {}
        bundle, ids = engine.bundle.hash, tuple([grant.id for grant in grants])
        heeding = self._heeding[bundle]
        for row in asked:
            if row.planned is not None:
                if (query := self._query(row)) is not None:
                    self._plan(engine, row, row.planned, query, held.slice, grants)
                continue
            context = repr(row.context) if row.action in heeding else None
            key: Hashable = (bundle, row.principal, row.action, row.resource, context, ids)
            if key not in held.verdicts and key not in fresh:
                if (query := self._query(row)) is None:
                    continue
                fresh[key] = query
            single.append((row, key))
        alike = sorted(fresh.items(), key=_kind)
        for start in range(0, len(alike), AT_ONCE):
            self._between()
            part = alike[start : start + AT_ONCE]
            verdicts = engine.decide_all([query for _, query in part], held.slice, grants)
            held.verdicts.update(zip([key for key, _ in part], verdicts, strict=True))
        for row, key in single:
            self._note(row, held.verdicts[key])

    def _plan(
        self, engine: PolicyEngine, row: Recorded, planned: str, query: Query, slice: Slice, grants: Sequence[MemoryGrant]
    ) -> None:
        """Plans a listing again. When it is allowed both times, what it says of the rows has to be the same as well."""
        self._between()
        made = engine.plan(query, planned, slice, grants)
        recorded = self._recorded_engine(row.bundle)
        if not (row.allowed and made.verdict.allowed) or recorded is engine:
            self._note(row, made.verdict)
        elif recorded is None or recorded.bundle.schema_hash != engine.bundle.schema_hash:
            self._counts["not_replayable"] += 1
        else:
            other = recorded.plan(query, planned, slice, grants).condition != made.condition
            self._note(row, made.verdict, other_rows=other)

    def _recorded_engine(self, bundle_hash: str) -> PolicyEngine | None:
        if bundle_hash not in self._engines:
            bundle = self._bundle_of(bundle_hash)
            self._engines[bundle_hash] = None if bundle is None else PolicyEngine(bundle, salt=b"")
        return self._engines[bundle_hash]

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
