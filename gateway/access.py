"""The one door: every decision is asked for here, recorded here, and turned into a grant or a refusal here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar, cast

from gateway.errors import Forbidden, NotFound
from gateway.model.caller import Caller
from gateway.model.decision import DenyKind, Query, Reason, Verdict
from gateway.model.entity import Entity, EntityUid
from gateway.model.evidence import LogRow
from gateway.model.grant import Basis, Grant, Session
from gateway.model.ids import new_id
from gateway.model.proposal import Proposal
from gateway.model.records import Org
from gateway.moment import Moment, Moments
from gateway.policy.engine import PolicyEngine, one_reason
from gateway.policy.slice import Slice
from gateway.store.entities import Compiler, Missing, Target, proposal_entity, uid_of
from gateway.store.state import State

T = TypeVar("T", bound=Target | Proposal)
K = TypeVar("K", bound=Target)

#: Compiled slices kept for the (principal, resource) pairs asked about last; one is some kilobytes.
CACHED_SLICES = 16_384
NO_POLICY_PERMITS = "no policy permits this"


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision that was asked for its answer, not as a door: `allowed`, and the reason when not."""

    allowed: bool
    reason: Reason | None
    row: LogRow


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A slice and what it was made from.

    `target` is part of that: an approval is read from the store and a peer can be asked about as it would be, so that one
    uid may stand for different targets under one version.
    """

    target: Target | None
    version: int
    valid_from: datetime
    valid_until: datetime | None
    entities: tuple[Entity, ...]
    slice: Slice

    def stands(self, target: Target | None, version: int, now: datetime) -> bool:
        same = self.target is target or self.target == target
        return same and self.version == version and _within(now, self.valid_from, self.valid_until)


@dataclass(frozen=True, slots=True)
class _Question:
    """One question to the engine and all that its record needs. Asked over the last of `slices`, which holds the others."""

    session: Session
    principal: Caller
    target: Target | None
    query: Query
    moment: Moment
    compiled: _Compiled
    slices: tuple[Slice, ...]


class Access:
    """Asks the engine over the entities of the authorization state; the only maker of a `Grant`.

    A compiled slice is kept while its target and the state's version stand and no lease, pause or lifetime in it has
    ended. A decision and its record are never kept.
    """

    def __init__(self, engine: PolicyEngine, state: State) -> None:
        self.engine = engine
        self._state = state
        self._compiler = Compiler(state)
        self._slices: OrderedDict[tuple[EntityUid, EntityUid, bool], _Compiled] = OrderedDict()
        self._moments = Moments(state)

    def authorize(self, session: Session, action: str, target: T | Missing, *, hide: bool = False) -> Grant[T]:
        """Decide `action` on `target` for the session's caller.

        Raises:
            NotFound: the target is missing for this caller, or `hide` is set and the answer is no.
            Forbidden: the answer is no; with the decision's id and the public reason.
        """
        verdict, row = self._decide(session, session.caller, action, target)
        session.rows.append(row)
        return self._grant(session, action, target, verdict, row, hide=hide)

    def authorize_with(self, session: Session, action: str, also: str, target: K | Missing) -> tuple[Grant[K], bool]:
        """As `authorize`, with a second question about the same target in the same breath, and whether its answer is yes.

        A yes to the second is noted on the row of the first, a no is a row of its own.
        """
        if isinstance(target, Missing):
            return self.authorize(session, action, target), False
        first = self._question(session, session.caller, action, target)
        second = replace(first, query=replace(first.query, action=also))
        verdict, other = self.engine.decide_together((first.query, second.query), first.slices[-1])
        row = self._record(first, verdict)
        session.rows.append(row)
        grant: Grant[K] = self._grant(session, action, target, verdict, row, hide=False)
        if other.allowed:
            grant.note(also=[{"action": also, "policies": list(other.policies)}])
        else:
            denied = self._record(second, other)
            session.rows.append(replace(denied, details={**denied.details, "within": action}))
        return grant, other.allowed

    def authorize_first(self, session: Session, actions: Sequence[str], target: T | Missing) -> Grant[T]:
        """The first of `actions`, widest first, that is allowed. One row: the deciding one, naming the wider that were not."""
        wider: list[str] = []
        for action in actions:
            verdict, row = self._decide(session, session.caller, action, target)
            if verdict.allowed or action == actions[-1]:
                break
            wider.append(action)
        if wider:
            row = replace(row, details={**row.details, "not_allowed": wider})
        session.rows.append(row)
        return self._grant(session, action, target, verdict, row, hide=False)

    def authorize_proposal(self, session: Session, action: str, proposal: Proposal) -> Grant[Proposal]:
        """As `authorize`, about an action that the calling agent proposes."""
        verdict, row = self._decide_proposal(session, session.caller, action, proposal, person_paused=False)
        session.rows.append(row)
        return self._grant(session, action, proposal, verdict, row, hide=False)

    def ask(self, session: Session, action: str, target: Target | Proposal, *, principal: Caller | None = None) -> Ruling:
        """Decide and record without raising, for the caller or for another principal of its organisation."""
        verdict, row = self._decide(session, principal or session.caller, action, target)
        session.rows.append(row)
        return _ruling(verdict, row)

    def ask_automatic(self, session: Session, proposal: Proposal, *, principal: Caller, person_paused: bool) -> Ruling:
        """May this be automatic? Decided by the principal's own written rules; no history reaches the question."""
        verdict, row = self._decide_proposal(session, principal, "suggest_auto", proposal, person_paused=person_paused)
        session.rows.append(row)
        return _ruling(verdict, row)

    def stands(self, session: Session, now: datetime) -> bool:
        """Whether everything that the session's decisions rest on is still so.

        Safe on any thread: it compiles from the state and asks no engine.
        """
        return all(self._basis_stands(basis, now) for basis in session.bases)

    def _grant(
        self, session: Session, action: str, target: T | Missing, verdict: Verdict, row: LogRow, *, hide: bool
    ) -> Grant[T]:
        if isinstance(target, Missing):
            raise NotFound
        if verdict.allowed:
            return Grant(session, action, uid_of(target), target, row)
        if hide:
            raise NotFound
        reason = one_reason(verdict)
        raise Forbidden(reason.text if reason is not None else NO_POLICY_PERMITS, decision_id=row.id)

    # -- deciding

    def _decide(self, session: Session, principal: Caller, action: str, target: Target | Proposal) -> tuple[Verdict, LogRow]:
        if isinstance(target, Proposal):
            return self._decide_proposal(session, principal, action, target, person_paused=False)
        return self._answer(self._question(session, principal, action, target))

    def _decide_proposal(
        self, session: Session, principal: Caller, action: str, proposal: Proposal, *, person_paused: bool
    ) -> tuple[Verdict, LogRow]:
        authority = self._compiled(principal, None, session.now)
        entity = proposal_entity(proposal, principal.org_id, person_paused=person_paused)
        slices = (authority.slice, self.engine.extend(authority.slice, entity))
        moment = self._moments.at(principal.org_id, session.now)
        query = Query(principal.uid, action, entity.uid, moment.context)
        return self._answer(_Question(session, principal, None, query, moment, authority, slices))

    def _question(self, session: Session, principal: Caller, action: str, target: Target) -> _Question:
        compiled = self._compiled(principal, target, session.now)
        moment = self._moments.at(principal.org_id, session.now)
        query = Query(principal.uid, action, uid_of(target), moment.context)
        return _Question(session, principal, target, query, moment, compiled, (compiled.slice,))

    def _answer(self, question: _Question) -> tuple[Verdict, LogRow]:
        verdict = self.engine.decide(question.query, question.slices[-1])
        return verdict, self._record(question, verdict)

    def _compiled(self, principal: Caller, target: Target | None, now: datetime) -> _Compiled:
        key = (principal.uid, uid_of(target) if target is not None else principal.uid, target is None)
        version = self._state.version  # read first: what changes meanwhile makes the next look-up compile again
        kept = self._slices.get(key)
        if kept is not None and kept.stands(target, version, now):
            self._slices.move_to_end(key)
            return kept
        entities, valid_until = self._compile(principal, target, now)
        made = self._slices[key] = _Compiled(target, version, now, valid_until, entities, self.engine.slice(*entities))
        if len(self._slices) > CACHED_SLICES:
            self._slices.popitem(last=False)
        return made

    def _compile(self, principal: Caller, target: Target | None, now: datetime) -> tuple[tuple[Entity, ...], datetime | None]:
        if target is None:
            return self._compiler.compile_authority(principal, principal.org_id, now)
        return self._compiler.compile(principal, target, now)

    def _basis_stands(self, basis: Basis, now: datetime) -> bool:
        if basis.decision.data_version == self._state.version and _within(now, basis.since, basis.until):
            return True
        target = cast(Target | None, basis.target)
        entities, _ = self._compile(basis.principal, self._compiler.current(target) if basis.kept else target, now)
        return entities == basis.entities

    def _record(self, question: _Question, verdict: Verdict) -> LogRow:
        """The row of a decision; what a yes rests on goes to the session."""
        session, principal, target, query = question.session, question.principal, question.target, question.query
        compiled = question.compiled
        kind = verdict.deny_kind
        if kind is DenyKind.FORBIDDEN and all(reason.code == DenyKind.PAUSED for reason in verdict.reasons):
            kind = DenyKind.PAUSED
        details: dict[str, object] = {"context": question.moment.shown}
        if verdict.errors:
            details["errors"] = list(verdict.errors)
        if principal is not session.caller and principal.uid != session.caller.uid:
            details["asked_by"] = str(session.caller.uid)
        row = LogRow(
            kind="decision",
            id=new_id(),
            at=session.now,
            org_id=session.caller.org_id or (target.id if isinstance(target, Org) else ""),
            principal_type=principal.type,
            principal_id=principal.id,
            action=query.action,
            resource_type=query.resource.type,
            resource_id=query.resource.id,
            outcome="allow" if verdict.allowed else "deny",
            deny_kind=kind.value if kind is not None else None,
            policies=verdict.policies,
            bundle=self.engine.bundle.hash,
            data_version=compiled.version,
            slices=question.slices[-1].hashes,
            request_id=session.request_id,
            details=details,
            slice_bodies={kept.hash: kept.text for kept in question.slices},
        )
        session.decided = True
        if verdict.allowed:
            kept = self._compiler.current(target) is target
            session.bases.append(
                Basis(row, principal, target, kept, compiled.entities, compiled.valid_from, compiled.valid_until)
            )
        return row


def _within(now: datetime, since: datetime, until: datetime | None) -> bool:
    """Whether what was compiled at `since` counts now; a clock that was set back may be in a pause again."""
    return since <= now and (until is None or now < until)


def _ruling(verdict: Verdict, row: LogRow) -> Ruling:
    return Ruling(verdict.allowed, None if verdict.allowed else one_reason(verdict), row)
