"""Rows: the door to an agent's memory, where a decision is about rows that nobody has looked at yet."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from gateway.access.questions import Question, Questions
from gateway.errors import Forbidden, NotFound, Stale
from gateway.model.caller import Caller
from gateway.model.decision import DenyKind, Query, Verdict
from gateway.model.entity import EntityUid
from gateway.model.floor import floor_of
from gateway.model.grant import Grant, Session
from gateway.model.memory import Memory, MemoryScope
from gateway.model.records import Agent
from gateway.policy.engine import PolicyEngine, one_reason
from gateway.policy.foreign.match import test_of
from gateway.policy.plan import Plan
from gateway.spans import span
from gateway.store import peer_rows
from gateway.store.entities import Missing
from gateway.store.row_entities import memory_entity

#: Rows that are decided over one slice: what Cedar is given grows with each.
ROWS_AT_ONCE = 200
NO_POLICY_PERMITS = "no policy permits this"

_log = logging.getLogger("gateway.access")


class Rows(Questions):
    """Plans which rows a principal may have, and decides each once more when it has been fetched.

    INVARIANT: rows that answer a request are fetched through the floor and the condition of a plan, both, and in no other
    way.
    `divergences` counts rows that the condition kept and the decision did not: each is an incident.
    """

    divergences = 0

    def plan(
        self, session: Session, action: str, agent: Agent | Missing, *, live: bool = True, principal: Caller | None = None
    ) -> Grant[MemoryScope]:
        """Decide which rows of an agent's memory `action` may be done on; `live` leaves out what no longer counts.

        A connection that is granted nothing gets a scope without rows: nothing that it sees says whether there are any. It
        only ever gets live rows. With `principal`, as that principal would get them.

        Raises:
            NotFound: there is no such agent for this caller.
            Forbidden: no row could be allowed to this caller; with the decision's id.
        """
        asked = principal or session.caller
        if isinstance(agent, Missing):
            _, row = self._decide(session, asked, action, Missing("Memory", agent.id))
            session.rows.append(row)
            raise NotFound
        question = self._question(session, asked, action, agent)
        with span("decide") as made:
            plan = _planned(question.by.engine, question)
            row = self._record(question, plan.verdict, made)
        row.details["planned"] = "Memory"  # type: ignore[index]  # a dict until the row is chained
        shadow = question.by.shadow
        if shadow is not None and action in shadow.actions:
            found = shadow.compare_plan(plan, lambda engine: _planned(engine, question))
            if found is not None:
                self.mismatches += 1
                row.details["shadow"] = found  # type: ignore[index]  # a dict until the row is chained
        session.rows.append(row)
        if not plan.verdict.allowed and asked.type != "Connection":
            reason = one_reason(plan.verdict)
            raise Forbidden(reason.text if reason is not None else NO_POLICY_PERMITS, decision_id=row.id)
        covering = tuple(grant for grant in question.grants if action.removeprefix("memory.") in grant.actions)
        scope = MemoryScope(
            principal=asked,
            agent_id=agent.id,
            org_id=agent.org_id,
            floor=floor_of(asked, agent, covering, live=live),
            policy=plan.condition,
            grants=covering,
            binding=_binding(row.bundle, question, live=live),
        )
        return Grant(session, action, question.query.resource, scope, row)

    def could_be_allowed(self, grant: Grant[Any], principal: Caller, action: str) -> frozenset[str] | None:
        """The peers of the organisation of whoever was granted to ask that `answer` could say yes about; None where it takes
        asking about each, because what the policies ask of a peer has no translation.

        It is no decision, and what is found is to be decided.
        """
        session, org_id = grant.session, principal.org_id
        entities, _ = self._compiler.compile_authority(principal, org_id, session.now)
        slice = self.engine.slice(*peer_rows.listed(self._state, entities, principal.uid, session.now))
        query = Query(principal.uid, action, EntityUid("Peer", ""), self._moments.at(org_id, session.now).context)
        engine = self.engines.own(session.caller.org_id).engine
        plan = engine.plan(query, "Peer", slice, self._granted(principal, session.now))
        if plan.verdict.deny_kind in (DenyKind.EVALUATION_ERROR, DenyKind.INVALID_REQUEST):
            return None
        test = test_of(plan.condition)
        return frozenset(str(row["id"]) for row in peer_rows.rows(self._state, org_id, session.now) if test(row))

    def confirm(self, grant: Grant[MemoryScope], rows: Sequence[Memory]) -> list[tuple[Memory, Verdict]]:
        """Decide fetched rows once more, with what is stored, and return those that are allowed with their verdicts.

        One that is denied is dropped, counted, logged and recorded.

        Raises:
            Stale: what the plan rested on has changed since, such as a grant that was revoked: the request runs again.
        """
        kept: list[tuple[Memory, Verdict]] = []
        for start in range(0, len(rows), ROWS_AT_ONCE):
            for row, question, verdict in self._decided(grant, rows[start : start + ROWS_AT_ONCE]):
                if verdict.allowed:
                    kept.append((row, verdict))
                    continue
                if not self.stands(grant.session, grant.session.now):
                    raise Stale
                self.divergences += 1
                with span("decide") as made:
                    denied = self._record(question, verdict, made)
                grant.session.rows.append(denied)
                _log.error("decision %s denies memory %s, which the query had kept", denied.id, row.id)
        return kept

    def _decided(self, grant: Grant[MemoryScope], rows: Sequence[Memory]) -> Iterator[tuple[Memory, Question, Verdict]]:
        asked, agent_id = grant.target.principal, grant.target.agent_id
        agent = self._state.agents.get(agent_id) or self._state.former_agents.get(agent_id) or Missing("Agent", agent_id)
        base = self._question(grant.session, asked, grant.action, agent)
        entities = [memory_entity(row, grant.session.now) for row in rows]
        slices = (*base.slices, self.engine.extend(base.slices[-1], *entities))
        queries = [Query(asked.uid, grant.action, entity.uid, base.moment.context) for entity in entities]
        verdicts = base.by.engine.decide_all(queries, slices[-1], base.grants)
        for row, query, verdict in zip(rows, queries, verdicts, strict=True):
            yield row, base._replace(query=query, slices=slices), verdict


def _planned(engine: PolicyEngine, question: Question) -> Plan:
    return engine.plan(question.query, "Memory", question.slices[-1], question.grants)


def _binding(bundle: str, question: Question, *, live: bool) -> str:
    """What a cursor is bound to: the policies, all that is known of the principal, its live grants included, and which rows
    count."""
    text = "\n".join((bundle, str(live), question.query.action, str(question.query.principal), *question.slices[-1].hashes))
    return hashlib.sha256(text.encode()).hexdigest()
