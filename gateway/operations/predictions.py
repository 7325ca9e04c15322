"""Predictions: how likely a person's approval is, and, apart from that, whether an action may be automatic."""

from __future__ import annotations

from collections.abc import Mapping

from derive.buckets import Bucket
from derive.facts import Prediction, predict
from gateway.access.door import Ruling
from gateway.errors import Conflict, Invalid, Unauthenticated
from gateway.model.caller import Caller
from gateway.model.grant import Grant
from gateway.model.proposal import MAX_ACTION, Proposal, check_action, read_proposal
from gateway.model.records import Agent, Peer
from gateway.model.rules import NO_RULES
from gateway.operations.call import Call
from gateway.operations.fields import json_number
from gateway.operations.operation import Operation, Reply
from gateway.operations.peer_context import bury_what_expired
from gateway.operations.wire import peers as wire
from gateway.store import predictions
from gateway.store.predictions import BucketHistory

#: What stands for an action that is in no bucket: it has no history, whichever way it is asked about.
_NO_BUCKET = Bucket("no.action", "none", "none", "none")
#: An organisation's own policy may forbid without naming one of the five reasons.
_OTHER_REASON = "rule_requires_approval"

NEXT = {
    "agent": "ask a human with request_approval (POST /v1/approvals/request)",
    "human": "name an `agent_id` to ask what that agent may do by itself",
}


async def predict_approval(call: Call) -> Reply:
    """What the person's history says of an action, and, apart from it, whether the agent's own rules let it be automatic."""
    action_type = call.body.text("action_type", longest=MAX_ACTION)
    check_action(action_type, field="action_type")
    tier = call.body.integer("effective_risk_tier", least=1, most=3)
    payload = call.body.optional_object("payload") or {}
    named = call.body.optional_id("agent_id")
    _read(call, None, action_type, payload, tier, known=False)
    grant, visible = call.access.authorize_with(call.session, "peer.predict", "peer.see_content", call.peer(call.path["id"]))
    if grant.target.archived:
        raise Conflict("this peer is archived: nothing is predicted about it")
    agent = _asking_agent(call, grant, named)
    await bury_what_expired(call, grant)
    found = await call.read(predictions.history, grant, None if agent is None else agent.id, action_type, payload)
    proposal = _read(call, agent, action_type, payload, tier, known=found.known_recipient)
    automatic = call.access.ask_automatic(
        call.session, proposal, principal=_principal(call, agent), person_paused=not visible or _paused_for(call, grant, agent)
    )
    prediction = _predict(proposal, found, visible=visible)
    grant.note(kind="predict", facts_served=int(prediction.likelihood is not None))
    about = {"agent_id": None if agent is None else agent.id, "suggest_auto": automatic.allowed}
    call.session.answer_rows.append(grant.audit("peer.predicted", about))
    return Reply(_shape(proposal, prediction, automatic, NEXT["human" if agent is None else "agent"]))


def _asking_agent(call: Call, grant: Grant[Peer], named: str | None) -> Agent | None:
    """The agent whose rules count: the caller, or the one a human names.

    That is an agent which observes this person, or one that the human may read anyway; what another agent's rules are, and
    whom it has asked about, is not for everybody who has a peer. Any other is answered as an unknown one.
    """
    caller = call.session.caller
    if caller.type == "Agent":
        if named not in (None, caller.id):
            raise Invalid("`agent_id` is not the agent that asks; leave it out", field="agent_id")
        agent = call.state.agents.get(caller.id)
        if agent is None:
            raise Unauthenticated
        return agent
    found = call.agent(named)
    if isinstance(found, Agent):
        listed = call.state.observes(found.id, grant.target.id, call.now)
        if listed or call.access.ask(call.session, "agent.read", found).allowed:
            return found
    if named is not None:
        raise call.body.wrong("agent_id", "an agent of this organisation")
    return None


def _principal(call: Call, agent: Agent | None) -> Caller:
    caller = call.session.caller
    return caller if agent is None or agent.id == caller.id else Caller("Agent", agent.id, agent.org_id, "")


def _paused_for(call: Call, grant: Grant[Peer], agent: Agent | None) -> bool:
    """Whether the person has paused reading for an agent that a human asks about."""
    principal = _principal(call, agent)
    if principal is call.session.caller:
        return False
    return call.access.ask(call.session, "peer.see_content", grant.target, principal=principal).row.deny_kind == "paused"


def _read(
    call: Call, agent: Agent | None, action_type: str, payload: Mapping[str, object], tier: int, *, known: bool
) -> Proposal:
    return read_proposal(
        action_type,
        payload,
        rules=NO_RULES if agent is None else agent.rules,
        known_recipient=known,
        declared_tier=tier,
        sensitive_actions=call.org.settings.sensitive_actions,
    )


def _predict(proposal: Proposal, found: BucketHistory, *, visible: bool) -> Prediction:
    if proposal.bucket is None:
        return predict(_NO_BUCKET, 0, 0, None)
    return predict(proposal.bucket, found.approved, found.rejected, found.belief, visible=visible and not found.suppressed)


def _shape(proposal: Proposal, prediction: Prediction, automatic: Ruling, next_step: str) -> dict[str, object]:
    shown: dict[str, object] = {
        "likelihood": None if prediction.likelihood is None else json_number(prediction.likelihood),
        "reasoning": prediction.reasoning,
        "suggest_auto": automatic.allowed,
        "understood": proposal.understood(),
    }
    if not automatic.allowed:
        code = None if automatic.reason is None else automatic.reason.code
        shown |= {"blocked_reason": code or _OTHER_REASON, "next": next_step}
    return shown


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "peer.predict",
        "POST",
        "/v1/peers/{id}/predict-approval",
        "Predict whether a person would approve, and say whether an action may be automatic.",
        predict_approval,
        actions=("peer.predict", "peer.see_content", "suggest_auto"),
        fields=wire.PREDICTED,
        answers={200: wire.PREDICTION},
    ),
)
