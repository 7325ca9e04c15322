"""What is read of memory: each rule of who sees what, in every layer and in every way to look at many rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from gateway.access.door import Access
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines
from gateway.store.writer import Unit
from gateway.web.app import create_app
from gateway.wiring import OPERATIONS
from tests.builders import Client, Gateway, done, shipped_bundle
from tests.embedding.endpoint import serving, vectors
from tests.operations.asking import restart, stored
from tests.operations.connecting import allow, connect
from tests.operations.memory_acts import (
    LAYERS,
    MODES,
    NO_HEALTH,
    TIERS,
    allow_all,
    listed,
    raw,
    refused,
    remember,
    search,
    seen,
    shared,
    texts,
)
from tests.world import ROOT

NOTHING: list[set[str]] = [set()] * 4


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway without an embedding model."""
    made = Gateway(tmp_path / "plain", embedding="off")
    yield made
    made.close()


def pages(who: Client, path: str, body: dict[str, Any]) -> list[str]:
    """The ids on all pages, one after another."""
    found: list[str] = []
    cursor = None
    while True:
        asked = body if cursor is None else {**body, "cursor": cursor}
        page = done(who.get(path, **asked) if path == "/v1/memories" else who.post(path, asked), 200)
        found += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


# -- what is visible


def test_a_connection_sees_exactly_what_is_granted_in_every_layer_and_mode(gateway: Gateway, agent: Client) -> None:
    made = connect(gateway, agent)
    allow_all(gateway, made, "alpha")
    allow_all(gateway, made, "secret-plans", classifications=["pii"])
    wanted = set()
    for layer, project, tier in product(LAYERS, ("alpha", "secret-plans", "alpha2", "alph", None), TIERS):
        text = f"tea {layer} {project} {tier}"
        remember(agent, text, layer=layer, classification=tier, **({"project_id": project} if project else {}))
        if (project, tier) in (("alpha", "public"), ("alpha", "internal"), ("secret-plans", "pii")):
            wanted.add(text)
    assert seen(made) == [wanted] * 4
    for layer in LAYERS:
        assert seen(made, layers=[layer]) == [{text for text in wanted if f" {layer} " in text}] * 4
    assert seen(made, project_id="ALPHA") == [{text for text in wanted if " alpha " in text}] * 4
    assert seen(made, classifications=["pii", "public"]) == [{t for t in wanted if t.endswith(("pii", "public"))}] * 4
    for project in ("alpha2", "beta", "alph"):
        assert seen(made, project_id=project) == NOTHING
        answered = done(made.post("/v1/memories/query", {"query": "tea", "project_id": project}), 200)
        assert answered == {"answer": "", "sources": [], "tokens": 0, "incomplete": []}


def test_each_action_needs_a_grant_of_its_own(gateway: Gateway, agent: Client) -> None:
    row = shared(agent, "tea")
    for action in ("search", "read", "query", "remember"):
        made = connect(gateway, agent, did=f"did:web:{action}.example")
        allow(gateway, made, actions=(action,))
        found = {
            "search": bool(search(made)["items"]) and bool(listed(made)["items"]),
            "read": made.get(f"/v1/memories/{row['id']}").status_code == 200,
            "query": done(made.post("/v1/memories/query", {"query": "tea", "project_id": "alpha"}), 200)["answer"] == "tea",
            "remember": made.post("/v1/memories", {"text": "x", "project_id": "alpha"}).status_code == 201,
        }
        assert [name for name, allowed in found.items() if allowed] == [action]
        assert search(made, "none")["total"] == 0


def test_tags_are_whole_and_any_or_all_of_them(gateway: Gateway, agent: Client) -> None:
    for tags in (["a"], ["ab"], ["a_b"], ["axb"], ["a", "b"], ["%"], ["A"], []):
        shared(agent, f"tea {tags}", tags=tags)
    some, every, free = (connect(gateway, agent, did=f"did:web:{number}.example") for number in range(3))
    allow_all(gateway, some, tags=["a", "a_b"])
    allow_all(gateway, every, tags=["a", "b"], tags_match="all")
    allow_all(gateway, free)
    assert seen(some) == [{"tea ['a']", "tea ['a_b']", "tea ['a', 'b']"}] * 4
    assert seen(every) == [{"tea ['a', 'b']"}] * 4
    assert seen(free, tags=["a"]) == [{"tea ['a']", "tea ['a', 'b']"}] * 4
    assert seen(free, tags=["a", "b"], tags_match="all") == [{"tea ['a', 'b']"}] * 4
    assert seen(free, tags=["%"]) == [{"tea ['%']"}] * 4


def test_provenance_keeps_to_the_owner_or_to_what_the_connection_brought_itself(gateway: Gateway, agent: Client) -> None:
    owner_only, own, other = (connect(gateway, agent, did=f"did:web:{number}.example") for number in range(3))
    allow_all(gateway, owner_only, provenance="owner_only")
    allow_all(gateway, own, provenance="own_connection")
    allow_all(gateway, other)
    one = shared(agent, "tea of the owner")
    two = shared(own, "tea of its own")
    three = shared(other, "tea of another")
    remember(agent, "tea of two", derived_from=[two["id"], three["id"]])
    remember(agent, "tea of one", derived_from=[one["id"], two["id"]])
    assert seen(owner_only) == [{"tea of the owner"}] * 4
    assert seen(own) == [{"tea of its own", "tea of one"}] * 4
    assert seen(other) == [{"tea of the owner", "tea of its own", "tea of another", "tea of two", "tea of one"}] * 4


def test_an_expiry_is_a_moment_and_counts_at_the_moment_of_the_query(gateway: Gateway, agent: Client, connection: Client) -> None:
    row = shared(agent, "tea", expires_at="2026-03-04T10:00:10.000001Z")
    gateway.clock.advance(timedelta(seconds=10))
    assert seen(connection) == seen(agent) == [{"tea"}] * 4
    gateway.clock.advance(timedelta(microseconds=1))
    assert seen(connection) == seen(agent) == NOTHING
    assert connection.get(f"/v1/memories/{row['id']}").status_code == 404
    assert texts(listed(agent, state="all")) == ["tea"]


@pytest.mark.parametrize("end", ["revoked", "expired", "suspended"])
def test_what_ended_shows_nothing_from_then_on(gateway: Gateway, agent: Client, end: str) -> None:
    made = connect(gateway, agent)
    grant = allow_all(gateway, made, expires_at="2026-03-04T10:01:00Z")
    row = shared(agent, "tea")
    assert seen(made) == [{"tea"}] * 4
    match end:
        case "revoked":
            done(gateway.owner.delete(f"/v1/connections/{made.id}/grants/{grant['id']}"), 204)
        case "expired":
            gateway.clock.advance(timedelta(minutes=1))
        case "suspended":
            done(gateway.owner.post(f"/v1/connections/{made.id}/suspend"), 200)
            assert made.get("/v1/memories").status_code == 401
            return
    assert seen(made) == NOTHING
    assert made.get(f"/v1/memories/{row['id']}").status_code == 404
    assert made.post("/v1/memories", {"text": "x", "project_id": "alpha"}).status_code == 403


def test_a_bridge_reaches_no_memory_but_over_its_own_routes(gateway: Gateway, agent: Client) -> None:
    row = shared(agent, "tea")
    token = done(gateway.owner.post(f"/v1/agents/{agent.id}/bridge-token"), 201)["token"]
    bridge = Client(gateway.http, agent.id, token)
    answers = [
        bridge.get("/v1/memories"),
        bridge.get("/v1/memories/untagged"),
        bridge.get(f"/v1/memories/{row['id']}"),
        bridge.post("/v1/memories", {"text": "a"}),
        bridge.post("/v1/memories/search", {"query": "tea"}),
        bridge.post("/v1/memories/query", {"query": "tea", "project_id": "alpha"}),
        bridge.post(f"/v1/memories/{row['id']}/retag", {"tags": []}),
        bridge.post(f"/v1/memories/{row['id']}/retract"),
        bridge.delete(f"/v1/memories/{row['id']}"),
        bridge.post("/v1/memories/forget", {"project_id": "alpha"}),
    ]
    assert [answer.status_code for answer in answers] == [403] * len(answers)
    assert texts(listed(agent)) == ["tea"]


def test_two_agents_and_two_organisations_never_mix(gateway: Gateway, agent: Client) -> None:
    other, foreign = gateway.agent("other"), gateway.agent("foreign", by=gateway.other_owner)
    mine, theirs = connect(gateway, agent, "shared-id"), connect(gateway, other, "other-id")
    far = connect(gateway, foreign, "shared-id", by=gateway.other_owner)
    allow_all(gateway, mine)
    allow_all(gateway, theirs)
    done(gateway.other_owner.post("/v1/connections/shared-id/grants", {"project_id": "alpha", "actions": ["search"]}), 201)
    for who, text in ((agent, "tea mine"), (other, "tea theirs"), (foreign, "tea far")):
        shared(who, text)
    for _ in range(2):
        for who, text in (
            (mine, "tea mine"),
            (theirs, "tea theirs"),
            (far, "tea far"),
            (agent, "tea mine"),
            (foreign, "tea far"),
        ):
            assert seen(who) == [{text}] * 4


def test_hidden_rows_move_no_score_total_or_order(gateway: Gateway, agent: Client, connection: Client) -> None:
    rows = ["green tea", "tea tea leaves", "a long note about many things and tea", "coffee"]
    for text in rows:
        shared(agent, text)
    asked = [{"mode": mode, "limit": 3} for mode in MODES]
    before = [search(connection, "green tea", **body) for body in asked]  # type: ignore[arg-type]
    for number in range(20):
        remember(agent, f"green green tea {number}")
        remember(agent, f"green tea tea {number}", project_id="beta", tags=["t"])
        shared(agent, f"green tea {number}", classification="pii")
    after = [search(connection, "green tea", **body) for body in asked]  # type: ignore[arg-type]
    assert [(p["items"], p["total"]) for p in before] == [(p["items"], p["total"]) for p in after]
    assert [len(page["items"]) for page in after] == [3, 3, 3]


# -- what a request may say


MALFORMED: tuple[tuple[dict[str, Any], str], ...] = (
    *(({"project_id": bad}, "project_id") for bad in (None, "", " ", "*", "%", [], ["alpha"], {}, 1, "x" * 65, "x" * 10_240)),
    *(({field: bad}, field) for field in ("tags", "layers", "classifications") for bad in (None, "a", {}, [1], [""])),
    *(({"limit": bad}, "limit") for bad in (0, 201, 10.0, "10", True, None)),
    *(({"query": bad}, "query") for bad in (None, "", "  ", 1, ["a"], "x" * 2_001)),
    *(({"mode": bad}, "mode") for bad in (None, "exact", 1)),
    *(({"tags_match": bad}, "tags_match") for bad in (None, "some")),
    *(({"cursor": bad}, "cursor") for bad in (None, "", "x", 1, "A" * 600)),
    *(({bad: "alpha"}, bad) for bad in ("project", "resource", "collection_id", "kb_id", "context", "now", "scope", "state")),
    ({"classifications": ["PII"]}, "classifications"),
    ({"layers": ["facts"]}, "layers"),
)


def test_a_malformed_search_is_400_that_names_the_field(agent: Client, connection: Client) -> None:
    for (body, field), who in product(MALFORMED, (agent, connection)):
        assert refused(who.post("/v1/memories/search", {"query": "tea", **body})) == (400, [field]), body


MALFORMED_QUERIES = (
    *(
        "project_id=",
        "project_id=*",
        "project_id=%25",
        "project_id=a&project_id=a",
        "tag=",
        "tag=%20",
        "layer=",
        "layer=facts",
    ),
    *("classification=", "classification=PII", "tags_match=", "limit=0", "limit=201", "limit=1.0", "limit=+1", "cursor=x"),
    *("limit=1&limit=1", "tags_match=any&tags_match=any", "state=some", "tags=a", "layers=fact", "offset=1", "query=a"),
)


def test_a_malformed_list_is_400_that_names_the_parameter(agent: Client, connection: Client) -> None:
    for sent, who in product(MALFORMED_QUERIES, (agent, connection)):
        assert refused(raw(who, "GET", f"/v1/memories?{sent}")) == (400, [sent.partition("=")[0]]), sent


def test_a_query_for_passages_names_a_project_whoever_asks(gateway: Gateway, agent: Client, connection: Client) -> None:
    for who, named in ((agent, {}), (gateway.owner, {"agent_id": agent.id}), (connection, {})):
        assert refused(who.post("/v1/memories/query", {"query": "tea", **named})) == (400, ["project_id"])
        for project in (None, "", " ", "*", "%", [], {}, "x" * 10_240, 1):
            body = {"query": "tea", "project_id": project, **named}
            assert refused(who.post("/v1/memories/query", body)) == (400, ["project_id"]), project


def test_a_key_that_is_there_twice_is_400(connection: Client) -> None:
    body = b'{"query": "tea", "project_id": "alpha", "project_id": "beta"}'
    headers = {"Authorization": f"Bearer {connection.key}", "Content-Type": "application/json"}
    assert connection.http.post("/v1/memories/search", content=body, headers=headers).status_code == 400


def test_an_empty_list_matches_nothing(agent: Client, connection: Client) -> None:
    shared(agent, "tea", tags=["t"])
    for who, field in product((agent, connection), ("tags", "layers", "classifications")):
        for mode in MODES:
            assert search(who, mode=mode, **{field: []}) == {"items": [], "total": 0, "next_cursor": None, "incomplete": []}
        body = {"query": "tea", "project_id": "alpha", field: []}
        assert done(who.post("/v1/memories/query", body), 200)["sources"] == []
    for match in ("any", "all"):
        assert search(connection, tags=[], tags_match=match)["items"] == []


def test_a_connection_names_no_agent_and_no_state_and_lists_nothing_untagged(agent: Client, connection: Client) -> None:
    assert refused(connection.get("/v1/memories", agent_id=agent.id)) == (400, ["agent_id"])
    assert refused(connection.post("/v1/memories/search", {"query": "a", "agent_id": agent.id})) == (400, ["agent_id"])
    assert refused(connection.get("/v1/memories", state="live")) == (400, ["state"])
    assert connection.get("/v1/memories/untagged").status_code == 403


TEXTS = (
    *(
        "C++",
        "89",
        "AND",
        "a' OR '1'='1",
        '"',
        "'",
        "%",
        "_",
        "\\",
        "tea*",
        "(tea",
        "tea)",
        "--",
        ";",
        "/* */",
        "$1",
        "NEAR(a b)",
    ),
    *("\U0001f375", "お茶を飲む", "茶", "\u202eabc", "é" * 2_000, "\u0301", "!!!", "İstanbul", "straße", "ﬁne"),
)


def test_any_text_is_found_as_itself_and_asks_for_nothing_else(agent: Client, connection: Client) -> None:
    for number, text in enumerate(TEXTS):
        shared(agent, f"about {text} here", tags=[str(number)])
        remember(agent, f"about {text} there")
    for number, text in enumerate(TEXTS):
        for mode in MODES:
            page = search(connection, text, mode=mode, tags=[str(number)])
            assert texts(page) in ([f"about {text} here"], []), (mode, text)
            assert page["total"] == len(page["items"])
        if any(character.isalnum() for character in text):
            assert f"about {text} here" in texts(search(connection, text, limit=200)), text


def test_a_query_without_a_token_is_an_empty_page(agent: Client) -> None:
    shared(agent, "tea")
    assert search(agent, "...") == {"items": [], "total": 0, "next_cursor": None, "incomplete": []}


# -- pages


@pytest.mark.parametrize("count", [0, 1, 5, 6, 12])
def test_paging_walks_every_row_once(agent: Client, connection: Client, count: int) -> None:
    rows = {shared(agent, f"tea {number}", classification="public")["id"] for number in range(count)}
    for number in range(3):
        remember(agent, f"tea {number}")
    for path, body in (("/v1/memories", {}), *(("/v1/memories/search", {"query": "tea", "mode": mode}) for mode in MODES)):
        found = pages(connection, path, {**body, "limit": 5})
        assert (len(found), set(found)) == (count, rows)


def test_a_list_is_newest_first_then_by_id_and_counts_all(gateway: Gateway, agent: Client, connection: Client) -> None:
    old = sorted(shared(agent, "tea")["id"] for _ in range(3))
    gateway.clock.advance(timedelta(seconds=1))
    new = sorted(shared(agent, "tea")["id"] for _ in range(2))
    page = listed(connection, limit=2)
    assert ([item["id"] for item in page["items"]], page["total"]) == (new, 5)
    assert pages(connection, "/v1/memories", {"limit": 2}) == new + old
    assert pages(connection, "/v1/memories/search", {"query": "tea", "limit": 2}) == new + old


def test_a_cursor_is_good_for_its_own_question_and_caller_only(gateway: Gateway, agent: Client, connection: Client) -> None:
    for number in range(4):
        shared(agent, f"tea {number}", tags=["t"])
    twin = connect(gateway, agent, did="did:web:twin.example")
    allow_all(gateway, twin)
    page = search(connection, limit=2)
    cursor = page["next_cursor"]
    good = {"query": "tea", "limit": 2, "cursor": cursor}
    assert len(done(connection.post("/v1/memories/search", good), 200)["items"]) == 2
    altered = [{"limit": 3}, {"query": "te"}, {"mode": "hybrid"}, {"tags": ["t"]}, {"layers": ["fact"]}, {"project_id": "alpha"}]
    altered += [
        {"classifications": ["internal"]},
        {"cursor": cursor[:-2] + "AA"},
        {"cursor": listed(connection, limit=2)["next_cursor"]},
    ]
    for change in altered:
        assert refused(connection.post("/v1/memories/search", {**good, **change})) == (400, ["cursor"])
    for who in (twin, agent):
        assert refused(who.post("/v1/memories/search", good)) == (400, ["cursor"])
    assert refused(connection.get("/v1/memories", cursor=cursor, limit=2)) == (400, ["cursor"])


def test_a_cursor_ends_with_a_change_of_what_its_caller_is_granted(gateway: Gateway, agent: Client, connection: Client) -> None:
    for number in range(4):
        shared(agent, f"tea {number}")
    body = {"query": "tea", "limit": 2, "cursor": search(connection, limit=2)["next_cursor"]}
    grant = allow_all(gateway, connection, "beta")
    assert refused(connection.post("/v1/memories/search", body)) == (400, ["cursor"])
    done(gateway.owner.delete(f"/v1/connections/{connection.id}/grants/{grant['id']}"), 204)
    fresh = {**body, "cursor": search(connection, limit=2)["next_cursor"]}
    assert len(done(connection.post("/v1/memories/search", fresh), 200)["items"]) == 2


def test_a_cursor_of_a_list_outlives_what_is_written_meanwhile(agent: Client, connection: Client, gateway: Gateway) -> None:
    rows = {shared(agent, f"tea {number}")["id"] for number in range(4)}
    first = listed(connection, limit=2)
    gateway.clock.advance(timedelta(seconds=1))
    shared(agent, "later")
    rest = listed(connection, limit=2, cursor=first["next_cursor"])
    assert {item["id"] for item in first["items"] + rest["items"]} == rows


# -- limits of grants


def test_results_and_characters_are_capped_and_the_rest_is_on_the_next_page(gateway: Gateway, agent: Client) -> None:
    made = connect(gateway, agent)
    allow_all(gateway, made, limits={"max_results": 3, "max_chars": 25})
    allow_all(gateway, made, "beta", limits={"max_results": 2})
    rows = {shared(agent, f"tea {'x' * number}")["id"] for number in range(10)}
    page = listed(made, limit=100, project_id="alpha")
    assert 1 <= len(page["items"]) <= 3
    assert page["total"] == 10
    for path, body in (("/v1/memories", {}), *(("/v1/memories/search", {"query": "tea", "mode": mode}) for mode in MODES)):
        found = pages(made, path, {**body, "limit": 100})
        assert (len(found), set(found)) == (10, rows)
    assert len(listed(made)["items"]) <= 2
    assert sum(map(len, texts(search(made, limit=50)))) <= 25


def test_one_row_that_alone_is_too_long_is_cut(gateway: Gateway, agent: Client) -> None:
    made = connect(gateway, agent)
    allow_all(gateway, made, limits={"max_chars": 5})
    row = shared(agent, "tea and coffee")
    assert texts(listed(made)) == texts(search(made)) == ["tea a"]
    assert done(made.get(f"/v1/memories/{row['id']}"), 200)["memory"]["text"] == "tea a"
    answered = done(made.post("/v1/memories/query", {"query": "tea", "project_id": "alpha"}), 200)
    assert answered["answer"] == "tea a"
    assert done(agent.get(f"/v1/memories/{row['id']}"), 200)["memory"]["text"] == "tea and coffee"


def test_requests_a_minute_are_counted_once_over_all_routes(gateway: Gateway, agent: Client) -> None:
    made = connect(gateway, agent)
    allow_all(gateway, made, limits={"requests_per_minute": 5})
    row = shared(made, "tea")
    assert made.get(f"/v1/memories/{row['id']}").status_code == 200
    listed(made)
    search(made)
    done(made.post("/v1/memories/query", {"query": "tea", "project_id": "alpha"}), 200)
    for _ in range(2):
        for answer in (
            made.get("/v1/memories"),
            made.get(f"/v1/memories/{row['id']}"),
            made.post("/v1/memories", {"text": "a", "project_id": "alpha"}),
            made.post("/v1/memories/query", {"query": "tea", "project_id": "alpha"}),
        ):
            assert (answer.status_code, answer.headers.get("Retry-After")) == (429, "60")
    gateway.clock.advance(timedelta(minutes=1))
    listed(made)


def test_an_owner_has_no_limits(gateway: Gateway, agent: Client) -> None:
    allow_all(gateway, connect(gateway, agent), limits={"max_results": 1, "max_chars": 1, "requests_per_minute": 1})
    for number in range(3):
        shared(agent, f"tea {number}")
    assert len(listed(agent)["items"]) == len(listed(gateway.owner, agent_id=agent.id)["items"]) == 3


# -- passages


def test_passages_are_whole_texts_best_first_within_the_budget(agent: Client, connection: Client) -> None:
    best, good = shared(agent, "tea " * 3 + "x" * 288), shared(agent, "tea " + "y" * 96)
    shared(agent, "coffee")
    remember(agent, "tea tea tea tea")
    for who in (agent, connection):
        made = done(who.post("/v1/memories/query", {"query": "tea", "project_id": "alpha"}), 200)
        assert made["answer"] in (f"{best['text']}\n\n{good['text']}", f"{good['text']}\n\n{best['text']}")
        assert made["tokens"] == -(-len(made["answer"]) // 4)
        assert made["incomplete"] == []
        first = made["sources"][0]
        assert first == {name: (best if first["id"] == best["id"] else good)[name] for name in first}
        assert set(first) == {"id", "layer", "project_id", "classification", "created_at"}
        less = done(who.post("/v1/memories/query", {"query": "tea", "project_id": "alpha", "max_tokens": 100}), 200)
        assert len(less["sources"]) == 1
        assert less["tokens"] <= 100


def test_a_first_passage_that_is_too_long_is_cut_and_a_grant_has_its_own_budget(gateway: Gateway, agent: Client) -> None:
    made = connect(gateway, agent)
    allow_all(gateway, made, limits={"max_tokens": 120})
    row = shared(agent, "tea " + "x" * 2_000)
    for who, asked, tokens in ((agent, 100, 100), (agent, 50_000, 501), (made, 50_000, 120), (made, 100, 100)):
        body = {"query": "tea", "project_id": "alpha", "max_tokens": asked}
        answered = done(who.post("/v1/memories/query", body), 200)
        assert (answered["answer"], answered["tokens"]) == (row["text"][: tokens * 4], tokens)
        assert [source["id"] for source in answered["sources"]] == [row["id"]]


def test_a_budget_is_a_whole_number_within_bounds(agent: Client) -> None:
    for bad in (99, 50_001, 100.0, "100", True, None):
        body = {"query": "tea", "project_id": "alpha", "max_tokens": bad}
        assert refused(agent.post("/v1/memories/query", body)) == (400, ["max_tokens"]), bad


def test_passages_go_on_past_one_page_of_rows(plain: Gateway) -> None:
    agent = plain.agent()
    for number in range(203):
        shared(agent, f"tea {number}")
    made = done(agent.post("/v1/memories/query", {"query": "tea", "project_id": "alpha"}), 200)
    assert len({source["id"] for source in made["sources"]}) == 203
    assert len(made["answer"].split("\n\n")) == 203
    assert len(pages(agent, "/v1/memories", {"limit": 200})) == 203


# -- the rest


def test_meaning_is_a_400_where_nothing_embeds_and_words_go_on(plain: Gateway) -> None:
    agent = plain.agent()
    shared(agent, "tea")
    for mode, (path, body) in product(("semantic", "hybrid"), (("search", {}), ("query", {"project_id": "alpha"}))):
        refusal = agent.post(f"/v1/memories/{path}", {"query": "tea", "mode": mode, **body})
        assert refused(refusal) == (400, ["mode"])
        assert "[semantic]" in refusal.json()["detail"]
    assert texts(search(agent)) == ["tea"]


def test_a_layer_that_was_not_embedded_is_named(gateway: Gateway, agent: Client, connection: Client) -> None:
    shared(agent, "tea")
    lost = shared(agent, "tea time", layer="session")
    gateway.services.database.write(_forget_vectors(lost["id"])).result()
    page = search(connection, mode="semantic")
    assert (page["incomplete"], page["total"]) == (["session"], 2)
    assert search(connection, mode="semantic", layers=["fact"])["incomplete"] == []


def _forget_vectors(memory_id: str) -> Any:
    return Unit(lambda tx: tx.run("DELETE FROM memory_vectors WHERE memory_id = $1", memory_id))


def test_a_long_text_is_one_result_and_found_by_any_of_its_pieces(agent: Client, connection: Client) -> None:
    row = shared(agent, " ".join(f"sentence number {number} is about nothing." for number in range(400)) + " Green tea is best.")
    for mode in MODES:
        page = search(connection, "green tea", mode=mode)
        assert ([item["id"] for item in page["items"]], page["total"]) == ([row["id"]], 1)


def test_what_no_grant_reaches_is_listed_to_its_owner(gateway: Gateway, agent: Client) -> None:
    shared(agent, "tagged")
    row = remember(agent, "untagged")
    for who, named in ((agent, {}), (gateway.owner, {"agent_id": agent.id})):
        assert done(who.get("/v1/memories/untagged", **named), 200) == {
            "items": [row],
            "total": 1,
            "next_cursor": None,
            "incomplete": [],
        }
    assert refused(gateway.owner.get("/v1/memories/untagged")) == (400, ["agent_id"])
    assert gateway.other_owner.get("/v1/memories/untagged", agent_id=agent.id).status_code == 404


def test_repeated_filters_of_a_list_are_alternatives(agent: Client) -> None:
    for layer, tag in (("fact", "a"), ("session", "b"), ("chunk", "c")):
        shared(agent, layer, layer=layer, tags=[tag])
    asked = urlencode([("layer", "fact"), ("layer", "session"), ("tag", "b"), ("tag", "c"), ("classification", "internal")])
    assert texts(done(raw(agent, "GET", f"/v1/memories?{asked}"), 200)) == ["session"]


def test_what_was_planned_and_how_much_was_shown_is_in_the_log(gateway: Gateway, agent: Client, connection: Client) -> None:
    shared(agent, "tea")
    remember(agent, "tea untagged")
    assert seen(connection) == [{"tea"}] * 4
    rows = stored(gateway, "SELECT details FROM log WHERE action = 'memory.search' AND principal_type = 'Connection'")
    assert [(found["planned"], found["count"]) for found in (json.loads(text) for (text,) in rows)] == [("Memory", 1)] * 4


# -- two locks


def decided_by(gateway: Gateway, policies: str, who: Client) -> Client:
    """Somebody whose requests are decided by other policies, without any guardrail, over the same store."""
    bundle = Bundle.from_text(shipped_bundle().schema_text, {"open.cedar": policies}, house_rules=False)
    access = Access(Engines(PolicyEngine(bundle, salt=b"salt")), gateway.services.state)
    app = create_app(replace(gateway.services, access=access), OPERATIONS)
    return replace(who, http=TestClient(app))


OPEN = '@id("open") permit (principal, action, resource);'


def test_a_policy_that_opens_everything_opens_nothing_outside_the_grants(gateway: Gateway, agent: Client) -> None:
    made, bare = connect(gateway, agent), connect(gateway, agent, did="did:web:bare.example")
    allow_all(gateway, made)
    shared(agent, "tea")
    rows = [remember(agent, "tea none"), shared(agent, "tea pii", classification="pii"), remember(agent, "tea b", project_id="b")]
    rows += [shared(agent, "tea retracted"), shared(gateway.agent("other"), "tea of another")]
    done(agent.post(f"/v1/memories/{rows[3]['id']}/retract"), 200)
    for who, wanted in ((made, [{"tea"}] * 4), (bare, NOTHING)):
        opened = decided_by(gateway, OPEN, who)
        assert seen(opened) == wanted
        assert [opened.get(f"/v1/memories/{row['id']}").status_code for row in rows] == [404] * 5


def test_a_grant_opens_nothing_that_a_policy_forbids(gateway: Gateway, agent: Client) -> None:
    made = connect(gateway, agent)
    allow_all(gateway, made)
    shared(agent, "tea")
    row = shared(agent, "tea for later", tags=["later"])
    forbid = '@id("later") forbid (principal, action, resource is Memory) when { resource.tags.contains("later") };'
    closed = decided_by(gateway, OPEN + forbid, made)
    assert seen(closed) == [{"tea"}] * 4
    assert closed.get(f"/v1/memories/{row['id']}").status_code == 404


# -- policies


def test_a_cursor_ends_with_a_change_of_the_policies(tmp_path: Path) -> None:
    policies = tmp_path / "policies"
    shutil.copytree(ROOT / "policies", policies)
    gateway = Gateway(tmp_path / "data", policies=policies)
    agent = gateway.agent()
    made = connect(gateway, agent)
    allow_all(gateway, made)
    for number in range(3):
        shared(agent, f"tea {number}")
    bodies = [{"query": "tea", "mode": mode, "limit": 1} for mode in MODES]
    paths = ("/v1/memories", f"/v1/connections/{made.id}/visible")

    def asked(cursors: list[str | None]) -> list[Any]:
        who = [replace(each, http=gateway.http) for each in (made, gateway.owner)]
        answers = [who[0].post("/v1/memories/search", body | _cursor(at)) for body, at in zip(bodies, cursors[:3], strict=True)]
        return answers + [each.get(path, limit=1, cursor=at) for each, path, at in zip(who, paths, cursors[3:], strict=True)]

    cursors = [done(answer, 200)["next_cursor"] for answer in asked([None] * 5)]
    restart(gateway)
    assert [answer.status_code for answer in asked(cursors)] == [200] * 5
    (policies / "guardrails" / "health.cedar").write_text(NO_HEALTH)
    restart(gateway)
    assert [refused(answer) for answer in asked(cursors)] == [(400, ["cursor"])] * 5
    gateway.close()


def _cursor(at: str | None) -> dict[str, object]:
    return {} if at is None else {"cursor": at}


# -- a model that fails


def test_while_the_model_fails_nothing_is_answered_by_meaning_and_nothing_is_stored(tmp_path: Path) -> None:
    with serving() as endpoint:
        gateway = Gateway(tmp_path / "data", embedding="http", embedding_url=f"{endpoint.url}/v1", embedding_model="a-model")
        agent = gateway.agent()
        made = connect(gateway, agent)
        allow_all(gateway, made)
        source = shared(agent, "tea")
        tables = ("memories", "memory_tokens", "memory_vectors", "memory_links", "memory_provenance", "memory_written")
        before = [stored(gateway, f"SELECT count(*) FROM {table}") for table in tables]
        for answer in (lambda _: (500, {"error": "MARKER"}), lambda _: (401, {}), lambda _: (200, {"data": []})):
            endpoint.answer = answer
            for who, path in product((agent, made), ("search", "query")):
                for mode in ("semantic", "hybrid"):
                    body = {"query": "tea", "project_id": "alpha", "mode": mode}
                    failed = who.post(f"/v1/memories/{path}", body)
                    assert (failed.status_code, "tea" in failed.text, "MARKER" in failed.text) == (503, False, False)
            own: list[dict[str, object]] = [{}, {"supersedes": source["id"]}, {"derived_from": [source["id"]]}]
            for who, more in ((made, own[0]), *((agent, each) for each in own)):
                assert who.post("/v1/memories", {"text": "coffee", "project_id": "alpha", **more}).status_code == 503
        assert [stored(gateway, f"SELECT count(*) FROM {table}") for table in tables] == before
        assert (texts(search(made, "tea")), texts(listed(made))) == (["tea"], ["tea"])
        assert stored(gateway, "SELECT superseded_by FROM memories") == [(None,)]
        endpoint.answer = vectors(4)
        shared(made, "coffee")
        assert set(texts(search(made, "tea", mode="semantic"))) == {"tea", "coffee"}
        gateway.close()


@pytest.mark.parametrize("query", ["!!!", "...", "\u200b\u200b", "- \u2014 ?"])
def test_a_query_without_a_token_finds_nothing_in_any_mode(agent: Client, connection: Client, query: str) -> None:
    for text in ("tea", query):
        shared(agent, text)
    for who, mode in product((agent, connection), MODES):
        assert search(who, query, mode=mode) == {"items": [], "total": 0, "next_cursor": None, "incomplete": []}
        body = {"query": query, "project_id": "alpha", "mode": mode}
        assert done(who.post("/v1/memories/query", body), 200) == {"answer": "", "sources": [], "tokens": 0, "incomplete": []}
