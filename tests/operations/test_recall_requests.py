"""What may be asked of memory: what is malformed is 400 and names its field, and any text is a query."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.builders import Client, Gateway, done
from tests.operations.memory_acts import MODES, raw, refused, remember, search, shared, texts

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


@pytest.mark.parametrize("query", ["!!!", "...", "\u200b\u200b", "- \u2014 ?"])
def test_a_query_without_a_token_finds_nothing_in_any_mode(agent: Client, connection: Client, query: str) -> None:
    for text in ("tea", query):
        shared(agent, text)
    for who, mode in product((agent, connection), MODES):
        assert search(who, query, mode=mode) == {"items": [], "total": 0, "next_cursor": None, "incomplete": []}
        body = {"query": query, "project_id": "alpha", "mode": mode}
        assert done(who.post("/v1/memories/query", body), 200) == {"answer": "", "sources": [], "tokens": 0, "incomplete": []}
