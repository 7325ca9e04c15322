"""What is read of memory: each rule of who sees what, in every layer and in every way to look at many rows."""

from __future__ import annotations

import json
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
from tests.operations.asking import stored
from tests.operations.connecting import allow, connect
from tests.operations.memory_acts import (
    LAYERS,
    MODES,
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

NOTHING: list[set[str]] = [set()] * 4


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
