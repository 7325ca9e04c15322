"""Acts on memory for tests: rows that are remembered, what is granted of them, and what is seen."""

from __future__ import annotations

from typing import Any

from tests.builders import Client, Gateway, Response, done
from tests.operations.connecting import allow

EVERYTHING = ("search", "read", "query", "remember")
TIERS = ("public", "internal", "confidential", "pii")
LAYERS = ("fact", "timeline", "session", "chunk")
MODES = ("keyword", "semantic", "hybrid")
NO_HEALTH = """@id("guardrails/health")
@reason("No remote agent reads about health.")
forbid (
  principal is Connection,
  action == Action::"memory.read",
  resource is Memory
)
when { resource.tags.contains("health") };
"""


def allow_all(gateway: Gateway, connection: Client, project: str = "alpha", **body: object) -> dict[str, Any]:
    """A grant of all four actions on a project."""
    return allow(gateway, connection, project, EVERYTHING, **body)


def remember(who: Client, text: str, **body: object) -> dict[str, Any]:
    """A row that somebody wrote."""
    row: dict[str, Any] = done(who.post("/v1/memories", {"text": text, **body}), 201)["memory"]
    return row


def shared(who: Client, text: str = "Sarah joined alpha", **body: object) -> dict[str, Any]:
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
