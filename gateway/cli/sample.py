"""Sample data for `peergate demo`: two organisations, made through the API like anybody's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx

ORG, OTHER_ORG = "Sample organisation", "Other sample organisation"
RULES = {
    "default_mode": "approve",
    "rules": [
        {"action_type": "refund.create", "mode": "approve", "summary_template": "Refund {{amount_usd}} USD to {{recipient}}"},
        {"action_type": "ticket.close", "mode": "allow"},
    ],
}
APPROVED_REFUNDS = 7
REFUND = {"amount_usd": "8.50", "recipient": "customer-17@example.com"}


@dataclass(frozen=True, slots=True)
class Person:
    """A sample user's credentials."""

    email: str
    password: str
    api_key: str

    def shown(self) -> dict[str, str]:
        return {"email": self.email, "password": self.password, "api_key": self.api_key}


@dataclass(frozen=True, slots=True)
class Sample:
    """What was made: `credentials` as `peergate demo --json` prints them, and the ids that the examples use."""

    credentials: dict[str, Any] = field(repr=False)
    peer_id: str


async def make_sample(http: httpx.AsyncClient, owner: Person, other_owner: Person) -> Sample:
    """Fill two fresh organisations through the API: people, agents, a platform, a peer with a history."""
    people = {role: await _member(http, owner, role) for role in ("admin", "security", "auditor", "member")}
    member = people["member"]
    me = await _ask(http, member.api_key, "GET", "/v1/auth/me")
    assistant = await _agent(http, member.api_key, "sample-assistant", RULES)
    stranger = await _agent(http, owner.api_key, "sample-stranger", None)
    peer = await _ask(
        http,
        member.api_key,
        "POST",
        "/v1/peers",
        {"peer_type": "user", "peer_ref": me["id"], "display_name": "Sample person", "observer_agent_ids": [assistant["id"]]},
    )
    for number in range(APPROVED_REFUNDS):
        await _approved_refund(http, assistant["api_key"], member, number)
    platform = await _ask(http, owner.api_key, "POST", "/v1/org/platform-apps", {"name": "Sample platform", "slug": "sample"})
    template = {"name": "Sample template", "agents": [{"name": "sample-concierge", "action_approval_policy": RULES}]}
    made = await _ask(http, owner.api_key, "POST", "/v1/org/platform-templates", template)
    other_agent = await _agent(http, other_owner.api_key, "other-agent", None)
    credentials = {
        "owner": owner.shown(),
        **{role: person.shown() for role, person in people.items()},
        "platform": {"api_key": platform["api_key"], "template_id": made["template"]["id"]},
        "agents": [assistant, stranger],
        "other_org": {"owner": other_owner.shown(), "agents": [other_agent]},
    }
    return Sample(credentials, peer["peer"]["id"])


async def _approved_refund(http: httpx.AsyncClient, agent_key: str, person: Person, number: int) -> None:
    request = {
        "action": "refund.create",
        "target_type": "order",
        "target_id": f"sample-order-{number + 1}",
        "summary": {"title": "Refund a sample order", "body": "The customer returned it.", "fields": []},
        "payload": REFUND,
    }
    approval = await _ask(http, agent_key, "POST", "/v1/approvals/request", request)
    decide = f"/v1/approvals/{approval['id']}/decide"
    await _ask(http, person.api_key, "POST", decide, {"decision": "approve"}, {"X-Auth-Confirm": person.password})


async def _member(http: httpx.AsyncClient, owner: Person, role: str) -> Person:
    email = f"{role}@sample.example"
    made = await _ask(http, owner.api_key, "POST", "/v1/org/members", {"email": email, "role": role})
    token = await _ask(http, None, "POST", "/v1/auth/token", {"email": email, "password": made["password"]})
    key = await _ask(http, token["access_token"], "POST", "/v1/auth/api-keys", {"name": "demo"})
    return Person(email, made["password"], key["api_key"])


async def _agent(http: httpx.AsyncClient, key: str, name: str, rules: object) -> dict[str, str]:
    body: dict[str, object] = {"name": name, "description": "sample"}
    if rules is not None:
        body["action_approval_policy"] = rules
    made = await _ask(http, key, "POST", "/v1/agents", body)
    return {"id": made["agent"]["id"], "name": name, "api_key": made["api_key"]}


async def _ask(
    http: httpx.AsyncClient, key: str | None, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> Any:
    sent = {**({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
    answer = await http.request(method, path, json=body, headers=sent)
    if not answer.is_success:
        raise RuntimeError(f"sample data: {method} {path} answered {answer.status_code}: {answer.text}")
    return answer.json()
