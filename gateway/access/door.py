"""The one door: every decision is asked for here, recorded here, and turned into a grant or a refusal here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gateway.access.rows import NO_POLICY_PERMITS, Rows
from gateway.errors import Forbidden, NotFound
from gateway.model.caller import Caller
from gateway.model.decision import Query, Reason, Verdict
from gateway.model.evidence import LogRow
from gateway.model.grant import Grant, Session
from gateway.model.proposal import Proposal
from gateway.policy.engine import one_reason
from gateway.spans import span
from gateway.store.entities import Missing, Target, uid_of


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision that was asked for its answer, not as a door: `allowed`, and the reason when not."""

    allowed: bool
    reason: Reason | None
    row: LogRow


T = TypeVar("T", bound=Target | Proposal)
K = TypeVar("K", bound=Target)


class Access(Rows):
    """Decides about things that are known; with `Rows`, the only maker of a `Grant`."""

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

        A yes to the second is noted on the row of the first, with what the shadow says to it; a no is a row of its own.
        """
        if isinstance(target, Missing):
            return self.authorize(session, action, target), False
        first = self._question(session, session.caller, action, target)
        with span("decide") as made:
            verdict, other = first.by.engine.decide_together(first.query, also, first.slices[-1])
            row = self._record(first, verdict, made)
        session.rows.append(row)
        self._compare(first, verdict, row)
        grant: Grant[K] = self._grant(session, action, target, verdict, row, hide=False)
        asked = first.query
        beside = first._replace(query=Query(asked.principal, also, asked.resource, asked.context))
        if other.allowed:
            otherwise = self._otherwise(beside, other, row.id)
            noted = {"action": also, "policies": list(other.policies)}
            grant.note(also=[noted if otherwise is None else {**noted, "shadow": otherwise}])
        else:
            with span("decide") as made:
                denied = self._record(beside, other, made)
            self._compare(beside, other, denied)
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
            if "shadow" in row.details:  # the report names it, so it has to be there to be looked at
                session.rows.append(row)
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


def _ruling(verdict: Verdict, row: LogRow) -> Ruling:
    return Ruling(verdict.allowed, None if verdict.allowed else one_reason(verdict), row)
