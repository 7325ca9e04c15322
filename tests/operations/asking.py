"""Builders for tests of approvals: requests as agents make them, and proofs as humans give them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyotp
from starlette.testclient import TestClient

from gateway.web.app import create_app
from gateway.wiring import OPERATIONS, open_services
from tests.builders import Client, Gateway, done

ABSENT = "00000000-0000-4000-8000-000000000000"
ORDER = {"action": "refund.create", "target_type": "order", "target_id": "1042", "summary": "a refund"}


def ask(agent: Client, **changes: object) -> dict[str, Any]:
    """An approval that an agent asked for."""
    asked: dict[str, Any] = done(agent.post("/v1/approvals/request", {**ORDER, **changes}), 202)
    return asked


def decide(human: Client, asked: dict[str, Any], word: str = "approve") -> dict[str, Any]:
    """The approval after a human decided it, with their password where one is asked for."""
    made = human.post(f"/v1/approvals/{asked['id']}/decide", {"decision": word}, {"X-Auth-Confirm": human.password})
    decided: dict[str, Any] = done(made, 200)
    return decided


def befriend(agent: Client, human: Client, recipient: str) -> None:
    """Make a recipient one that the agent has an approved approval to."""
    decide(human, ask(agent, payload={"recipient": recipient}))


def second_factor(gateway: Gateway, human: Client) -> str:
    """Enrol a second factor, and return its secret."""
    password = {"X-Auth-Confirm": human.password}
    secret: str = done(human.post("/v1/auth/totp", headers=password), 201)["secret"]
    done(human.post("/v1/auth/totp", {"code": code(gateway, secret)}, password), 200)
    return secret


def proof(gateway: Gateway, human: Client, secret: str, purpose: str = "approval.decide") -> dict[str, str]:
    """The header that proves a human by their second factor; each code is good once, so time passes."""
    gateway.clock.advance(timedelta(seconds=30))
    body = {"method": "totp", "purpose": purpose, "code": code(gateway, secret)}
    return {"X-Auth-Confirm": done(human.post("/v1/auth/reauth/complete", body), 200)["token"]}


def code(gateway: Gateway, secret: str) -> str:
    return pyotp.TOTP(secret).at(gateway.clock.now)


def actions(gateway: Gateway, **query: object) -> list[str]:
    """The audit events of the first organisation, oldest first."""
    events = done(gateway.owner.get("/v1/audit/events", limit=1000, **query), 200)["events"]
    return [event["action"] for event in reversed(events)]


def stored(gateway: Gateway, sql: str, *params: object) -> list[tuple[Any, ...]]:
    """Rows as the database holds them."""
    return gateway.services.database.read_sync(lambda rows: rows.all(sql, *params))


def restart(gateway: Gateway) -> None:
    """Close the data directory and open it again, with nothing in memory but what is stored."""
    services = gateway.services
    services.database.close()
    gateway.services = open_services(services.settings, now=gateway.clock)
    gateway.http = TestClient(create_app(gateway.services, OPERATIONS))
    gateway.owner = replace(gateway.owner, http=gateway.http)
