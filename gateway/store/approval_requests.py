"""Requests of agents, and the terms they are read on: kept only while those are still what the decision rested on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gateway.errors import Stale
from gateway.model.caller import Caller
from gateway.model.grant import Grant
from gateway.model.proposal import Proposal
from gateway.model.records import Agent
from gateway.model.rules import NO_RULES, ApprovalRules
from gateway.store.approvals import Approval, insert, known_recipient
from gateway.store.rows import Rows, Tx
from gateway.store.state import State


@dataclass(frozen=True, slots=True)
class Terms:
    """The rules of the agent that asks, and what its organisation, its past and the person addressed add to them.

    `addressee` is None for a caller that is no agent. `paused` is only looked for where something may be automatic.
    """

    rules: ApprovalRules
    sensitive_actions: tuple[str, ...]
    auto_approve: bool
    addressee: str | None
    paused: bool
    known_recipient: bool


def read_terms(rows: Rows, state: State, asking: Caller, recipient: str | None, now: datetime) -> Terms:
    """The terms as they stand, of a request about `recipient`."""
    agent = state.agents.get(asking.id)
    settings = state.orgs[asking.org_id].settings
    addressee = _addressee(state, agent) if agent is not None else None
    return Terms(
        rules=agent.rules if agent is not None else NO_RULES,
        sensitive_actions=settings.sensitive_actions,
        auto_approve=settings.auto_approve,
        addressee=addressee,
        paused=settings.auto_approve and _has_paused(state, asking.id, addressee, now),
        known_recipient=agent is not None and recipient is not None and known_recipient(rows, agent.id, recipient),
    )


def record_request(tx: Tx, grant: Grant[Proposal], asked: Approval, terms: Terms) -> None:
    """Keep a request; one that is approved at once was decided by a written rule and by no human.

    INVARIANT: nothing is approved on terms that a change acknowledged before it has altered: a pause, a sensitive action.

    Raises:
        Stale: the terms are not those that it was decided on.
    """
    if read_terms(tx, tx.state, grant.caller, grant.target.recipient, grant.now) != terms:
        raise Stale
    insert(tx, asked, recipient=grant.target.recipient)
    about = {"approval_id": asked.id, "agent_id": asked.agent_id, "risk_tier": asked.risk_tier}
    tx.append(grant.audit("approval.requested", about))
    if asked.status == "approved":
        tx.append(grant.audit("approval.decided", {**about, "decision": "approved", "automatic": True}))


def _addressee(state: State, agent: Agent) -> str:
    connection = state.connections.get(agent.connection_id) if agent.connection_id is not None else None
    return connection.user_id if connection is not None else agent.created_by


def _has_paused(state: State, agent_id: str, person_id: str | None, now: datetime) -> bool:
    """Whether the person has paused a peer that the agent observes."""
    for peer in state.observed_peers(agent_id, now):
        person = state.person_of(peer)
        pausing = peer.pause.reading_at(now) or peer.pause.learning_at(now)
        if pausing and person is not None and person.id == person_id:
            return True
    return False
