"""Widenings: a change of an agent's policy that lets it do more, held until a second person has approved it."""

from __future__ import annotations

from collections.abc import Mapping

from gateway import limits
from gateway.errors import Conflict, Invalid
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.ids import new_id
from gateway.model.proposal import read_proposal
from gateway.model.records import Agent
from gateway.model.rules import NO_RULES, ApprovalRules, widens
from gateway.store import agents, approvals
from gateway.store.approvals import Approval
from gateway.store.canonical import canonical, digest
from gateway.store.rows import Tx
from gateway.store.state import State

ACTION = "policy_change"
SAME_PENDING = """SELECT id FROM approvals WHERE agent_id = $1 AND action = 'policy_change' AND payload_hash = $2
  AND status = 'pending' AND expires_at > $3::TIMESTAMP ORDER BY created_at, id LIMIT 1"""
APPLY = "UPDATE approvals SET understood = $2 WHERE id = $1"


def change_agent(tx: Tx, grant: Grant[Agent], changes: Mapping[str, object], *, approval_id: str | None) -> Agent | Approval:
    """Change an agent; where a wider policy waits for a second person, return the approval it waits for and change nothing.

    Raises:
        Invalid: `approval_id` is of something else.
        Conflict: the approval is not approved, has ended or was used.
    """
    agent = agents.current(tx, grant)
    rules = changes.get("rules")
    if isinstance(rules, ApprovalRules):
        org = tx.state.orgs[agent.org_id]
        if approval_id is not None:
            _use(tx, grant, agent, rules, approval_id)
        elif org.settings.guardrail_changes_require_approval and widens(agent.rules, rules):
            return _ask(tx, grant, agent, rules)
    return agents.update(tx, grant, changes)


def revision_of(asked: Approval) -> str:
    """The id of the change that an approval is about."""
    return str(asked.understood["revision_id"])


def second_person(state: State, agent: Agent, asking: str) -> str | None:
    """Whom a widening is addressed to: the human who registered the agent, when another wants it; else an owner or admin.

    Of owners, then of admins, the first. None when there is nobody but the one who asks, who never decides it: then it
    waits until there is a second owner or admin.
    """
    if agent.created_by != asking and agent.created_by in state.humans:
        return agent.created_by
    humans = [human for human in list(state.humans.values()) if human.org_id == agent.org_id and human.id != asking]
    for role in ("owner", "admin"):
        named = sorted((human.created_at, human.id) for human in humans if human.role == role)
        if named:
            return named[0][1]
    return None


def _ask(tx: Tx, grant: Grant[Agent], agent: Agent, rules: ApprovalRules) -> Approval:
    payload = _payload(agent, rules)
    payload_hash = digest({"action": ACTION, "payload": payload})
    waiting = tx.value(SAME_PENDING, agent.id, payload_hash, grant.now)
    found = approvals.load(tx, waiting, grant.now) if waiting is not None else None
    if found is not None:
        return found
    read = read_proposal(ACTION, {}, rules=NO_RULES, known_recipient=False, declared_tier=None, sensitive_actions=())
    asked = Approval(
        id=new_id(),
        org_id=agent.org_id,
        agent_id=agent.id,
        user_id=second_person(tx.state, agent, grant.caller.id) or grant.caller.id,
        connection_id=None,
        action=ACTION,
        target_type="agent",
        target_id=agent.id,
        risk_tier=read.risk_tier,
        declared_risk_tier=None,
        status="pending",
        human_summary=f"let agent {agent.id} do more without asking, as user {grant.caller.id} wants it",
        payload_hash=payload_hash,
        reason=None,
        decision_reason=None,
        decided_by=None,
        decided_at=None,
        created_at=grant.now,
        expires_at=grant.now + limits.APPROVAL_LIFETIME,
        summary="a wider action_approval_policy",
        payload=payload,
        understood={**read.understood(), "revision_id": new_id(), "applied_at": None},
    )
    approvals.insert(tx, asked, recipient=None, asked_by=grant.caller.id)
    about = {"approval_id": asked.id, "agent_id": agent.id, "risk_tier": asked.risk_tier}
    tx.append(grant.audit("approval.requested", about, resource=EntityUid("Approval", asked.id)))
    return asked


def _use(tx: Tx, grant: Grant[Agent], agent: Agent, rules: ApprovalRules, approval_id: str) -> None:
    asked = approvals.load(tx, approval_id, grant.now)
    if asked is None or (asked.action, asked.agent_id) != (ACTION, agent.id):
        raise Invalid("`approval_id` is not of a change of this agent's policy", field="approval_id")
    if asked.payload_hash != digest({"action": ACTION, "payload": _payload(agent, rules)}):
        raise Invalid("`approval_id` is of another `action_approval_policy` than the one sent", field="approval_id")
    if asked.status != "approved":
        raise Conflict(f"the approval of this change is `{asked.status}`; only an approved one can be applied")
    if asked.understood["applied_at"] is not None:
        raise Conflict("the approval of this change was used before; each is good for one change")
    if grant.now >= asked.expires_at:
        raise Conflict("the approval of this change has ended; ask again")
    tx.run(APPLY, asked.id, canonical({**asked.understood, "applied_at": grant.now.isoformat().replace("+00:00", "Z")}))


def _payload(agent: Agent, rules: ApprovalRules) -> dict[str, object]:
    return {"agent_id": agent.id, "action_approval_policy": rules.source}
