"""Builders for tests of remote agents: their connections, and what is granted to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.builders import Client, Gateway, done

DID = "did:web:peer.example"


def connect(
    gateway: Gateway,
    agent: Client,
    connection_id: str | None = None,
    *,
    did: str = DID,
    by: Client | None = None,
    **changes: object,
) -> Client:
    """A remote agent that is connected to one of ours, with the credential of its connection."""
    body = {"agent_id": agent.id, "peer_did": did, **({} if connection_id is None else {"id": connection_id}), **changes}
    made = done((by or gateway.owner).post("/v1/connections", body), 201)
    return Client(gateway.http, made["connection"]["id"], made["credential"])


def allow(
    gateway: Gateway,
    connection: Client,
    project: str = "alpha",
    actions: Sequence[str] = ("search", "read"),
    *,
    by: Client | None = None,
    **changes: object,
) -> dict[str, Any]:
    """A grant on a project: to search and to read, unless it is made for something else."""
    allowed = {} if "scope" in changes else {"actions": list(actions), "project_id": project}
    body = {**allowed, **changes}
    made: dict[str, Any] = done((by or gateway.owner).post(f"/v1/connections/{connection.id}/grants", body), 201)["grant"]
    return made


def converse(gateway: Gateway, connection: Client, *, by: Client | None = None) -> Client:
    """A conversation of our agent over a connection."""
    made = done((by or gateway.owner).post(f"/v1/connections/{connection.id}/conversations"), 201)
    return Client(gateway.http, connection.id, made["token"])
