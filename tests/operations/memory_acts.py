"""Acts on memory for tests: rows that are remembered, connections that are made, what is granted to them, and what they see."""

from __future__ import annotations

from typing import Any

from tests.builders import Client, Gateway, Response, done

DID = "did:web:peer.example"
EVERYTHING = ("search", "read", "query", "remember")
TIERS = ("public", "internal", "confidential", "pii")
LAYERS = ("fact", "timeline", "session", "chunk")
MODES = ("keyword", "semantic", "hybrid")


def connect(gateway: Gateway, agent: Client, did: str = DID, by: Client | None = None, **body: object) -> Client:
    """A connection of an agent, with its credential."""
    made = done((by or gateway.owner).post("/v1/connections", {"agent_id": agent.id, "peer_did": did, **body}), 201)
    return Client(gateway.http, made["connection"]["id"], made["credential"])


def allow(
    gateway: Gateway, connection: Client, project: str = "alpha", actions: tuple[str, ...] = EVERYTHING, **body: object
) -> dict[str, Any]:
    """A grant on a connection."""
    asked = {"project_id": project, "actions": list(actions), **body}
    grant: dict[str, Any] = done(gateway.owner.post(f"/v1/connections/{connection.id}/grants", asked), 201)["grant"]
    return grant


def remember(who: Client, text: str, **body: object) -> dict[str, Any]:
    """A row that somebody wrote."""
    row: dict[str, Any] = done(who.post("/v1/memories", {"text": text, **body}), 201)["memory"]
    return row


def shared(who: Client, text: str, **body: object) -> dict[str, Any]:
    """A row of the project alpha."""
    return remember(who, text, **{"project_id": "alpha", **body})


def texts(page: dict[str, Any]) -> list[str]:
    """The texts of a page, in order."""
    return [item["text"] for item in page["items"]]


def search(who: Client, query: str = "tea", **body: object) -> dict[str, Any]:
    """A page of a search."""
    page: dict[str, Any] = done(who.post("/v1/memories/search", {"query": query, **body}), 200)
    return page


def listed(who: Client, **query: object) -> dict[str, Any]:
    """A page of a list."""
    page: dict[str, Any] = done(who.get("/v1/memories", **query), 200)
    return page


def seen(who: Client, query: str = "tea", **body: object) -> list[set[str]]:
    """What somebody gets to see, as sets of texts, in every way there is to look at many rows."""
    ways = [set(texts(search(who, query, mode=mode, limit=200, **body))) for mode in MODES]
    plural = {"tags": "tag", "layers": "layer", "classifications": "classification"}
    return [*ways, set(texts(listed(who, limit=200, **{plural.get(name, name): value for name, value in body.items()})))]


def raw(who: Client, method: str, path: str) -> Response:
    """An answer to a path whose query string is sent as it is written."""
    return who.http.request(method, path, headers={"Authorization": f"Bearer {who.key}"})


def refused(answer: Response) -> tuple[int, list[str]]:
    """The status of a refusal, and the fields that it names."""
    return answer.status_code, list(answer.json().get("fields", {}))
