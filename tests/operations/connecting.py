"""Builders for tests of remote agents: their connections, what is granted to them, and rows they may see."""

from __future__ import annotations

from typing import Any

from tests.builders import Client, Gateway, done

DID = "did:web:peer.example"


def connect(
    gateway: Gateway, agent: Client, connection_id: str | None = None, *, by: Client | None = None, **changes: object
) -> Client:
    """A remote agent that is connected to one of ours, with the credential of its connection."""
    body = {"agent_id": agent.id, "peer_did": DID, **({} if connection_id is None else {"id": connection_id}), **changes}
    made = done((by or gateway.owner).post("/v1/connections", body), 201)
    return Client(gateway.http, made["connection"]["id"], made["credential"])


def allow(gateway: Gateway, connection: Client, *, by: Client | None = None, **changes: object) -> dict[str, Any]:
    """A grant on project `alpha`: to search and to read, unless it is made for something else."""
    allowed = {} if "scope" in changes else {"actions": ["search", "read"], "project_id": "alpha"}
    body = {**allowed, **changes}
    made: dict[str, Any] = done((by or gateway.owner).post(f"/v1/connections/{connection.id}/grants", body), 201)["grant"]
    return made


def remember(agent: Client, text: str = "Sarah joined alpha", **changes: object) -> dict[str, Any]:
    """A row that an agent writes, of project `alpha` unless another is named."""
    made: dict[str, Any] = done(agent.post("/v1/memories", {"text": text, "project_id": "alpha", **changes}), 201)["memory"]
    return made


def converse(gateway: Gateway, connection: Client, *, by: Client | None = None) -> Client:
    """A conversation of our agent over a connection."""
    made = done((by or gateway.owner).post(f"/v1/connections/{connection.id}/conversations"), 201)
    return Client(gateway.http, connection.id, made["token"])
