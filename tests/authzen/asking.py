"""A client of the AuthZEN surface over the sample store, and the questions that it asks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.builders import Client, Gateway, Response, done

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT / "examples" / "documents"
SINGLE, BATCH = "/access/v1/evaluation", "/access/v1/evaluations"
SUBJECTS, RESOURCES, ACTIONS = (f"/access/v1/search/{sought}" for sought in ("subject", "resource", "action"))
PATHS = (SINGLE, BATCH, SUBJECTS, RESOURCES, ACTIONS)
Body = dict[str, Any]


def asked(subject: str = "cleo", action: str = "read", resource: str = "welcome", **members: object) -> Body:
    """One question about the sample store; it is answered yes unless something is changed."""
    return {
        "subject": {"type": "user", "id": subject},
        "action": {"name": action},
        "resource": {"type": "document", "id": resource},
        **members,
    }


def without(body: Body, path: str) -> Body:
    """A body without one member, which is named with dots."""
    copy: Body = json.loads(json.dumps(body))
    *places, name = path.split(".")
    inner = copy
    for place in places:
        inner = inner[place]
    del inner[name]
    return copy


@dataclass(frozen=True, slots=True)
class Pep:
    """A program that enforces decisions."""

    client: Client

    def ask(self, path: str, body: object) -> Any:
        return done(self.client.post(path, body), 200)

    def decision(self, body: object) -> bool:
        answer = self.ask(SINGLE, body)
        assert list(answer) == ["decision"]
        decision = answer["decision"]
        assert isinstance(decision, bool)
        return decision

    def decisions(self, body: object) -> list[bool]:
        answer = self.ask(BATCH, body)
        assert list(answer) == ["evaluations"]
        return [each["decision"] for each in answer["evaluations"]]

    def found(self, path: str, body: object) -> list[Any]:
        results: list[Any] = self.ask(path, body)["results"]
        return results

    def raw(self, body: bytes, path: str = SINGLE, **headers: str) -> Response:
        """A body as it is; a header's name is written with underscores."""
        sent = {"Authorization": f"Bearer {self.client.key}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.http.post(path, content=body, headers=sent)


def rows_of(gateway: Gateway, action: str) -> list[Mapping[str, Any]]:
    """The decisions on an action that are in the log, oldest first: who, the outcome and the details."""
    ask = "SELECT principal_type, principal_id, outcome, details FROM log WHERE kind = 'decision' AND action = $1 ORDER BY seq"
    found = gateway.services.database.read_sync(lambda rows: rows.all(ask, action))
    return [{"type": row[0], "id": row[1], "outcome": row[2], "details": json.loads(row[3])} for row in found]


def store(directory: Path, schema: str, policies: str, entities: object, aliases: str | None = None) -> Path:
    """A store directory of these texts."""
    (directory / "policies").mkdir(parents=True)
    (directory / "schema.cedarschema").write_text(schema, "utf-8")
    (directory / "policies" / "all.cedar").write_text(policies, "utf-8")
    (directory / "entities.json").write_text(json.dumps(entities), "utf-8")
    if aliases is not None:
        (directory / "authzen.toml").write_text(aliases, "utf-8")
    return directory


def entity(type_: str, id_: str, *parents: tuple[str, str], **attrs: object) -> Body:
    """An entity in Cedar's JSON."""
    above = [{"type": kind, "id": parent} for kind, parent in parents]
    return {"uid": {"type": type_, "id": id_}, "attrs": attrs, "parents": above}
