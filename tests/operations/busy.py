"""A gateway to which much has happened: every kind of record that the decision log holds."""

from __future__ import annotations

from datetime import timedelta

from tests.builders import Client, Gateway, done
from tests.operations.asking import ABSENT, ask, befriend, decide
from tests.operations.connecting import connect
from tests.operations.memory_acts import allow_all, search, shared

RULES = {
    "default_mode": "approve",
    "rules": [
        {"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "50"},
        {"action_type": "mail.send", "mode": "approve"},
        {"action_type": "order.cancel", "mode": "deny"},
    ],
}


def busy(gateway: Gateway) -> Client:
    """Let people, agents and remote agents do what they may and what they may not; the agent that did most of it."""
    agent, other = gateway.agent(policy=RULES), gateway.agent("other")
    peer = gateway.peer(observers=[agent])
    gateway.clock.advance(timedelta(minutes=7))
    for who in (agent, other, gateway.member, gateway.owner, gateway.security, gateway.other_owner):
        who.get(f"/v1/peers/{peer['id']}")
        who.get(f"/v1/peers/{peer['id']}/context")
        who.get(f"/v1/peers/{ABSENT}")
        who.get("/v1/approvals")
        who.get("/v1/approvals", scope="org")
        who.get("/v1/audit/events")
        who.get("/v1/decisions")
        who.get("/v1/org/settings")
        who.post(f"/v1/peers/{peer['id']}/predict-approval", _prediction(agent, who, "refund.create", amount_usd="12"))
    befriend(agent, gateway.owner, "a@canary.example")
    for action, amount in (("refund.create", "12"), ("refund.create", "80"), ("mail.send", None), ("key.rotate", None)):
        payload = {"recipient": "a@canary.example", **({} if amount is None else {"amount_usd": amount})}
        agent.post(f"/v1/peers/{peer['id']}/predict-approval", _prediction(agent, agent, action, **payload))
        decide(gateway.owner, ask(agent, action=action, payload=payload), "reject") if action != "key.rotate" else None
    agent.post("/v1/approvals/request", {"action": "order.cancel", "target_type": "o", "target_id": "1", "summary": "s"})
    done(gateway.member.put(f"/v1/peers/{peer['id']}/pause", {"reading": True, "learning": False}), 200)
    gateway.clock.advance(timedelta(minutes=7))
    agent.get(f"/v1/peers/{peer['id']}/context")
    agent.post(f"/v1/peers/{peer['id']}/predict-approval", _prediction(agent, agent, "refund.create", amount_usd="12"))
    _remember(gateway, agent)
    return agent


def _prediction(agent: Client, who: Client, action: str, **payload: object) -> dict[str, object]:
    named = {} if who is agent else {"agent_id": agent.id}
    return {"action_type": action, "effective_risk_tier": 1, "payload": payload, **(named if who.email else {})}


def _remember(gateway: Gateway, agent: Client) -> None:
    rows = [shared(agent, f"tea with {name}") for name in ("Sarah", "Omar")]
    shared(agent, "tea alone", classification="pii")
    granted, bare = connect(gateway, agent), connect(gateway, agent)
    grant = allow_all(gateway, granted)
    for remote in (granted, bare):
        search(remote)
        remote.get(f"/v1/memories/{rows[0]['id']}")
        remote.get(f"/v1/memories/{ABSENT}")
        remote.post("/v1/memories", {"text": "tea from afar", "project_id": "alpha"})
        remote.post("/v1/memories", {"text": "tea from afar", "project_id": "beta"})
    search(agent)
    gateway.owner.post("/v1/memories/search", {"query": "tea", "agent_id": agent.id})
    gateway.member.post("/v1/memories/search", {"query": "tea", "agent_id": agent.id})
    done(gateway.owner.delete(f"/v1/connections/{granted.id}/grants/{grant['id']}"), 204)
    search(granted)
