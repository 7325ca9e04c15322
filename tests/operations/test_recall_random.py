"""Random rows, grants and requests: what a connection gets is what a plain filter over everything gives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.builders import START, Client, Gateway, done
from tests.operations.connecting import connect
from tests.operations.memory_acts import LAYERS, TIERS, listed, remember, search

PROJECTS = ("alpha", "alpha2", "a_b", "axb")
TAGS = ("a", "ab", "a,b", "%")
ROWS, CONNECTIONS, REQUESTS = 80, 10, 8
Row = dict[str, Any]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path / "data", embedding="off")
    yield made
    made.close()


@pytest.mark.parametrize("seed", range(2))
def test_a_connection_gets_what_a_plain_filter_gives(gateway: Gateway, seed: int) -> None:
    random = Random(seed)
    agent = gateway.agent()
    connections = [connect(gateway, agent, did=f"did:web:{number}.example") for number in range(CONNECTIONS)]
    fill(random, agent, connections)
    granted = {each.id: [a_grant(random) for _ in range(random.randint(0, 3))] for each in connections}
    for each in connections:
        for grant in granted[each.id]:
            done(gateway.owner.post(f"/v1/connections/{each.id}/grants", grant), 201)
    rows = everything(agent)
    gateway.clock.advance(timedelta(minutes=5))
    for each in connections:
        for _ in range(REQUESTS):
            check(random, each, rows, granted[each.id], gateway.clock.now)


def fill(random: Random, agent: Client, connections: list[Client]) -> None:
    made: list[Row] = []
    for number in range(ROWS):
        body: Row = {"layer": random.choice(LAYERS), "tags": some(random, TAGS), "classification": random.choice(TIERS)}
        if random.random() < 0.85:
            body["project_id"] = random.choice(PROJECTS)
        if random.random() < 0.4:
            body["connection_id"] = random.choice(connections).id
        if random.random() < 0.3:
            body["expires_at"] = (START + timedelta(minutes=random.choice((-1, 5, 6)))).isoformat()
        if made and random.random() < 0.2:
            sources = random.sample(made, random.randint(1, min(2, len(made))))
            body = {"layer": body["layer"], "derived_from": [row["id"] for row in sources]}
        made.append(remember(agent, f"{random.choice(('tea', 'coffee'))} {number}", **body))
    for row in random.sample(made, 8):
        done(agent.post(f"/v1/memories/{row['id']}/retract"), 200)
    for row in random.sample(everything(agent), 8):
        remember(agent, "tea anew", supersedes=row["id"], classification="pii")


def everything(agent: Client) -> list[Row]:
    rows: list[Row] = []
    cursor = None
    while True:
        page = listed(agent, state="all", limit=200, **({"cursor": cursor} if cursor else {}))
        rows += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return rows


def a_grant(random: Random) -> Row:
    grant: Row = {
        "project_id": random.choice(PROJECTS),
        "actions": random.choice((["search"], ["search", "read", "query"], ["read", "query"])),
        "classifications": some(random, TIERS) or ["public"],
        "provenance": random.choice(("any", "any", "owner_only", "own_connection")),
        "tags_match": random.choice(("any", "all")),
    }
    tags = some(random, TAGS) if random.random() < 0.4 else []
    expiry = {"expires_at": (START + timedelta(minutes=random.choice((5, 6)))).isoformat()} if random.random() < 0.3 else {}
    return grant | ({"tags": tags} if tags else {}) | expiry


def check(random: Random, who: Client, rows: list[Row], grants: list[Row], now: datetime) -> None:
    """Ask once in each way, and compare."""
    asked: Row = {}
    for name, of in (("tags", TAGS), ("layers", LAYERS), ("classifications", TIERS)):
        if random.random() < 0.3:
            asked[name] = some(random, of)
    if random.random() < 0.4:
        asked["project_id"] = random.choice(PROJECTS)
    asked["tags_match"] = random.choice(("any", "all"))
    wanted = {action: {row["id"] for row in rows if wants(row, asked) and sees(row, grants, who.id, action, now)} for action in
              ("search", "read", "query")}  # fmt: skip
    tea = {row["id"] for row in rows if row["text"].startswith("tea")}
    page = search(who, "tea", limit=200, **asked)
    assert ({item["id"] for item in page["items"]}, page["total"]) == (wanted["search"] & tea, len(wanted["search"] & tea))
    if not any(asked.get(name) == [] for name in ("tags", "layers", "classifications")):
        singular = {"tags": "tag", "layers": "layer", "classifications": "classification"}
        page = listed(who, limit=200, **{singular.get(name, name): value for name, value in asked.items()})
        assert ({item["id"] for item in page["items"]}, page["total"]) == (wanted["search"], len(wanted["search"]))
    project = {"project_id": asked.get("project_id", "alpha")}
    body = {"query": "tea", "max_tokens": 50_000, **asked, **project}
    sources = done(who.post("/v1/memories/query", body), 200)["sources"]
    assert {source["id"] for source in sources} == wanted["query"] & tea & {
        row["id"] for row in rows if row["project_id"] == project["project_id"]
    }
    row = random.choice(rows)
    found = who.get(f"/v1/memories/{row['id']}").status_code
    assert found == (200 if sees(row, grants, who.id, "read", now) else 404)


def wants(row: Row, asked: Row) -> bool:
    return (
        ("project_id" not in asked or row["project_id"] == asked["project_id"])
        and ("layers" not in asked or row["layer"] in asked["layers"])
        and ("classifications" not in asked or row["classification"] in asked["classifications"])
        and ("tags" not in asked or tagged(row, asked))
    )


def sees(row: Row, grants: list[Row], connection_id: str, action: str, now: datetime) -> bool:
    if row["retracted_at"] is not None or row["superseded_by"] is not None or ended(row, now):
        return False
    live = [grant for grant in grants if action in grant["actions"] and not ended(grant, now)]
    return any(covers(grant, row, connection_id) for grant in live)


def covers(grant: Row, row: Row, connection_id: str) -> bool:
    came_over = {source["connection_id"] for source in row["provenance"]} - {None}
    return (
        row["project_id"] == grant["project_id"]
        and row["classification"] in grant["classifications"]
        and ("tags" not in grant or tagged(row, grant))
        and {"any": True, "owner_only": not came_over, "own_connection": came_over == {connection_id}}[grant["provenance"]]
    )


def tagged(row: Row, by: Row) -> bool:
    if not by["tags"]:
        return False
    return (all if by["tags_match"] == "all" else any)(tag in row["tags"] for tag in by["tags"])


def ended(what: Row, now: datetime) -> bool:
    end = what.get("expires_at")
    return end is not None and datetime.fromisoformat(end).astimezone(UTC) <= now


def some(random: Random, of: tuple[str, ...]) -> list[str]:
    return random.sample(of, random.randint(0, min(3, len(of))))
