"""Forgetting: by connection, remote agent, project or id; hidden, deleted or erased; and nothing of it comes back."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gateway.wiring import create_data
from tests.builders import Client, Gateway, done
from tests.operations.asking import ABSENT, actions, stored
from tests.operations.connecting import DID, connect
from tests.operations.memory_acts import allow_all, listed, raw, refused, remember, search, shared, texts

TABLES = ("memories", "memory_tokens", "memory_vectors", "memory_links", "memory_provenance")


def fill(agent: Client, connection: Client) -> list[str]:
    """A row a layer that came over the connection, one derived from one of them, and an owner's own; all but the last named."""
    rows = [shared(connection, f"tea {layer}", layer=layer)["id"] for layer in ("fact", "timeline", "session", "chunk")]
    rows.append(remember(agent, "tea derived", derived_from=[rows[0]])["id"])
    remember(agent, "own tea", project_id="alpha")
    return rows


def counted(gateway: Gateway) -> list[int]:
    return [stored(gateway, f"SELECT count(*) FROM {table}")[0][0] for table in TABLES]


def forget(who: Client, **body: object) -> dict[str, Any]:
    receipt: dict[str, Any] = done(who.post("/v1/memories/forget", body), 200)
    return receipt


@pytest.mark.parametrize("by", ["connection_id", "source_did", "route"])
def test_a_dry_run_counts_and_changes_nothing_and_then_it_is_done_once(
    gateway: Gateway, agent: Client, connection: Client, by: str
) -> None:
    fill(agent, connection)
    before = counted(gateway)

    def act(*, dry_run: bool) -> dict[str, Any]:
        if by == "route":
            path = f"/v1/connections/{connection.id}/memories"
            receipt: dict[str, Any] = done(agent.delete(path, dry_run="true" if dry_run else "false"), 200)
            return receipt
        return forget(agent, **{by: {"connection_id": connection.id, "source_did": DID}[by]}, dry_run=dry_run)

    dry = act(dry_run=True)
    assert counted(gateway) == before
    assert {name: dry[name] for name in ("dry_run", "depth", "connections", "total", "suppressed")} == {
        "dry_run": True,
        "depth": "delete",
        "connections": [connection.id],
        "total": 5,
        "suppressed": [],
    }
    assert [dry["counts"][layer] for layer in ("fact", "timeline", "session", "chunk")] == [2, 1, 1, 1]
    done(connection.post("/v1/memories", {"text": "more", "project_id": "alpha", "layer": "chunk"}), 201)
    real = act(dry_run=False)
    assert (real["total"], real["suppressed"], real["counts"]["chunk"]) == (6, [connection.id], 2)
    assert texts(listed(agent, state="all")) == ["own tea"]
    again = act(dry_run=False)
    assert (again["total"], set(again["counts"].values()), again["suppressed"]) == (0, {0}, [connection.id])


@pytest.mark.parametrize("depth", ["hide", "delete", "erase"])
def test_nothing_that_was_forgotten_is_seen_and_nothing_brings_it_back(
    gateway: Gateway, agent: Client, connection: Client, depth: str
) -> None:
    rows = fill(agent, connection)
    receipt = forget(gateway.owner, agent_id=agent.id, connection_id=connection.id, depth=depth)
    assert (receipt["depth"], receipt["total"]) == ("hide" if depth == "hide" else "delete", 5)
    for who in (agent, connection):
        assert texts(listed(who)) == ["own tea"]
        for mode in ("keyword", "semantic", "hybrid"):
            assert texts(search(who, mode=mode)) == ["own tea"]
    for found in rows:
        assert connection.get(f"/v1/memories/{found}").status_code == 404
        assert agent.get(f"/v1/memories/{found}").status_code == (200 if depth == "hide" else 404)
        derived = agent.post("/v1/memories", {"text": "tea derived", "derived_from": [found]})
        assert derived.status_code == (409 if depth == "hide" else 404)
    assert connection.post("/v1/memories", {"text": "a", "project_id": "alpha"}).status_code == 409
    assert agent.post("/v1/memories", {"text": "a", "connection_id": connection.id}).status_code == 409
    if depth != "hide":
        assert counted(gateway)[0] == 1
        assert stored(gateway, "SELECT count(*) FROM memory_links") == [(0,)]


def test_who_writes_while_it_is_forgotten_brings_nothing_back(gateway: Gateway, agent: Client, connection: Client) -> None:
    def write(number: int) -> int:
        return connection.post("/v1/memories", {"text": f"tea {number}", "project_id": "alpha"}).status_code

    with ThreadPoolExecutor(6) as pool:
        written = [pool.submit(write, number) for number in range(40)]
        done(agent.delete(f"/v1/connections/{connection.id}/memories"), 200)
        statuses = {each.result() for each in written}
    assert statuses <= {201, 409}
    assert counted(gateway) == [0] * len(TABLES)


def test_a_connection_that_replaced_another_is_followed(gateway: Gateway, agent: Client, connection: Client) -> None:
    shared(connection, "old tea")
    newer = connect(gateway, agent, replaces=connection.id)
    allow_all(gateway, newer)
    shared(newer, "new tea")
    receipt = forget(agent, connection_id=newer.id)
    assert (sorted(receipt["connections"]), receipt["total"]) == (sorted([connection.id, newer.id]), 2)
    assert listed(agent, state="all")["items"] == []


def test_a_project_is_forgotten_with_what_was_derived_from_it_and_suppresses_nothing(
    gateway: Gateway, agent: Client, connection: Client
) -> None:
    one, two = shared(connection, "tea"), remember(agent, "coffee", project_id="beta")
    remember(agent, "both", derived_from=[one["id"], two["id"]])
    receipt = forget(agent, project_id="ALPHA")
    assert (receipt["total"], receipt["connections"], receipt["suppressed"]) == (2, [], [])
    assert texts(listed(agent, state="all")) == ["coffee"]
    shared(connection, "tea again")


def test_one_row_is_forgotten_by_id_and_a_second_time_finds_none(gateway: Gateway, agent: Client) -> None:
    row, _ = remember(agent, "tea"), remember(agent, "coffee")
    elsewhere = remember(gateway.agent("other"), "far")
    assert [forget(agent, id=row["id"])["total"] for _ in range(2)] == [1, 0]
    assert forget(agent, id=elsewhere["id"])["total"] == 0
    assert texts(listed(agent, state="all")) == ["coffee"]


MALFORMED: tuple[tuple[dict[str, object], str], ...] = (
    ({}, "connection_id"),
    ({"project_id": "alpha", "id": ABSENT}, "connection_id"),
    ({"project_id": None}, "project_id"),
    ({"project_id": ""}, "project_id"),
    ({"project_id": "*"}, "project_id"),
    ({"id": "x"}, "id"),
    ({"source_did": "x"}, "source_did"),
    ({"connection_id": "%"}, "connection_id"),
    ({"id": ABSENT, "depth": "all"}, "depth"),
    ({"id": ABSENT, "depth": None}, "depth"),
    ({"id": ABSENT, "dry_run": "true"}, "dry_run"),
    ({"id": ABSENT, "dry_run": None}, "dry_run"),
    ({"id": ABSENT, "tag": "x"}, "tag"),
)


def test_a_malformed_order_to_forget_is_400_and_forgets_nothing(agent: Client) -> None:
    shared(agent, "tea")
    for body, field in MALFORMED:
        assert refused(agent.post("/v1/memories/forget", body)) == (400, [field]), body
    assert texts(listed(agent)) == ["tea"]


def test_a_malformed_order_about_a_connection_is_400(agent: Client, connection: Client) -> None:
    shared(connection, "tea")
    for sent in ("dry_run=yes", "dry_run=", "depth=all", "dry_run=true&dry_run=false", "agent_id=x"):
        answer = raw(agent, "DELETE", f"/v1/connections/{connection.id}/memories?{sent}")
        assert refused(answer) == (400, [sent.partition("=")[0]])
    assert texts(listed(agent)) == ["tea"]


def test_only_an_owner_forgets(gateway: Gateway, agent: Client, connection: Client) -> None:
    shared(connection, "tea")
    other = gateway.agent("other")
    theirs = connect(gateway, other, did="did:web:b.example")
    path = f"/v1/connections/{connection.id}/memories"
    assert (
        connection.delete(path).status_code == connection.post("/v1/memories/forget", {"project_id": "alpha"}).status_code == 403
    )
    assert theirs.delete(path).status_code == 403
    for who in (gateway.member, gateway.security, gateway.auditor):
        assert who.delete(path).status_code == 403
        assert who.post("/v1/memories/forget", {"agent_id": agent.id, "project_id": "alpha"}).status_code == 403
    for who in (other, gateway.other_owner):
        assert who.delete(path).status_code == who.delete("/v1/connections/none-such/memories").status_code == 404
        assert who.post("/v1/memories/forget", {"agent_id": agent.id, "project_id": "alpha"}).status_code == 404
    assert refused(gateway.owner.post("/v1/memories/forget", {"project_id": "alpha"})) == (400, ["agent_id"])
    for unknown in (theirs.id, "none-such"):
        assert agent.post("/v1/memories/forget", {"connection_id": unknown}).status_code == 404
    assert texts(listed(agent)) == ["tea"]


# -- erased


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway whose data directory holds one organisation."""
    create_data(tmp_path / "alone")
    made = Gateway.__new__(Gateway)
    made._open(tmp_path / "alone")
    made.owner = made.org("owner@sample.example")
    yield made
    made.close()


def file_of(gateway: Gateway) -> int:
    """Which file the store is: another one once it was rewritten."""
    return gateway.services.database.files.database.stat().st_ino


def test_an_erasure_takes_the_bytes_off_the_disk_and_is_one_entry_of_the_log(alone: Gateway) -> None:
    agent = alone.agent()
    connection = connect(alone, agent)
    allow_all(alone, connection)
    row = shared(connection, "MARKER tea", tags=["MARKER"])
    alone.services.database.checkpoint().result()
    before = file_of(alone)
    receipt = forget(alone.owner, agent_id=agent.id, connection_id=connection.id, depth="erase")
    assert (receipt["depth"], receipt["total"], file_of(alone) != before) == ("erase", 1, True)
    assert b"MARKER" not in alone.services.database.files.database.read_bytes()
    assert actions(alone)[-1] == "memory.forgotten"
    assert stored(alone, "SELECT details FROM log WHERE action = 'memory.forgotten'")[0][0].count('"depth":"erase"') == 1
    for table in ("log", "slices"):
        for found in stored(alone, f"SELECT * FROM {table}"):
            assert "MARKER" not in str(found)
    assert stored(alone, "SELECT count(*) FROM slices WHERE strpos(body, $1) > 0", row["id"]) == [(0,)]


def test_an_erasure_that_finds_nothing_leaves_the_file_and_says_so(alone: Gateway) -> None:
    agent = alone.agent()
    connection = connect(alone, agent)
    before = file_of(alone)
    for what in ({"project_id": "alpha"}, {"id": ABSENT}, {"connection_id": connection.id}):
        receipt = forget(alone.owner, agent_id=agent.id, depth="erase", **what)
        assert (receipt["depth"], receipt["total"], file_of(alone)) == ("delete", 0, before)


def test_a_dry_run_of_an_erasure_says_what_would_be_and_rewrites_nothing(alone: Gateway) -> None:
    agent = alone.agent()
    shared(agent, "tea")
    before = file_of(alone)
    receipt = forget(alone.owner, agent_id=agent.id, project_id="alpha", depth="erase", dry_run=True)
    assert (receipt["depth"], receipt["total"], file_of(alone)) == ("erase", 1, before)


def test_beside_another_organisation_an_erasure_deletes_and_the_file_is_the_operators(
    gateway: Gateway, agent: Client, connection: Client
) -> None:
    shared(connection, "tea")
    before = file_of(gateway)
    path = f"/v1/connections/{connection.id}/memories"
    assert done(gateway.owner.delete(path, depth="erase", dry_run="true"), 200)["depth"] == "delete"
    receipt = done(gateway.owner.delete(path, depth="erase"), 200)
    assert (receipt["depth"], receipt["total"], file_of(gateway)) == ("delete", 1, before)
    assert counted(gateway) == [0] * len(TABLES)


def test_an_admin_deletes_and_leaves_the_file_to_the_owner(alone: Gateway) -> None:
    agent, admin = alone.agent(), alone.human("admin")
    shared(agent, "tea")
    before = file_of(alone)
    receipt = forget(admin, agent_id=agent.id, project_id="alpha", depth="erase")
    assert (receipt["depth"], receipt["total"], file_of(alone)) == ("delete", 1, before)


def test_an_agent_never_erases(alone: Gateway) -> None:
    agent = alone.agent()
    connection = connect(alone, agent)
    row, before = shared(agent, "tea"), file_of(alone)
    path = f"/v1/connections/{connection.id}/memories"
    answers = [agent.delete(path, depth="erase"), agent.delete(path, depth="erase", dry_run="true")]
    for what in ({"id": row["id"]}, {"project_id": "alpha"}, {"connection_id": connection.id}, {"source_did": DID}):
        answers.append(agent.post("/v1/memories/forget", {**what, "depth": "erase"}))
    assert {(made.status_code, made.json()["detail"]) for made in answers} == {(403, "Only a human does this.")}
    denied = stored(alone, "SELECT DISTINCT action, principal_type FROM log WHERE outcome = 'deny'")
    assert (denied, texts(listed(agent)), file_of(alone)) == ([("memory.erase", "Agent")], ["tea"], before)


# -- replaced


@pytest.mark.parametrize("depth", ["hide", "delete"])
def test_what_replaces_a_forgotten_connection_is_forgotten_from_its_first_moment(
    gateway: Gateway, agent: Client, connection: Client, depth: str
) -> None:
    forget(agent, connection_id=connection.id, depth=depth)
    second = connect(gateway, agent, replaces=connection.id)
    third = connect(gateway, agent, replaces=second.id)
    beside = connect(gateway, agent)
    for made, status in ((third, 409), (beside, 201)):
        allow_all(gateway, made)
        assert made.post("/v1/memories", {"text": "tea", "project_id": "alpha"}).status_code == status
        assert agent.post("/v1/memories", {"text": "tea", "connection_id": made.id}).status_code == status
    suppressed = stored(gateway, "SELECT connection_id FROM memory_suppressions ORDER BY connection_id")
    assert suppressed == sorted((made.id,) for made in (connection, second, third))
