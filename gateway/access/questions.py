"""Questions: what is asked of the engine, over which entities, and the record of what it answered."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, cast

from gateway.model.caller import Caller
from gateway.model.decision import DenyKind, Query, Verdict
from gateway.model.entity import Entity, EntityUid
from gateway.model.evidence import LogRow
from gateway.model.grant import Basis, Grant, Session
from gateway.model.ids import new_id
from gateway.model.memory import Memory, MemoryGrant
from gateway.model.proposal import Proposal
from gateway.model.records import Org
from gateway.moment import Moment, Moments
from gateway.policy.context import Context
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines, Own
from gateway.policy.slice import Slice
from gateway.spans import Span, span
from gateway.store.entities import Compiler, Target, proposal_entity, uid_of
from gateway.store.state import State

#: Compiled slices kept for the (principal, resource) pairs asked about last; one is some kilobytes.
CACHED_SLICES = 16_384


@dataclass(frozen=True, slots=True)
class Compiled:
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


class Question(NamedTuple):
    """One question to an engine and all that its record needs. Asked over the last of `slices`, which holds the others.

    `by` is what decides, and is asked beside, from the start of the question until its record is made.
    """

    session: Session
    principal: Caller
    target: Target | None
    query: Query
    moment: Moment
    compiled: Compiled
    slices: tuple[Slice, ...]
    by: Own
    grants: tuple[MemoryGrant, ...] = ()


class Questions:
    """Asks the engine over the entities of the authorization state, and records each answer.

    A compiled slice is kept while its target and the state's version stand and no lease, pause or lifetime in it has
    ended. A decision and its record are never kept.

    `decided` counts decisions by action, outcome and kind of denial ("" for none), names of ours all; `mismatches` those that
    the policies in the shadow would have taken otherwise.
    """

    def __init__(self, engines: Engines, state: State) -> None:
        self.engines = engines
        self._state = state
        self._compiler = Compiler(state)
        self._slices: OrderedDict[tuple[str, EntityUid, EntityUid | None], Compiled] = OrderedDict()
        self._moments = Moments(state)
        self.decided: Counter[tuple[str, str, str]] = Counter()
        self.mismatches = 0

    @property
    def engine(self) -> PolicyEngine:
        """The engine of the policies of the product, over whose slices every other decides too."""
        return self.engines.base

    def stands(self, session: Session, now: datetime) -> bool:
        """Whether everything that the session's decisions rest on is still so, the policies that they were taken by included.

        Safe on any thread: it compiles from the state and asks no engine.
        """
        by = self.engines.of(session.caller.org_id).bundle.hash
        return all(basis.decision.bundle == by and self._basis_stands(basis, now) for basis in session.bases)

    def rehearse(
        self, session: Session, engine: PolicyEngine, principal: Caller, action: str, target: Target, context: Context | None
    ) -> Verdict:
        """What an engine would say to somebody of the session's organisation, now or in another context.

        It is no decision: nothing is granted and nothing recorded.
        """
        question = self._question(session, principal, action, target)
        query = question.query if context is None else replace(question.query, context=context)
        return engine.decide(query, question.slices[-1], question.grants)

    def answer(self, grant: Grant[Any], principal: Caller, action: str, target: Target) -> Verdict:
        """What the policies say to somebody of the organisation of whoever was granted to ask.

        It is within the decision of the grant, on whose row it is noted. What a yes rests on goes to the session, so that
        none leaves that has become a no.
        """
        session = grant.session
        question = self._question(session, principal, action, target)
        verdict = question.by.engine.decide(question.query, question.slices[-1], question.grants)
        if verdict.allowed:
            kept, made = self._compiler.current(target) is target, question.compiled
            basis = Basis(grant.decision, principal, target, kept, made.entities, made.valid_from, made.valid_until)
            session.bases.append(basis)
        return verdict

    def _decide(self, session: Session, principal: Caller, action: str, target: Target | Proposal) -> tuple[Verdict, LogRow]:
        if isinstance(target, Proposal):
            return self._decide_proposal(session, principal, action, target, person_paused=False)
        return self._answer(self._question(session, principal, action, target))

    def _decide_proposal(
        self, session: Session, principal: Caller, action: str, proposal: Proposal, *, person_paused: bool
    ) -> tuple[Verdict, LogRow]:
        with span("entities"):
            authority = self._compiled(principal, None, session.now)
            entity = proposal_entity(proposal, principal.org_id, person_paused=person_paused)
            slices = (authority.slice, self.engine.extend(authority.slice, entity))
        moment = self._moments.at(principal.org_id, session.now)
        query = Query(principal.uid, action, entity.uid, moment.context)
        by = self.engines.own(session.caller.org_id)
        return self._answer(Question(session, principal, None, query, moment, authority, slices, by))

    def _question(self, session: Session, principal: Caller, action: str, target: Target) -> Question:
        with span("entities"):
            compiled = self._compiled(principal, target, session.now)
        moment = self._moments.at(principal.org_id, session.now)
        query = Query(principal.uid, action, uid_of(target), moment.context)
        by, grants = self.engines.own(session.caller.org_id), self._granted(principal, session.now)
        return Question(session, principal, target, query, moment, compiled, (compiled.slice,), by, grants)

    def _granted(self, principal: Caller, now: datetime) -> tuple[MemoryGrant, ...]:
        """The live grants of a remote connection: policies of its own, beside everybody's."""
        if principal.type != "Connection":
            return ()
        connection = self._state.remote_connections.get((principal.org_id, principal.id))
        return tuple(self._state.live_grants(connection, now)) if connection is not None else ()

    def _answer(self, question: Question) -> tuple[Verdict, LogRow]:
        with span("decide") as made:
            verdict = question.by.engine.decide(question.query, question.slices[-1], question.grants)
            row = self._record(question, verdict, made)
        self._compare(question, verdict, row)
        return verdict, row

    def _compare(self, question: Question, verdict: Verdict, row: LogRow) -> None:
        """Ask the policies in the shadow the same, and note on the row what they would have answered otherwise."""
        found = self._otherwise(question, verdict, row.id)
        if found is not None:
            row.details["shadow"] = found  # type: ignore[index]  # a dict until the row is chained

    def _otherwise(self, question: Question, verdict: Verdict, row_id: str) -> Mapping[str, object] | None:
        """What the policies in the shadow would have answered otherwise, which is counted for the row that is named."""
        shadow = question.by.shadow
        if shadow is None or question.query.action not in shadow.actions:
            return None
        query, slice, grants = question.query, question.slices[-1], question.grants
        found = shadow.compare(verdict, lambda engine: engine.decide(query, slice, grants), query.principal, row_id)
        if found is not None:
            self.mismatches += 1
        return found

    def _compiled(self, principal: Caller, target: Target | None, now: datetime) -> Compiled:
        if isinstance(target, Memory):  # it is asked about once or twice, and its text must not outlive it here
            return self._made(principal, target, now)
        # Two organisations may have connections of one id, each of its own network.
        key = (principal.org_id, principal.uid, uid_of(target) if target is not None else None)
        kept = self._slices.get(key)
        if kept is not None and kept.stands(target, self._state.version, now):
            self._slices.move_to_end(key)
            return kept
        made = self._slices[key] = self._made(principal, target, now)
        if len(self._slices) > CACHED_SLICES:
            self._slices.popitem(last=False)
        return made

    def _made(self, principal: Caller, target: Target | None, now: datetime) -> Compiled:
        version = self._state.version  # read first: what changes meanwhile makes the next look-up compile again
        entities, valid_until = self._compile(principal, target, now)
        return Compiled(target, version, now, valid_until, entities, self.engine.slice(*entities))

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

    def _record(self, question: Question, verdict: Verdict, made: Span) -> LogRow:
        """The row of a decision, which is counted and traced; what a yes rests on goes to the session."""
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
            bundle=question.by.engine.bundle.hash,
            data_version=compiled.version,
            slices=question.slices[-1].hashes,
            request_id=session.request_id,
            details=details,
            # Of a row of memory that was denied there may never be one, with which its labels would go.
            slice_bodies={} if query.resource.type == "Memory" and not verdict.allowed else _bodies(question.slices),
        )
        session.decided = True
        outcome, told = "allow" if verdict.allowed else "deny", row.deny_kind or ""
        self.decided[query.action, outcome, told] += 1
        made.set(action=query.action, decision=outcome, deny_kind=told)
        if verdict.allowed:
            kept = self._compiler.current(target) is target
            session.bases.append(
                Basis(row, principal, target, kept, compiled.entities, compiled.valid_from, compiled.valid_until)
            )
        return row


def _bodies(slices: Sequence[Slice]) -> dict[str, str]:
    return {kept.hash: kept.text for kept in slices}


def _within(now: datetime, since: datetime, until: datetime | None) -> bool:
    """Whether what was compiled at `since` counts now; a clock that was set back may be in a pause again."""
    return since <= now and (until is None or now < until)
