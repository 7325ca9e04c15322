"""Asking: a person's wish to be asked every time, written into an agent's rules."""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import Invalid
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.records import Peer
from gateway.model.rules import MAX_RULES, ApprovalRules, parse_rules, widens
from gateway.store.canonical import canonical
from gateway.store.rows import Tx

UPDATE = "UPDATE agents SET approval_policy = $2 WHERE id = $1"


def ask_me(tx: Tx, grant: Grant[Peer], agent_id: str, action_type: str) -> ApprovalRules:
    """Make an agent ask for an action every time, and return its rules.

    Raises:
        Invalid: the agent does not observe the peer, or has as many rules as it may have.
    """
    # No permission but input: the granted peer's own list, which holds the agents that the person may speak to from it.
    agent = tx.state.agents.get(agent_id)
    if agent is None or not tx.state.observes(agent_id, grant.target.id, grant.now):
        raise Invalid("`agent_id` must name an agent that observes this peer", field="agent_id")
    grant.note(agent_id=agent_id)
    rules = asking(agent.rules, action_type)
    if rules != agent.rules:
        changed = replace(agent, rules=rules)
        tx.run(UPDATE, agent_id, canonical(rules.source))
        tx.after_commit(lambda: tx.state.put_agent(changed))
    about = {"agent_id": agent_id, "action_type": action_type, "peer_id": grant.target.id}
    tx.append(grant.audit("agent.updated", about, resource=EntityUid("Agent", agent_id)))
    return rules


def asking(rules: ApprovalRules, action_type: str) -> ApprovalRules:
    """The rules with `mode` approve for one action; its threshold and template stay, and so does a rule that denies.

    Raises:
        Invalid: there is no room for another rule.
    """
    standing = rules.rule_for(action_type)
    written = rules.source.get("rules", [])
    entries = [dict(entry) for entry in written] if isinstance(written, list) else []
    if standing is None:
        if len(entries) >= MAX_RULES:
            raise Invalid(f"the policy of `agent_id` holds {MAX_RULES} rules already, and no more are allowed", field="agent_id")
        entries.append({"action_type": action_type, "mode": "approve"})
    elif standing.mode == "allow":
        entries = [{**entry, "mode": "approve"} if entry["action_type"] == action_type else entry for entry in entries]
    asked = parse_rules({**rules.source, "rules": entries})
    # Where the default denies, a rule that asks would open what is closed.
    return rules if widens(rules, asked) else asked
