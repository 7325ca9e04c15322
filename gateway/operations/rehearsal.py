"""Rehearsal: what an agent's rules would answer if they were others, asked of Cedar as it is asked in earnest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_FLOOR, Decimal
from typing import Literal

from gateway.access.door import Access
from gateway.model.caller import Caller
from gateway.model.grant import Session
from gateway.model.proposal import Proposal, read_proposal
from gateway.model.records import Agent
from gateway.model.rules import MAX_THRESHOLD, ApprovalRules, Rule
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines
from gateway.store.state import State

Outcome = Literal["automatic", "asked", "sensitive", "refused"]
OUTCOMES: tuple[Outcome, ...] = ("automatic", "asked", "sensitive", "refused")
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Request:
    """What an agent wants to do, before it is read under any rules."""

    action_type: str
    payload: Mapping[str, object]
    declared_tier: int | None
    known_recipient: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """`refused` may not even be asked for; `code` says why it is not automatic, None when it is or when no code says so."""

    outcome: Outcome
    code: str | None
    proposal: Proposal


class Rehearsal:
    """Asks as one agent with some rules, over a state of its own in which only those differ.

    It decides nothing for anybody and leaves no record: whoever asks has one of their own. Nobody has paused in it.
    """

    def __init__(self, engine: PolicyEngine, state: State, agent: Agent, rules: ApprovalRules, now: datetime) -> None:
        self.rules = rules
        self._sensitive: Collection[str] = state.orgs[agent.org_id].settings.sensitive_actions
        self._access = Access(Engines(engine), _as_if(state, replace(agent, rules=rules)))
        self._caller = Caller("Agent", agent.id, agent.org_id, "")
        self._now = now

    def ask(self, request: Request) -> Answer:
        """What would become of a request."""
        proposal = read_proposal(
            request.action_type,
            request.payload,
            rules=self.rules,
            known_recipient=request.known_recipient,
            declared_tier=request.declared_tier,
            sensitive_actions=self._sensitive,
        )
        session = Session(self._caller, "rehearsal", self._now)
        automatic = self._access.ask_automatic(session, proposal, principal=self._caller, person_paused=False)
        code = None if automatic.reason is None else automatic.reason.code
        if not self._access.ask(session, "approval.request", proposal).allowed:
            return Answer("refused", code, proposal)
        if automatic.allowed:
            return Answer("automatic", None, proposal)
        return Answer("sensitive" if code == "action_is_sensitive" else "asked", code, proposal)


def changes(rules: ApprovalRules, proposal: Proposal) -> Iterator[tuple[Rule, ApprovalRules]]:
    """Each change of the one rule of an action that could make it automatic, from the smallest to the widest.

    A threshold is raised to the next cent above the amount, or left out when there is no amount.
    """
    action, amount = proposal.action_type, proposal.amount.value
    standing = rules.rule_for(action)
    above = None if amount is None else amount.quantize(CENT, ROUND_FLOOR) + CENT
    if above is not None and above >= MAX_THRESHOLD:
        return
    tried = [Rule(action, "allow", above, standing.summary_template if standing is not None else None)]
    if standing is not None and standing.mode != "allow":
        tried.insert(0, replace(standing, mode="allow"))
    for rule in tried:
        others = tuple(other for other in rules.rules if other.action_type != action)
        yield rule, replace(rules, rules=(*others, rule))


def _as_if(state: State, agent: Agent) -> State:
    """A state that holds an agent as given, and all that it refers to."""
    made = State()
    made.put_org(state.orgs[agent.org_id])
    made.put_agent(agent)
    people = [agent.created_by]
    connection = state.connections.get(agent.connection_id) if agent.connection_id is not None else None
    if connection is not None:
        made.put_connection(connection)
        people.append(connection.user_id)
        app = state.apps.get(connection.app_id)
        if app is not None:
            made.put_app(app)
    for person in (state.humans.get(human_id) for human_id in people):
        if person is not None:
            made.put_human(person)
    return made
