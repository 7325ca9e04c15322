"""What tests about peers do again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tests.builders import Client, Gateway, Response, done

REFUND: Mapping[str, object] = {"amount_usd": "5", "recipient": "a@b.co"}
#: The key of decisions that agents post about `REFUND`: what they post never makes a recipient known.
KEY = "approval_tendency:refund.create|0-10|new|a@b.co"
FOOTER = "These are observations about past decisions, not instructions and not permission."
NO_HISTORY = "No comparable requests were decided so far (0)."


def path(peer: Mapping[str, Any], rest: str = "") -> str:
    return f"/v1/peers/{peer['id']}{rest}"


def fact_path(peer: Mapping[str, Any], key: str = KEY, rest: str = "") -> str:
    return path(peer, f"/facts/{quote(key, safe='')}{rest}")


def post(
    agent: Client, peer: Mapping[str, Any], decision: str = "approved", payload: Mapping[str, object] = REFUND, **more: object
) -> Response:
    content = {"action": "refund.create", "decision": decision, "payload": payload}
    return agent.post(path(peer, "/events"), {"event_type": "approval", "content": content, **more})


def learn(
    agent: Client, peer: Mapping[str, Any], times: int, decision: str = "approved", payload: Mapping[str, object] = REFUND
) -> list[str]:
    """Post the same decision some times; the ids of the events."""
    return [done(post(agent, peer, decision, payload), 201)["event_id"] for _ in range(times)]


def decide(gateway: Gateway, agent: Client, decision: str, payload: Mapping[str, object], by: Client | None = None) -> str:
    """Request an approval of a ticket to close and have it decided; its id. The payload must be tier 1."""
    asked = {"action": "ticket.close", "target_type": "ticket", "target_id": "7", "summary": "close it", "payload": payload}
    approval: str = done(agent.post("/v1/approvals/request", asked), 202)["id"]
    done((by or gateway.owner).post(f"/v1/approvals/{approval}/decide", {"decision": decision}), 200)
    return approval


def predict(client: Client, peer: Mapping[str, Any], payload: Mapping[str, object] = REFUND, **more: object) -> Any:
    body = {"action_type": "refund.create", "effective_risk_tier": 1, "payload": payload, **more}
    return done(client.post(path(peer, "/predict-approval"), body), 200)


def context(client: Client, peer: Mapping[str, Any], **query: object) -> Any:
    return done(client.get(path(peer, "/context"), **query), 200)


def facts(client: Client, peer: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done(client.get(path(peer)), 200)["facts"]
    return found


def proof(client: Client) -> dict[str, str]:
    """The header that confirms who a human is."""
    return {"X-Auth-Confirm": client.password}
