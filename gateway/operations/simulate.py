"""Simulation: what an agent's past requests would have come to under other rules, and what would make one automatic."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any

from derive.recipients import read_recipient
from gateway import limits
from gateway.model.proposal import MAX_ACTION, check_action
from gateway.model.records import Agent
from gateway.model.rules import ApprovalRules, Rule, parse_rules
from gateway.operations.call import Call
from gateway.operations.fields import optional_stamp
from gateway.operations.operation import Operation, Reply
from gateway.operations.rehearsal import OUTCOMES, Answer, Rehearsal, Request, changes
from gateway.operations.wire import agents as wire
from gateway.store import approval_history, approvals
from gateway.store.approval_history import PastRequest

#: Requests that are asked about before others get their turn.
A_TURN = 50
BECAUSE = {
    "action_is_sensitive": "no rule makes a sensitive action automatic: a human decides it every time",
    "risk_tier_requires_step_up": "no rule lowers the risk: a human who proves who they are decides it",
}
NO_RULE = "no change of one rule makes it automatic"


async def simulate_policy(call: Call) -> Reply:
    """What the proposed rules, or the standing ones, make of what the agent has asked for, and of one action if it is named."""
    body = call.body
    proposed = parse_rules(body.members["action_approval_policy"]) if "action_approval_policy" in body else None
    one = _one(call)
    agent = call.access.authorize(call.session, "agent.read", call.agent(call.path["agent_id"])).target
    listing = call.access.authorize_first(call.session, ("approval.list", "approval.list_own"), call.org)
    past = await call.read(approval_history.requests_of, listing, agent.id, limit=limits.SIMULATED_APPROVALS)
    rules = agent.rules if proposed is None else proposed
    shown = await _history(call, agent, rules, past)
    if one is not None:
        shown["what_would_change_it"] = await _what_would_change_it(call, agent, rules, one)
    return Reply(shown)


def _one(call: Call) -> Request | None:
    body = call.body
    payload = body.optional_object("payload") or {}
    tier = body.optional_integer("declared_risk_tier", least=1, most=3)
    action = body.optional_text("action_type", longest=MAX_ACTION)
    if action is None:
        return None
    check_action(action, field="action_type")
    return Request(action, payload, tier, known_recipient=False)


async def _history(call: Call, agent: Agent, rules: ApprovalRules, past: list[PastRequest]) -> dict[str, Any]:
    now = await _answers(_rehearsal(call, agent, agent.rules), past)
    then = await _answers(_rehearsal(call, agent, rules), past)
    through = [
        (asked, answer) for asked, answer in zip(past, then, strict=True)
        if asked.status == "rejected" and answer.outcome == "automatic"
    ]  # fmt: skip
    return {
        "agent_id": agent.id,
        "simulated": len(past),
        "current": _tally(now),
        "proposed": _tally(then),
        "reasons": dict(sorted(Counter(answer.code for answer in then if answer.code is not None).items())),
        "newly_automatic": sum(
            (before.outcome, after.outcome) != ("automatic", "automatic") and after.outcome == "automatic"
            for before, after in zip(now, then, strict=True)
        ),
        "rejected_and_automatic": len(through),
        "rejections": [_rejection(asked, answer) for asked, answer in through[: limits.PAGE]],
        "auto_approve": call.org.settings.auto_approve,
    }


async def _answers(rehearsal: Rehearsal, past: list[PastRequest]) -> list[Answer]:
    answers = []
    for number, asked in enumerate(past, start=1):
        answers.append(rehearsal.ask(Request(asked.action, asked.payload, asked.declared_risk_tier, asked.known_recipient)))
        if number % A_TURN == 0:
            await asyncio.sleep(0)
    return answers


async def _what_would_change_it(call: Call, agent: Agent, rules: ApprovalRules, one: Request) -> dict[str, Any]:
    recipient = read_recipient(one.payload)
    if recipient is not None:
        known = await call.services.database.read(lambda rows: approvals.known_recipient(rows, agent.id, recipient))
        one = Request(one.action_type, one.payload, one.declared_tier, known)
    answer = _rehearsal(call, agent, rules).ask(one)
    shown: dict[str, Any] = {"suggest_auto": answer.outcome == "automatic", "understood": answer.proposal.understood()}
    if answer.outcome == "automatic":
        return shown
    shown["blocked_reason"] = answer.code
    widest = answer
    for rule, changed in changes(rules, answer.proposal):
        widest = _rehearsal(call, agent, changed).ask(one)
        if widest.outcome == "automatic":
            return {**shown, "rule": _rule(rule), "instead_of": _standing(rules, one.action_type)}
    return {
        **shown,
        "rule": None,
        "because": BECAUSE.get(widest.code or "", NO_RULE),
        "tier_reasons": list(widest.proposal.tier_reasons),
    }


def _rehearsal(call: Call, agent: Agent, rules: ApprovalRules) -> Rehearsal:
    return Rehearsal(call.access.engines.of(agent.org_id), call.state, agent, rules, call.now)


def _tally(answers: Iterable[Answer]) -> dict[str, int]:
    counts = Counter(answer.outcome for answer in answers)
    return {outcome: counts[outcome] for outcome in OUTCOMES}


def _rejection(asked: PastRequest, answer: Answer) -> dict[str, object]:
    understood = answer.proposal.understood()
    return {
        "approval_id": asked.id,
        "action": asked.action,
        "amount_usd": understood["amount_usd"],
        "decided_at": optional_stamp(asked.decided_at),
    }


def _standing(rules: ApprovalRules, action_type: str) -> dict[str, object] | None:
    rule = rules.rule_for(action_type)
    return None if rule is None else _rule(rule)


def _rule(rule: Rule) -> dict[str, object]:
    """A rule as it is written in a policy, but for its summary."""
    threshold = {} if rule.threshold is None else {"require_for_amount_above_usd": str(rule.threshold)}
    return {"action_type": rule.action_type, "mode": rule.mode, **threshold}


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "agent.simulate_policy",
        "POST",
        "/v1/agents/{agent_id}/simulate-policy",
        "Show what an agent's past requests would have come to under other rules, and what would make one automatic.",
        simulate_policy,
        actions=("agent.read", "approval.list", "approval.list_own"),
        fields=wire.SIMULATED,
        strict=True,
        unhurried=True,
        answers={200: wire.SIMULATION},
    ),
)
