"""One row: the limits of the grants on its project hold for it, and its record says what was shown."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tests.builders import Client, Gateway, done
from tests.operations.connecting import DID, connect
from tests.operations.memory_acts import allow_all, shared


def test_a_limit_of_a_grant_on_another_project_does_not_cut_a_row(gateway: Gateway) -> None:
    agent = gateway.agent()
    remote = connect(gateway, agent)
    allow_all(gateway, remote)
    allow_all(gateway, remote, "beta", limits={"max_chars": 3})
    row, other = shared(agent, "a whole text"), shared(agent, "a whole text", project_id="beta")
    assert done(remote.get(f"/v1/memories/{row['id']}"), 200)["memory"]["text"] == "a whole text"
    assert done(remote.get(f"/v1/memories/{other['id']}"), 200)["memory"]["text"] == "a w"


def test_requests_about_one_project_are_not_counted_against_the_grant_on_another(gateway: Gateway) -> None:
    agent = gateway.agent()
    remote = connect(gateway, agent, "conn-1")
    allow_all(gateway, remote)
    allow_all(gateway, remote, "beta", limits={"requests_per_minute": 1})
    row = shared(agent, "text")
    for _ in range(3):
        assert read_note(gateway, agent, row["id"], "alpha") == (200, "text")


def test_a_note_of_another_project_than_the_request_names_is_never_fetched(gateway: Gateway) -> None:
    agent = gateway.agent()
    remote = connect(gateway, agent, "conn-1")
    allow_all(gateway, remote)
    allow_all(gateway, remote, "beta")
    row = shared(agent, "text")
    assert read_note(gateway, agent, row["id"], "beta") == (404, None)
    assert last_read(gateway)["count"] == 0
    assert read_note(gateway, agent, row["id"], "alpha") == (200, "text")
    assert last_read(gateway)["count"] == 1


def test_the_record_of_a_long_answer_is_of_all_that_was_in_it(gateway: Gateway) -> None:
    agent = gateway.agent()
    rows = [shared(agent, f"tea {number}") for number in range(205)]
    made = done(agent.post("/v1/memories/query", {"query": "tea", "project_id": "alpha", "max_tokens": 50_000}), 200)
    ids = [source["id"] for source in made["sources"]]
    assert sorted(ids) == sorted(row["id"] for row in rows)
    shown = details(gateway, "memory.query")
    assert (shown["count"], shown["digest"]) == (205, hashlib.sha256("\n".join(ids).encode()).hexdigest())


def read_note(gateway: Gateway, agent: Client, row_id: str, project: str) -> tuple[int, str | None]:
    token = done(gateway.owner.post(f"/v1/agents/{agent.id}/bridge-token"), 201)["token"]
    body = {"connection_id": "conn-1", "source_did": DID, "obligations": [], "collection_id": project, "source_path": row_id}
    answer = Client(gateway.http, agent.id, token).post("/api/arp/notes.read", body)
    return answer.status_code, answer.json().get("item", {}).get("content")


def last_read(gateway: Gateway) -> dict[str, Any]:
    return details(gateway, "memory.read")


def details(gateway: Gateway, action: str) -> dict[str, Any]:
    sql = "SELECT details FROM log WHERE action = $1 AND kind = 'decision' ORDER BY seq DESC LIMIT 1"
    found: dict[str, Any] = json.loads(gateway.services.database.read_sync(lambda rows: rows.value(sql, action)))
    return found
