"""Builders for tests: a real gateway on a temporary data directory, its people, agents and peers."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
from starlette.testclient import TestClient

from gateway.config import Settings
from gateway.operations.call import Services
from gateway.policy.bundle import Bundle
from gateway.web.app import create_app
from gateway.wiring import OPERATIONS, create_data, load_bundle, open_services, set_up_org
from tests.described import DescribedClient

START = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
#: Seconds: a machine with much to do is not what a test looks at.
PATIENCE = 600
Response = httpx2.Response
ROLES = ("owner", "admin", "security", "auditor", "member", "other_owner")


@dataclass(slots=True)
class Clock:
    """A clock that stands until it is told otherwise."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, by: timedelta) -> None:
        self.now += by


@dataclass(frozen=True, slots=True)
class Client:
    """One principal and its key."""

    http: TestClient = field(repr=False)
    id: str
    key: str
    email: str = ""
    password: str = ""

    def request(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, **query: object
    ) -> Response:
        sent = {"Authorization": f"Bearer {self.key}", **(headers or {})}
        return self.http.request(method, path, json=body, headers=sent, params={k: v for k, v in query.items() if v is not None})  # type: ignore[arg-type]

    def get(self, path: str, **query: object) -> Response:
        return self.request("GET", path, **query)

    def post(self, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Response:
        return self.request("POST", path, body if body is not None else {}, headers)

    def patch(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Response:
        return self.request("PATCH", path, body, headers)

    def put(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Response:
        return self.request("PUT", path, body, headers)

    def delete(self, path: str, headers: Mapping[str, str] | None = None, **query: object) -> Response:
        return self.request("DELETE", path, None, headers, **query)


class Gateway:
    """A running gateway in this process: one organisation with every role, another beside it.

    It starts as a copy of one that was made through the API once a test run, because hashing passwords and parsing
    policies take most of the time of a small test.
    """

    def __init__(self, data: Path, **settings: Any) -> None:
        made = _first()
        shutil.copytree(made.data, data)
        self._open(data, **settings)
        for role in ROLES:
            setattr(self, role, replace(made.clients[role], http=self.http))

    owner: Client
    admin: Client
    security: Client
    auditor: Client
    member: Client
    other_owner: Client

    def _open(self, data: Path, **settings: Any) -> None:
        self.clock = Clock()
        self.services: Services = open_services(
            Settings(data=data, **{"rate_limit": 0, "address_limit": 0, "deadline": PATIENCE, **settings}),
            now=self.clock,
            bundle=None if "policies" in settings else shipped_bundle(),
        )
        self.http = DescribedClient(create_app(self.services, OPERATIONS), raise_server_exceptions=True)

    def close(self) -> None:
        self.services.database.close()

    def org(self, email: str) -> Client:
        """A fresh organisation's owner."""
        made = set_up_org(self.services, name=f"organisation of {email}", email=email)
        return Client(self.http, made.owner_id, made.api_key, email, made.password)

    def human(self, role: str, *, email: str | None = None, by: Client | None = None) -> Client:
        """A fresh member with a key of their own."""
        owner = by or self.owner
        email = email or f"{role}-{len(self.services.state.humans)}@sample.example"
        made = done(owner.post("/v1/org/members", {"email": email, "role": role}), 201)
        token = done(self.http.post("/v1/auth/token", json={"email": email, "password": made["password"]}), 200)
        signed_in = Client(self.http, made["member"]["id"], token["access_token"])
        key = done(signed_in.post("/v1/auth/api-keys", {"name": "test"}), 201)["api_key"]
        return Client(self.http, made["member"]["id"], key, email, made["password"])

    def agent(self, name: str = "agent", policy: object = None, by: Client | None = None) -> Client:
        """A fresh agent, registered by the owner unless somebody else is named."""
        body: dict[str, object] = {"name": name}
        if policy is not None:
            body["action_approval_policy"] = policy
        made = done((by or self.owner).post("/v1/agents", body), 201)
        return Client(self.http, made["agent"]["id"], made["api_key"])

    def peer(
        self, person: Client | None = None, observers: list[Client] | None = None, by: Client | None = None
    ) -> dict[str, Any]:
        """A peer about a human (the member unless somebody else is named)."""
        about = person or self.member
        body = {"peer_type": "user", "peer_ref": about.id, "observer_agent_ids": [agent.id for agent in observers or []]}
        peer: dict[str, Any] = done((by or self.owner).post("/v1/peers", body), 201)["peer"]
        return peer


class _New(Gateway):
    """A gateway made from nothing, in the order of the roles."""

    def __init__(self, data: Path) -> None:
        create_data(data)
        self._open(data)
        self.owner = self.org("owner@sample.example")
        self.other_owner = self.org("owner@other.example")
        self.admin, self.security, self.auditor, self.member = (
            self.human(role) for role in ("admin", "security", "auditor", "member")
        )


@dataclass(frozen=True, slots=True)
class _First:
    data: Path
    clients: Mapping[str, Client]


@cache
def _first() -> _First:
    directory = Path(tempfile.mkdtemp(prefix="peergate-tests-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    made = _New(directory / "data")
    made.close()
    return _First(directory / "data", {role: getattr(made, role) for role in ROLES})


@cache
def shipped_bundle() -> Bundle:
    """The product's own policies, parsed once a test run; a bundle is never changed."""
    return load_bundle(Settings(data=Path()))


def done(response: Response, status: int) -> Any:
    """The body of an answer that must have this status."""
    assert response.status_code == status, (
        f"{response.request.method} {response.request.url}: {response.status_code} {response.text}"
    )
    return response.json() if response.content else None
