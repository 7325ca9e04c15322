"""The one door: every decision is asked for here, recorded here, and turned into a grant or a refusal here."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from zoneinfo import ZoneInfo

from gateway.errors import Forbidden, NotFound
from gateway.model.caller import Caller
from gateway.model.decision import DenyKind, Query, Reason, Verdict
from gateway.model.entity import EntityUid
from gateway.model.evidence import LogRow
from gateway.model.grant import Grant, Session
from gateway.model.proposal import Proposal
from gateway.policy.context import Context
from gateway.policy.engine import PolicyEngine, one_reason
from gateway.policy.slice import Slice
from gateway.store.entities import Compiler, Missing, Target, proposal_entity, uid_of
from gateway.store.state import State

T = TypeVar("T", bound=Target | Proposal)

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
    version: int
    valid_until: datetime | None
    slice: Slice


class Access:
    """Asks the engine over the entities of the authorization state; the only maker of a `Grant`.

    A compiled slice is kept while the state's version stands and no lease or pause in it has ended. A decision and its
    record are never kept.
    """

    def __init__(self, engine: PolicyEngine, state: State) -> None:
        self.engine = engine
        self._state = state
        self._compiler = Compiler(state)
        self._slices: OrderedDict[tuple[EntityUid, EntityUid, bool], _Compiled] = OrderedDict()
        self._moments: dict[tuple[str, datetime], Context] = {}

    def authorize(self, session: Session, action: str, target: T | Missing, *, hide: bool = False) -> Grant[T]:
        """Decide `action` on `target` for the session's caller.

        Raises:
            NotFound: the target is missing for this caller, or `hide` is set and the answer is no.
            Forbidden: the answer is no; with the decision's id and the public reason.
        """
        verdict, row = self._decide(session, session.caller, action, target)
        session.rows.append(row)
        return self._grant(session, action, target, verdict, row, hide=hide)

    def authorize_first(self, session: Session, actions: Sequence[str], target: T | Missing) -> Grant[T]:
        """The first of `actions`, widest first, that is allowed; only the deciding answer is recorded."""
        for action in actions[:-1]:
            verdict, row = self._decide(session, session.caller, action, target)
            if verdict.allowed:
                session.rows.append(row)
                return self._grant(session, action, target, verdict, row, hide=False)
        return self.authorize(session, actions[-1], target)

    def authorize_proposal(self, session: Session, action: str, proposal: Proposal) -> Grant[Proposal]:
        """As `authorize`, about an action that the calling agent proposes."""
        verdict, row = self._decide_proposal(session, session.caller, action, proposal, person_paused=False)
        session.rows.append(row)
        return self._grant(session, action, proposal, verdict, row, hide=False)

    def ask(self, session: Session, action: str, target: Target, *, principal: Caller | None = None) -> Ruling:
        """Decide and record without raising, for the caller or for another principal of its organisation."""
        verdict, row = self._decide(session, principal or session.caller, action, target)
        session.rows.append(row)
        return _ruling(verdict, row)

    def ask_automatic(self, session: Session, proposal: Proposal, *, principal: Caller, person_paused: bool) -> Ruling:
        """May this be automatic? Decided by the principal's own written rules; no history reaches the question."""
        verdict, row = self._decide_proposal(session, principal, "suggest_auto", proposal, person_paused=person_paused)
        session.rows.append(row)
        return _ruling(verdict, row)

    def may_also(self, grant: Grant[T], action: str) -> bool:
        """A second question inside a granted one, over the same slice.

        A yes is noted on the grant's row; a no is a row of its own.
        """
        session = grant.session
        target = grant.target
        verdict, row = self._decide(session, session.caller, action, target)
        if verdict.allowed:
            grant.note(also=[{"action": action, "policies": list(verdict.policies)}])
        else:
            row.details["within"] = grant.action  # type: ignore[index]  # a dict until the row is chained
            session.rows.append(row)
        return verdict.allowed

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
        compiled = self._slice(principal, target, session.now)
        return self._ask(session, principal, action, uid_of(target), compiled)

    def _decide_proposal(
        self, session: Session, principal: Caller, action: str, proposal: Proposal, *, person_paused: bool
    ) -> tuple[Verdict, LogRow]:
        authority = self._slice(principal, None, session.now)
        entity = proposal_entity(proposal, principal.org_id, person_paused=person_paused)
        return self._ask(session, principal, action, entity.uid, authority, self.engine.extend(authority, entity))

    def _slice(self, principal: Caller, target: Target | None, now: datetime) -> Slice:
        key = (principal.uid, uid_of(target) if target is not None else principal.uid, target is None)
        version = self._state.version
        kept = self._slices.get(key)
        if kept is not None and kept.version == version and (kept.valid_until is None or now < kept.valid_until):
            self._slices.move_to_end(key)
            return kept.slice
        if target is None:
            entities, valid_until = self._compiler.compile_authority(principal, principal.org_id, now)
        else:
            entities, valid_until = self._compiler.compile(principal, target, now)
        made = self.engine.slice(*entities)
        self._slices[key] = _Compiled(version, valid_until, made)
        if len(self._slices) > CACHED_SLICES:
            self._slices.popitem(last=False)
        return made

    def _ask(
        self, session: Session, principal: Caller, action: str, resource: EntityUid, *slices: Slice
    ) -> tuple[Verdict, LogRow]:
        """Ask over the last of `slices`, which holds the ones before it; all of them go on record."""
        context = self._moment(principal.org_id, session.now)
        verdict = self.engine.decide(Query(principal.uid, action, resource, context), slices[-1])
        kind = verdict.deny_kind
        if kind is DenyKind.FORBIDDEN and any(reason.code == DenyKind.PAUSED for reason in verdict.reasons):
            kind = DenyKind.PAUSED
        details: dict[str, object] = {"context": _readable(context)}
        if verdict.errors:
            details["errors"] = list(verdict.errors)
        if principal is not session.caller:
            details["asked_by"] = str(session.caller.uid)
        return verdict, LogRow(
            kind="decision",
            id=str(uuid.uuid4()),
            at=session.now,
            org_id=session.caller.org_id,
            principal_type=principal.type,
            principal_id=principal.id,
            action=action,
            resource_type=resource.type,
            resource_id=resource.id,
            outcome="allow" if verdict.allowed else "deny",
            deny_kind=kind.value if kind is not None else None,
            policies=verdict.policies,
            bundle=self.engine.bundle.hash,
            data_version=self._state.version,
            slices=slices[-1].hashes,
            request_id=session.request_id,
            details=details,
            slice_bodies={kept.hash: kept.text for kept in slices},
        )

    def _moment(self, org_id: str, now: datetime) -> Context:
        """The context of a decision: `now` in whole minutes and the clock on the organisation's wall."""
        org = self._state.orgs.get(org_id)
        zone = org.settings.time_zone if org is not None else "UTC"
        minute = now.replace(second=0, microsecond=0)
        key = (zone, minute)
        moment = self._moments.get(key)
        if moment is None:
            if len(self._moments) > 64:
                self._moments.clear()
            local = minute.astimezone(ZoneInfo(zone))
            clock = {"minute": local.hour * 60 + local.minute, "weekday": local.isoweekday(), "date": local.date().isoformat()}
            moment = self._moments[key] = Context({"now": minute, "clock": clock})
        return moment


def _readable(context: Context) -> dict[str, object]:
    now = context["now"]
    assert isinstance(now, datetime)
    return {"now": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "clock": context["clock"]}


def _ruling(verdict: Verdict, row: LogRow) -> Ruling:
    return Ruling(verdict.allowed, None if verdict.allowed else one_reason(verdict), row)
