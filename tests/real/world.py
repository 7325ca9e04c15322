"""People and agents at a server that runs: what the published client and plain HTTP are pointed at."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx
from oneclaw import OneclawClient, create_client


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody's credentials."""

    id: str
    email: str
    password: str = field(repr=False)
    api_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent's id and key."""

    id: str
    api_key: str = field(repr=False)


class World:
    """One server; everything that was opened to it is closed with it."""

    def __init__(self, url: str, owner: Mapping[str, str]) -> None:
        self.url = url
        self._opened = ExitStack()
        self._numbers = count(1)
        me = self.http(owner["api_key"]).get("/v1/auth/me").json()
        self.owner = Person(me["id"], owner["email"], owner["password"], owner["api_key"])

    def close(self) -> None:
        self._opened.close()

    def name(self, of: str) -> str:
        """A name that nothing else has."""
        return f"{of}-{next(self._numbers)}"

    def client(self, api_key: str, **more: str) -> OneclawClient:
        """The published client, with a key."""
        return self._opened.enter_context(create_client(base_url=self.url, api_key=api_key, **more))

    def bearer(self, token: str) -> OneclawClient:
        """The published client, with a token."""
        return self._opened.enter_context(create_client(base_url=self.url, token=token))

    def http(self, api_key: str | None = None) -> httpx.Client:
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        return self._opened.enter_context(httpx.Client(base_url=self.url, headers=headers))

    def person(self, role: str) -> Person:
        """A new member of the owner's organisation."""
        email = f"{self.name(role)}@sample.example"
        made = done(self.http(self.owner.api_key).post("/v1/org/members", json={"email": email, "role": role}), 201)
        signed_in = done(self.http().post("/v1/auth/token", json={"email": email, "password": made["password"]}), 200)
        key = done(self.http(signed_in["access_token"]).post("/v1/auth/api-keys", json={"name": "tests"}), 201)
        return Person(made["member"]["id"], email, made["password"], key["api_key"])

    def agent(self, policy: object = None, by: Person | None = None, **more: object) -> Agent:
        """A new agent, registered by the owner unless somebody else is named."""
        body = {"name": self.name("agent"), "action_approval_policy": policy, **more}
        made = done(self.http((by or self.owner).api_key).post("/v1/agents", json=body), 201)
        return Agent(made["agent"]["id"], made["api_key"])

    def peer(self, person: Person, *observers: Agent) -> str:
        """A peer about a person; its id."""
        body = {"peer_type": "user", "peer_ref": person.id, "observer_agent_ids": [agent.id for agent in observers]}
        made: str = done(self.http(self.owner.api_key).post("/v1/peers", json=body), 201)["peer"]["id"]
        return made

    def approved(self, agent: Agent, person: Person, action: str, payload: Mapping[str, object]) -> str:
        """An approval that the agent requested and the person gave, with their password; its id."""
        asked = {"action": action, "target_type": "order", "target_id": "1", "summary": "sample", "payload": payload}
        approval: str = done(self.http(agent.api_key).post("/v1/approvals/request", json=asked), 202)["id"]
        confirm = {"X-Auth-Confirm": person.password}
        decide = f"/v1/approvals/{approval}/decide"
        done(self.http(person.api_key).post(decide, json={"decision": "approve"}, headers=confirm), 200)
        return approval


def done(response: httpx.Response, status: int) -> Any:
    """The body of an answer that must have this status."""
    asked = response.request
    assert response.status_code == status, f"{asked.method} {asked.url}: {response.status_code} {response.text}"
    return response.json() if response.content else None


def data(answer: Any) -> Any:
    """What the published client got; it must not be an error."""
    assert answer.error is None, answer.error
    return answer.data


def error(answer: Any) -> tuple[int, str]:
    """The status and the client's name of an error."""
    assert answer.error is not None, answer.data
    return answer.meta.status, answer.error.type
