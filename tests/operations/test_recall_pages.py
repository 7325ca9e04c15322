"""Pages of memory and passages of it: each row once, within the limits of a grant, for as long as its cursor holds."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Client, Gateway, done
from tests.operations.asking import restart
from tests.operations.connecting import connect
from tests.operations.memory_acts import MODES, NO_HEALTH, allow_all, listed, refused, remember, search, shared, texts
from tests.world import ROOT


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
