"""Memory, row by row: who writes, reads, tags anew, retracts and deletes what, and what a row says of itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.builders import Client, Gateway, done
from tests.operations.asking import ABSENT, stored
from tests.operations.connecting import DID, allow, connect
from tests.operations.memory_acts import allow_all, listed, refused, remember, search, shared, texts

NOW = "2026-03-04T10:00:00Z"


def test_an_agent_remembers_for_itself_and_reads_what_is_stored(agent: Client) -> None:
    row = remember(agent, "likes tea", project_id="ALPHA", tags=["b", " a ", "b"])
    assert row == {
        "id": row["id"],
        "agent_id": agent.id,
        "layer": "fact",
        "text": "likes tea",
        "project_id": "alpha",
        "tags": ["a", "b"],
        "classification": "internal",
        "connection_id": None,
        "source_did": None,
        "created_at": NOW,
        "expires_at": None,
        "retracted_at": None,
        "superseded_by": None,
        "derived_from": [],
        "provenance": [],
    }
    assert done(agent.get(f"/v1/memories/{row['id']}"), 200) == {"memory": row}


@pytest.mark.parametrize(
    ("layer", "extra"),
    [
        ("fact", {}),
        ("chunk", {}),
        ("timeline", {"title": "t", "occurred_at": "2026-01-01T00:00:00Z"}),
        ("session", {"channel": "c", "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-02T00:00:00Z"}),
    ],
)
def test_every_layer_is_written_read_listed_searched_and_deleted_by_its_owner(
    gateway: Gateway, agent: Client, layer: str, extra: dict[str, str]
) -> None:
    row = remember(agent, "likes tea", layer=layer, **extra)
    assert {name: row[name] for name in ("layer", *extra)} == {"layer": layer, **extra}
    path, of = f"/v1/memories/{row['id']}", {"agent_id": agent.id}
    for who, named in ((agent, {}), (gateway.owner, of), (gateway.admin, of)):
        assert done(who.get(path), 200)["memory"] == row
        assert listed(who, **named)["items"] == [row]
        for mode in ("keyword", "semantic", "hybrid"):
            [found] = search(who, mode=mode, **named)["items"]
            assert {name: value for name, value in found.items() if name != "score"} == row
    assert agent.delete(path).status_code == 204
    assert agent.get(path).status_code == 404
    assert listed(agent) == {"items": [], "total": 0, "next_cursor": None, "incomplete": []}


MALFORMED: tuple[tuple[dict[str, object], str], ...] = (
    ({}, "text"),
    ({"text": ""}, "text"),
    ({"text": None}, "text"),
    ({"text": "x" * 65_537}, "text"),
    ({"text": "a", "layer": "note"}, "layer"),
    ({"text": "a", "classification": "PII"}, "classification"),
    ({"text": "a", "classification": None}, "classification"),
    ({"text": "a", "project_id": None}, "project_id"),
    ({"text": "a", "project_id": ""}, "project_id"),
    ({"text": "a", "project_id": "*"}, "project_id"),
    ({"text": "a", "tags": "a"}, "tags"),
    ({"text": "a", "tags": None}, "tags"),
    ({"text": "a", "tags": ["x" * 65]}, "tags"),
    ({"text": "a", "expires_at": "2026-03-04"}, "expires_at"),
    ({"text": "a", "expires_at": "never"}, "expires_at"),
    ({"text": "a", "title": "t"}, "title"),
    ({"text": "a", "derived_from": []}, "derived_from"),
    ({"text": "a", "derived_from": ["x"]}, "derived_from"),
    ({"text": "a", "supersedes": 1}, "supersedes"),
    ({"text": "a", "source_did": "me"}, "source_did"),
    ({"text": "a", "connection_id": "a b"}, "connection_id"),
    ({"text": "a", "created_at": 1}, "created_at"),
    ({"text": "a", "owner": "x"}, "owner"),
    ({"text": "a", "agent_id": 7}, "agent_id"),
)


def test_a_malformed_row_is_400_and_nothing_is_stored(gateway: Gateway, agent: Client) -> None:
    for body, field in MALFORMED:
        assert refused(agent.post("/v1/memories", body)) == (400, [field]), body
    assert stored(gateway, "SELECT count(*) FROM memories") == [(0,)]


def test_a_human_names_the_agent_and_an_agent_only_itself(gateway: Gateway, agent: Client) -> None:
    other, foreign = gateway.agent("other"), gateway.agent("foreign", by=gateway.other_owner)
    assert refused(gateway.owner.post("/v1/memories", {"text": "a"})) == (400, ["agent_id"])
    assert remember(gateway.owner, "a", agent_id=agent.id)["agent_id"] == agent.id
    assert remember(agent, "a", agent_id=agent.id)["agent_id"] == agent.id
    for who, named in (
        (agent, other.id),
        (agent, foreign.id),
        (agent, ABSENT),
        (gateway.owner, foreign.id),
        (gateway.owner, ABSENT),
    ):
        assert who.post("/v1/memories", {"text": "a", "agent_id": named}).status_code == 404
        assert who.get("/v1/memories", agent_id=named).status_code == 404
        assert who.post("/v1/memories/search", {"query": "a", "agent_id": named}).status_code == 404
    for who in (gateway.member, gateway.security, gateway.auditor):
        assert who.post("/v1/memories", {"text": "a", "agent_id": agent.id}).status_code == 403
        assert who.get("/v1/memories", agent_id=agent.id).status_code == 403


def test_anybody_elsewhere_gets_the_answer_of_an_unknown_row(gateway: Gateway, agent: Client) -> None:
    row = shared(agent, "likes tea")
    other, foreign = gateway.agent("other"), gateway.agent("foreign", by=gateway.other_owner)
    for who in (other, foreign, gateway.other_owner, connect(gateway, agent), connect(gateway, other, did="did:web:b.example")):
        for method, suffix in (("GET", ""), ("DELETE", ""), ("POST", "/retract"), ("POST", "/retag")):
            body = {"tags": []} if suffix == "/retag" else {} if method == "POST" else None
            answers = [
                who.request(method, f"/v1/memories/{found_id}{suffix}", body) for found_id in (row["id"], ABSENT, "no-id", "%25")
            ]
            assert {(answer.status_code, answer.content) for answer in answers} == {(404, answers[0].content)}
    assert done(agent.get(f"/v1/memories/{row['id']}"), 200)["memory"] == row


# -- what comes over a connection


def test_what_a_connection_writes_is_stamped_with_it_and_shown_to_it_without_that(
    gateway: Gateway, agent: Client, connection: Client
) -> None:
    row = shared(connection, "likes tea", tags=["t"], layer="timeline", title="a title")
    assert row == {
        "id": row["id"],
        "layer": "timeline",
        "text": "likes tea",
        "project_id": "alpha",
        "tags": ["t"],
        "classification": "internal",
        "created_at": NOW,
    }
    kept = done(agent.get(f"/v1/memories/{row['id']}"), 200)["memory"]
    came = {"connection_id": connection.id, "source_did": DID}
    assert {name: kept[name] for name in ("agent_id", "title", "provenance", *came)} == {
        "agent_id": agent.id,
        "title": "a title",
        "provenance": [came],
        **came,
    }
    assert done(connection.get(f"/v1/memories/{row['id']}"), 200) == {"memory": row}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("connection_id", "abcd"),
        ("source_did", DID),
        ("created_at", NOW),
        ("supersedes", ABSENT),
        ("derived_from", [ABSENT]),
        ("agent_id", ABSENT),
    ],
)
def test_a_connection_that_says_where_a_row_comes_from_is_refused(connection: Client, field: str, value: object) -> None:
    body = {"text": "a", "project_id": "alpha", field: value}
    assert refused(connection.post("/v1/memories", body)) == (400, [field])


def test_a_connection_writes_only_what_a_grant_covers(gateway: Gateway, agent: Client, connection: Client) -> None:
    assert refused(connection.post("/v1/memories", {"text": "a"})) == (400, ["project_id"])
    for body in ({"project_id": "beta"}, {"project_id": "alpha", "classification": "pii"}):
        assert connection.post("/v1/memories", {"text": "a", **body}).status_code == 403
    reader = connect(gateway, agent, did="did:web:reader.example")
    allow(gateway, reader, actions=("search", "read", "query"))
    tagged = connect(gateway, agent, did="did:web:tagged.example")
    allow_all(gateway, tagged, tags=["t"])
    for who, body in ((reader, {}), (tagged, {}), (tagged, {"tags": ["u"]})):
        assert who.post("/v1/memories", {"text": "a", "project_id": "alpha", **body}).status_code == 403
    assert shared(tagged, "a", tags=["t"])["tags"] == ["t"]


def test_a_connection_writes_as_often_a_day_as_its_grant_says(gateway: Gateway, agent: Client) -> None:
    made = connect(gateway, agent)
    allow_all(gateway, made, limits={"max_per_day": 2})
    for _ in range(2):
        agent.delete(f"/v1/memories/{shared(made, 'a')['id']}")
    over = made.post("/v1/memories", {"text": "a", "project_id": "alpha"})
    assert (over.status_code, over.headers["Retry-After"]) == (429, str(14 * 3600))
    gateway.clock.advance(timedelta(hours=14))
    shared(made, "a")


def test_a_row_counts_against_the_grants_that_cover_it_as_it_is_stored(gateway: Gateway, agent: Client) -> None:
    made = connect(gateway, agent)
    allow_all(gateway, made, limits={"max_per_day": 2, "requests_per_minute": 3})
    allow_all(gateway, made, classifications=["pii"], limits={"max_per_day": 4})
    allow_all(gateway, made, tags=["t"], classifications=["confidential"], limits={"max_per_day": 6})
    asked: list[dict[str, object]] = [{}, {"tags": ["t"]}, {"expires_at": "2020-01-01T00:00:00Z"}]
    asked += [{"classification": "pii"}] * 3 + [{"classification": "confidential", "tags": ["t"]}] * 3
    answers = [made.post("/v1/memories", {"text": "a", "project_id": "alpha", **body}) for body in asked]
    assert [answer.status_code for answer in answers] == [201, 201, 429, 201, 201, 429, 201, 201, 429]
    assert ["`max_per_day` is" in answer.text for answer in answers if answer.status_code == 429] == [True] * 3


def test_the_requests_a_minute_of_a_grant_that_does_not_cover_a_row_do_not_hold_for_it(gateway: Gateway, agent: Client) -> None:
    made = connect(gateway, agent)
    allow_all(gateway, made, limits={"requests_per_minute": 1})
    allow_all(gateway, made, classifications=["pii"])
    tiers = ("internal", "pii", "internal", "pii")
    answers = [made.post("/v1/memories", {"text": "a", "project_id": "alpha", "classification": tier}) for tier in tiers]
    assert [answer.status_code for answer in answers] == [201, 201, 429, 201]


def test_equal_texts_are_rows_of_their_own_each_with_its_labels(gateway: Gateway, agent: Client, connection: Client) -> None:
    labels: list[dict[str, object]] = [{}, {}, {"classification": "pii"}, {"tags": ["t"]}, {"layer": "timeline", "title": "tea"}]
    rows = [shared(agent, "likes tea", **body) for body in (*labels, {"layer": "timeline", "title": "tea"})]
    theirs = shared(connection, "likes tea")
    assert len({row["id"] for row in (*rows, theirs)}) == 7
    assert {item["id"] for item in listed(agent)["items"]} == {row["id"] for row in (*rows, theirs)}
    assert search(agent, "likes tea", limit=200)["total"] == 7
    assert {item["id"] for item in listed(connection)["items"]} == {row["id"] for row in (*rows, theirs)} - {rows[2]["id"]}


def test_a_conversation_of_our_agent_writes_and_reads_as_the_connection(
    gateway: Gateway, agent: Client, connection: Client
) -> None:
    remember(agent, "a secret", project_id="beta")
    made = done(agent.post(f"/v1/connections/{connection.id}/conversations"), 201)
    talking = Client(gateway.http, connection.id, made["token"])
    row = shared(talking, "likes tea")
    assert done(agent.get(f"/v1/memories/{row['id']}"), 200)["memory"]["connection_id"] == connection.id
    assert texts(listed(talking)) == ["likes tea"]
    assert refused(talking.post("/v1/memories", {"text": "a", "project_id": "alpha", "source_did": DID})) == (400, ["source_did"])


# -- imports, rewriting, derivation


def test_an_owner_imports_where_a_row_came_from_and_when(gateway: Gateway, agent: Client) -> None:
    made = connect(gateway, agent)
    came = {"connection_id": made.id, "source_did": "did:web:other.example"}
    row = remember(agent, "a", **came, created_at="2020-01-01T00:00:00+01:00")
    assert {name: row[name] for name in (*came, "created_at", "provenance")} == {
        **came,
        "created_at": "2019-12-31T23:00:00Z",
        "provenance": [came],
    }
    elsewhere = connect(gateway, gateway.agent("other"), did="did:web:c.example")
    for unknown in (elsewhere.id, "none-such"):
        assert agent.post("/v1/memories", {"text": "a", "connection_id": unknown}).status_code == 404


def test_a_rewritten_row_inherits_nothing_and_the_older_one_is_seen_by_its_owner_only(agent: Client, connection: Client) -> None:
    old = shared(agent, "likes tea", tags=["t"])
    new = remember(agent, "likes coffee", supersedes=old["id"])
    assert (new["project_id"], new["tags"]) == (None, [])
    assert done(agent.get(f"/v1/memories/{old['id']}"), 200)["memory"] == {**old, "superseded_by": new["id"]}
    assert texts(listed(agent)) == ["likes coffee"]
    assert set(texts(listed(agent, state="all"))) == {"likes tea", "likes coffee"}
    assert listed(connection)["items"] == []
    assert connection.get(f"/v1/memories/{old['id']}").status_code == 404


@pytest.mark.parametrize(
    "wider", [{"project_id": "beta"}, {"project_id": "alpha", "tags": ["t", "u"]}, {"classification": "public"}]
)
def test_an_agent_does_not_widen_by_rewriting_and_a_human_does(gateway: Gateway, agent: Client, wider: dict[str, object]) -> None:
    old = shared(agent, "a", tags=["t"])
    body = {"text": "b", "supersedes": old["id"], **wider}
    assert agent.post("/v1/memories", body).status_code == 403
    assert done(agent.get(f"/v1/memories/{old['id']}"), 200)["memory"]["superseded_by"] is None
    remember(gateway.owner, **{**body, "agent_id": agent.id})  # type: ignore[arg-type]


def test_a_derived_row_takes_the_strictest_of_its_sources(gateway: Gateway, agent: Client) -> None:
    made = connect(gateway, agent)
    one = shared(agent, "a", tags=["t", "u"], classification="confidential", connection_id=made.id, source_did=DID)
    two = shared(agent, "b", tags=["u", "v"], expires_at="2026-04-01T00:00:00Z")
    row = remember(agent, "both", derived_from=[two["id"], one["id"]])
    wanted: dict[str, Any] = {
        "project_id": "alpha",
        "tags": ["u"],
        "classification": "confidential",
        "expires_at": "2026-04-01T00:00:00Z",
        "derived_from": sorted([one["id"], two["id"]]),
        "provenance": [{"connection_id": made.id, "source_did": DID}],
        "connection_id": made.id,
        "source_did": DID,
    }
    assert {name: row[name] for name in wanted} == wanted
    other = remember(agent, "c", project_id="beta")
    assert remember(agent, "d", derived_from=[one["id"], other["id"]])["project_id"] is None
    for field, value in (
        ("project_id", "beta"),
        ("tags", ["t"]),
        ("classification", "public"),
        ("expires_at", "2027-01-01T00:00:00Z"),
    ):
        assert refused(agent.post("/v1/memories", {"text": "e", "derived_from": [one["id"], two["id"]], field: value})) == (
            400,
            [field],
        )


def test_what_is_superseded_or_derived_from_must_be_there_for_the_owner(gateway: Gateway, agent: Client) -> None:
    elsewhere = remember(gateway.agent("other"), "a")["id"]
    for unknown in (ABSENT, elsewhere):
        assert agent.post("/v1/memories", {"text": "a", "supersedes": unknown}).status_code == 404
        assert agent.post("/v1/memories", {"text": "a", "derived_from": [unknown]}).status_code == 404


def test_an_expiry_in_the_past_is_stored_and_invisible(agent: Client, connection: Client) -> None:
    row = shared(agent, "a", expires_at=NOW)
    assert (listed(agent)["items"], listed(connection)["items"]) == ([], [])
    assert connection.get(f"/v1/memories/{row['id']}").status_code == 404
    assert done(agent.get(f"/v1/memories/{row['id']}"), 200)["memory"]["expires_at"] == NOW


# -- retag, retract, delete


def test_a_retag_says_what_was_and_what_is_and_takes_derived_rows_along(agent: Client, connection: Client) -> None:
    row = shared(agent, "a", tags=["t", "u"])
    derived = remember(agent, "b", derived_from=[row["id"]])
    made = done(agent.post(f"/v1/memories/{row['id']}/retag", {"project_id": None, "tags": ["u"], "classification": "pii"}), 200)
    before = {"project_id": "alpha", "tags": ["t", "u"], "classification": "internal"}
    after = {"project_id": None, "tags": ["u"], "classification": "pii"}
    assert made == {"memory": {**row, **after}, "before": before, "after": after}
    kept = done(agent.get(f"/v1/memories/{derived['id']}"), 200)["memory"]
    assert {name: kept[name] for name in after} == after
    assert listed(connection)["items"] == []


@pytest.mark.parametrize(
    "wider",
    [
        {"project_id": "beta"},
        {"tags": ["t", "u"]},
        {"tags": ["u"]},
        {"classification": "public"},
        {"classification": "pii", "tags": ["u"]},
    ],
)
def test_only_a_human_widens(gateway: Gateway, agent: Client, wider: dict[str, object]) -> None:
    row = shared(agent, "a", tags=["t"])
    path = f"/v1/memories/{row['id']}"
    assert agent.post(f"{path}/retag", wider).status_code == 403
    assert done(agent.get(path), 200)["memory"] == row
    assert done(gateway.owner.post(f"{path}/retag", wider), 200)["memory"] == {**row, **wider}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "project_id"),
        ({"tags": None}, "tags"),
        ({"classification": None}, "classification"),
        ({"project_id": ""}, "project_id"),
        ({"text": "b"}, "text"),
    ],
)
def test_a_malformed_retag_is_400(agent: Client, body: dict[str, object], field: str) -> None:
    assert refused(agent.post(f"/v1/memories/{shared(agent, 'a')['id']}/retag", body)) == (400, [field])


def test_a_connection_changes_nothing_that_it_reads(agent: Client, connection: Client) -> None:
    seen, hidden = shared(agent, "a"), remember(agent, "b")
    for row, status in ((seen, 403), (hidden, 404)):
        path = f"/v1/memories/{row['id']}"
        assert connection.post(f"{path}/retag", {"project_id": None}).status_code == status
        assert connection.post(f"{path}/retract").status_code == status
        assert connection.delete(path).status_code == status
        assert done(agent.get(path), 200)["memory"] == row


def test_a_retracted_row_is_its_owners_only_and_a_second_time_changes_nothing(
    gateway: Gateway, agent: Client, connection: Client
) -> None:
    row = shared(agent, "a")
    derived = remember(agent, "b", derived_from=[row["id"]])
    path = f"/v1/memories/{row['id']}"
    made = done(agent.post(f"{path}/retract"), 200)["memory"]
    assert made == {**row, "retracted_at": NOW}
    gateway.clock.advance(timedelta(minutes=1))
    assert done(gateway.owner.post(f"{path}/retract"), 200)["memory"] == made == done(agent.get(path), 200)["memory"]
    assert (listed(agent)["items"], listed(connection)["items"]) == ([], [])
    assert connection.get(f"/v1/memories/{derived['id']}").status_code == 404
    assert {item["retracted_at"] for item in listed(agent, state="all")["items"]} == {NOW}


def test_a_deleted_row_is_gone_from_every_table_with_what_was_derived_from_it(gateway: Gateway, agent: Client) -> None:
    row = shared(agent, "likes tea")
    remember(agent, "tea again", derived_from=[row["id"]])
    assert gateway.admin.delete(f"/v1/memories/{row['id']}").status_code == 204
    for table in ("memories", "memory_tokens", "memory_vectors", "memory_links", "memory_provenance"):
        assert stored(gateway, f"SELECT count(*) FROM {table}") == [(0,)]
    assert gateway.admin.delete(f"/v1/memories/{row['id']}").status_code == 404


@pytest.mark.parametrize("suffix", ["", "/search", "/query", f"/{ABSENT}/retag", f"/{ABSENT}/retract", "/forget"])
def test_a_post_takes_no_query_string(agent: Client, suffix: str) -> None:
    answer = agent.request("POST", f"/v1/memories{suffix}", {}, agent_id=agent.id)
    assert refused(answer) == (400, ["agent_id"])


def test_no_text_tag_or_project_is_in_the_log(gateway: Gateway, agent: Client, connection: Client) -> None:
    row = remember(agent, "MARKER text", project_id="marker-project", tags=["MARKER tag"])
    done(agent.post(f"/v1/memories/{row['id']}/retag", {"tags": []}), 200)
    search(agent, "MARKER")
    search(connection, "MARKER")
    done(agent.delete(f"/v1/memories/{row['id']}"), 204)
    for table in ("log", "slices"):
        for found in stored(gateway, f"SELECT * FROM {table}"):
            assert "MARKER" not in str(found)
