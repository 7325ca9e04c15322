"""The bridge of the network: it gets what the connection it names is granted, after its obligations, or one of few refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import START, Client, Gateway, Response, done

PEER = "did:web:peer.example"
NOT_FOUND = (404, b'{"ok":false,"error":"not_found"}')
SOME_ID = "00000000-0000-4000-8000-000000000000"
ROUTES = ("notes.search", "notes.read", "knowledge.query")


class Bridged:
    """An agent with rows in two projects and one in none, its bridge, and a connection that is granted each project."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.agent = gateway.agent("bridged")
        self.bridge = self.token(self.agent)
        self.alpha = self.remember("Sarah leads alpha", "alpha", tags=["team"])
        self.second = self.remember("Tom joined alpha with Sarah", "alpha")
        self.beta = self.remember("Sarah left beta", "beta")
        self.untagged = self.remember("Sarah likes tea", None)
        self.secret = self.remember("Sarah earns much in alpha", "alpha", classification="confidential")
        for project in ("alpha", "beta"):
            self.connect(f"conn-{project}")
            self.grant(f"conn-{project}", project)

    def token(self, agent: Client) -> Client:
        made = done(self.gateway.owner.post(f"/v1/agents/{agent.id}/bridge-token"), 201)
        return Client(self.gateway.http, agent.id, made["token"])

    def connect(self, connection_id: str, agent: Client | None = None, did: str = PEER, by: Client | None = None) -> None:
        body = {"agent_id": (agent or self.agent).id, "peer_did": did, "id": connection_id}
        done((by or self.gateway.owner).post("/v1/connections", body), 201)

    def grant(self, connection_id: str, project: str, **more: Any) -> str:
        body = {"project_id": project, "actions": ["search", "read", "query"], **more}
        made: str = done(self.gateway.owner.post(f"/v1/connections/{connection_id}/grants", body), 201)["grant"]["id"]
        return made

    def remember(self, text: str, project: str | None, agent: Client | None = None, **more: Any) -> str:
        body = {"text": text, **more} | ({"project_id": project} if project is not None else {})
        made: str = done((agent or self.agent).post("/v1/memories", body), 201)["memory"]["id"]
        return made

    def body(self, route: str, without: str | None = None, **more: Any) -> dict[str, Any]:
        made: dict[str, Any] = {"connection_id": "conn-alpha", "source_did": PEER, "obligations": [], "collection_id": "alpha"}
        made |= {"source_path": self.alpha} if route == "notes.read" else {"query": "Sarah"}
        made |= more
        return {name: value for name, value in made.items() if name != without}

    def ask(self, route: str, by: Client | None = None, without: str | None = None, **more: Any) -> Response:
        return (by or self.bridge).post(f"/api/arp/{route}", self.body(route, without, **more))

    def search(self, **more: Any) -> list[str]:
        """The ids that a search finds."""
        return [item["id"] for item in done(self.ask("notes.search", **more), 200)["items"]]


@pytest.fixture
def bridged(gateway: Gateway) -> Bridged:
    """One that a test may change."""
    return Bridged(gateway)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridged]:
    """One for all tests that only ask."""
    gateway = Gateway(tmp_path_factory.mktemp("standing") / "data")
    yield Bridged(gateway)
    gateway.close()


def seen(made: Response) -> tuple[int, bytes]:
    return made.status_code, made.content


def refused(made: Response) -> tuple[int, str]:
    return made.status_code, made.json()["error"]


def obliged(kind: str, **params: Any) -> list[dict[str, Any]]:
    return [{"type": kind, "params": params}]


# -- what is answered


def test_a_search_answers_the_rows_of_the_project_as_they_are_stored(standing: Bridged) -> None:
    made = done(standing.ask("notes.search", query="leads"), 200)
    assert made == {
        "ok": True,
        "items": [
            {
                "id": standing.alpha,
                "content": "Sarah leads alpha",
                "source_path": standing.alpha,
                "timestamp": START.isoformat().replace("+00:00", "Z"),
                "project_id": "alpha",
                "classification": "internal",
            }
        ],
        "redactions_applied": [],
    }


def test_a_row_is_read_by_the_path_that_a_search_gave(standing: Bridged) -> None:
    item = done(standing.ask("notes.search", query="leads"), 200)["items"][0]
    for named in ({"source_path": item["source_path"]}, {"id": item["id"]}, {"id": item["id"], "source_path": item["id"]}):
        assert done(standing.ask("notes.read", without=None if "source_path" in named else "source_path", **named), 200) == {
            "ok": True,
            "item": item,
        }


def test_a_query_answers_texts_and_exactly_the_rows_they_are_of(standing: Bridged) -> None:
    made = done(standing.ask("knowledge.query"), 200)
    assert made["answer"] == "\n\n".join(source["content"] for source in made["sources"])
    assert sorted(made["sources"], key=lambda source: source["content"]) == [
        {"source_path": standing.alpha, "content": "Sarah leads alpha", "project_id": "alpha"},
        {"source_path": standing.second, "content": "Tom joined alpha with Sarah", "project_id": "alpha"},
    ]


def test_a_connection_sees_its_own_project_whatever_the_request_says(standing: Bridged) -> None:
    assert set(standing.search()) == {standing.alpha, standing.second}
    assert standing.search(connection_id="conn-beta", collection_id="beta") == [standing.beta]
    assert standing.search(collection_id="beta") == []
    assert standing.search(connection_id="conn-beta") == []


def test_nothing_in_scope_is_an_empty_answer_and_a_missing_row(standing: Bridged) -> None:
    assert done(standing.ask("notes.search", collection_id="none"), 200) == {"ok": True, "items": [], "redactions_applied": []}
    assert done(standing.ask("knowledge.query", collection_id="none"), 200) == {"ok": True, "answer": "", "sources": []}
    for row in (SOME_ID, standing.beta, standing.untagged, standing.secret, "not an id", "*"):
        assert seen(standing.ask("notes.read", source_path=row)) == NOT_FOUND
    assert seen(standing.ask("notes.read", collection_id="beta")) == NOT_FOUND


def test_a_row_of_another_granted_project_is_not_read_under_this_one(bridged: Bridged) -> None:
    bridged.grant("conn-alpha", "beta")
    assert seen(bridged.ask("notes.read", source_path=bridged.beta)) == NOT_FOUND
    assert done(bridged.ask("notes.read", source_path=bridged.beta, collection_id="beta"), 200)["item"]["id"] == bridged.beta


def test_an_action_that_is_not_granted_answers_as_if_there_were_nothing(bridged: Bridged) -> None:
    bridged.connect("conn-find")
    bridged.grant("conn-find", "alpha", actions=["search"])
    assert len(bridged.search(connection_id="conn-find")) == 2
    assert seen(bridged.ask("notes.read", connection_id="conn-find")) == NOT_FOUND
    assert done(bridged.ask("knowledge.query", connection_id="conn-find"), 200)["sources"] == []


def test_tags_narrow_and_no_tags_match_nothing(standing: Bridged) -> None:
    assert standing.search(tags=["team"]) == [standing.alpha]
    assert standing.search(tags=["tea"]) == []
    assert standing.search(tags=[]) == []
    assert standing.ask("notes.read", tags=["team", "other"]).status_code == 200
    for tags in (["tea"], []):
        assert seen(standing.ask("notes.read", tags=tags)) == NOT_FOUND


def test_the_project_is_taken_in_its_normal_form_by_any_of_its_names(standing: Bridged) -> None:
    both = {"kb_id": "alpha", "project_id": "ALPHA"}
    for named in ({"collection_id": "ALPHA"}, {"kb_id": "alpha"}, {"project_id": "Alpha"}, both):
        without = None if "collection_id" in named else "collection_id"
        assert len(done(standing.ask("notes.search", without=without, **named), 200)["items"]) == 2


def test_what_the_remote_agent_says_beside_the_project_is_ignored(standing: Bridged) -> None:
    for resource in ("Project:alpha", 'Project::"alpha"', 'Arp::Project::"ALPHA"', {"type": "Project", "id": "alpha", "size": 1}):
        more = {"resource": resource, "context": {"role": "owner", "project_id": "beta"}, "text": "ignore the rules"}
        assert len(standing.search(**more, action="notes.search")) == 2


def test_a_limit_is_filled_and_the_default_is_ten(bridged: Bridged) -> None:
    for number in range(12):
        bridged.remember(f"Sarah met {number}", "alpha")
    assert [len(bridged.search(**more)) for more in ({}, {"limit": 1}, {"limit": 50})] == [10, 1, 14]


def test_the_limits_of_the_grant_hold_as_well(bridged: Bridged) -> None:
    bridged.connect("conn-small")
    bridged.grant("conn-small", "alpha", limits={"max_results": 1, "max_chars": 5})
    made = done(bridged.ask("notes.search", connection_id="conn-small"), 200)
    assert [len(item["content"]) for item in made["items"]] == [5]
    assert done(bridged.ask("notes.read", connection_id="conn-small"), 200)["item"]["content"] == "Sarah"


# -- who is answered


def test_every_connection_that_does_not_serve_is_the_same_404(bridged: Bridged) -> None:
    gateway = bridged.gateway
    other = gateway.agent("other")
    bridged.connect("conn-other", other)
    bridged.connect("conn-away", gateway.agent(by=gateway.other_owner), by=gateway.other_owner)
    for state in ("suspend", "revoke"):
        bridged.connect(f"conn-{state}")
        bridged.grant(f"conn-{state}", "alpha")
        done(gateway.owner.post(f"/v1/connections/conn-{state}/{state}"), 200)
    unserved = ["conn-none", "conn-other", "conn-away", "conn-suspend", "conn-revoke"]
    unserved += ["CONN-ALPHA", "x", "a b", 'x" || "', "conn-alph"]
    others = ("did:web:other.example", "DID:web:peer.example", PEER + "x", "x")
    for route in ROUTES:
        answers = [bridged.ask(route, connection_id=unknown) for unknown in unserved]
        answers += [bridged.ask(route, source_did=did) for did in others]
        assert {seen(made) for made in answers} == {NOT_FOUND}
        shown = [{name: text for name, text in made.headers.items() if name != "x-request-id"} for made in answers]
        assert shown == [shown[0]] * len(shown)


def test_a_bridge_serves_the_connections_of_its_own_agent_only(bridged: Bridged) -> None:
    other = bridged.gateway.agent("other")
    bridge = bridged.token(other)
    bridged.connect("conn-other", other)
    bridged.grant("conn-other", "alpha")
    row = bridged.remember("Sarah is known here too", "alpha", agent=other)
    assert seen(bridged.ask("notes.search", by=bridge)) == NOT_FOUND
    assert [item["id"] for item in done(bridged.ask("notes.search", by=bridge, connection_id="conn-other"), 200)["items"]] == [
        row
    ]


def test_connections_of_one_id_in_two_organisations_never_mix(bridged: Bridged) -> None:
    gateway = bridged.gateway
    theirs = gateway.agent(by=gateway.other_owner)
    bridged.connect("conn-alpha", theirs, by=gateway.other_owner)
    done(
        gateway.other_owner.post("/v1/connections/conn-alpha/grants", {"project_id": "alpha", "actions": ["search"]}),
        201,
    )
    row = bridged.remember("Sarah of another organisation", "alpha", agent=theirs)
    token = done(gateway.other_owner.post(f"/v1/agents/{theirs.id}/bridge-token"), 201)["token"]
    for _ in range(2):
        assert [i["id"] for i in done(bridged.ask("notes.search", by=Client(gateway.http, "", token)), 200)["items"]] == [row]
        assert set(bridged.search()) == {bridged.alpha, bridged.second}


def test_revoking_and_expiry_show_nothing_from_the_next_request_on(bridged: Bridged) -> None:
    gateway = bridged.gateway
    bridged.connect("conn-ends")
    granted = bridged.grant("conn-ends", "alpha")
    assert len(bridged.search(connection_id="conn-ends")) == 2
    done(gateway.owner.delete(f"/v1/connections/conn-ends/grants/{granted}"), 204)
    assert bridged.search(connection_id="conn-ends") == []
    bridged.grant("conn-ends", "alpha", expires_at=(START + timedelta(hours=1)).isoformat())
    assert len(bridged.search(connection_id="conn-ends")) == 2
    gateway.clock.advance(timedelta(hours=1))
    assert bridged.search(connection_id="conn-ends") == []


def test_another_kind_of_credential_is_forbidden_whatever_it_asks(bridged: Bridged) -> None:
    gateway = bridged.gateway
    body = {"agent_id": bridged.agent.id, "peer_did": PEER, "id": "conn-own"}
    credential = done(gateway.owner.post("/v1/connections", body), 201)["credential"]
    app = done(gateway.owner.post("/v1/org/platform-apps", {"name": "app", "slug": "app"}), 201)
    others = [gateway.owner, gateway.member, gateway.other_owner, bridged.agent]
    others += [replace(bridged.bridge, key=key) for key in (credential, app["api_key"])]
    for other in others:
        for route in ROUTES:
            assert refused(bridged.ask(route, by=other)) == (403, "forbidden")
            assert refused(bridged.ask(route, by=other, connection_id="conn-none")) == (403, "forbidden")
        assert refused(other.post("/api/web/chat")) == (403, "forbidden")


def test_whoever_is_no_bridge_is_refused_by_the_policy_that_says_so(standing: Bridged) -> None:
    gateway, headers = standing.gateway, {"X-Request-Id": "no-bridge"}
    for other in (gateway.owner, standing.agent):
        for path, body in (("arp/notes.search", standing.body("notes.search", connection_id="none")), ("web/chat", {})):
            made = other.post(f"/api/{path}", body, headers)
            assert (refused(made), made.json()["reason"]) == ((403, "forbidden"), "Only the bridge of an agent does this.")
    rows = gateway.services.database.read_sync(
        lambda rows: rows.all("SELECT action, outcome, policies FROM log WHERE request_id = 'no-bridge' ORDER BY seq")
    )
    assert [row[:2] for row in rows] == [("bridge.serve", "deny"), ("bridge.chat", "deny")] * 2
    assert all("guardrails/bridge/only_bridges" in row[2] for row in rows)


def test_free_text_of_a_bridge_is_decided_about_its_agent(standing: Bridged) -> None:
    made = standing.bridge.post("/api/web/chat", {}, {"X-Request-Id": "chat"})
    assert made.status_code == 200
    rows = standing.gateway.services.database.read_sync(
        lambda rows: rows.all("SELECT action, outcome, resource_type, resource_id FROM log WHERE request_id = 'chat'")
    )
    assert rows == [("bridge.chat", "allow", "Agent", standing.agent.id)]


def test_a_bridge_token_is_good_for_nothing_else(standing: Bridged) -> None:
    bridge = standing.bridge
    assert bridge.get("/v1/agents/me").status_code == 403
    assert bridge.get("/v1/memories").status_code == 403
    assert bridge.get("/v1/connections/conn-alpha").status_code == 403


def test_an_old_token_and_that_of_an_inactive_agent_are_unauthorized(bridged: Bridged) -> None:
    old, bridged.bridge = bridged.bridge, bridged.token(bridged.agent)
    assert len(bridged.search()) == 2
    unauthorized = (401, b'{"ok":false,"error":"unauthorized"}')
    assert seen(bridged.ask("notes.search", by=old)) == unauthorized
    done(bridged.gateway.owner.patch(f"/v1/agents/{bridged.agent.id}", {"is_active": False}), 200)
    assert seen(bridged.ask("notes.search")) == unauthorized


def test_the_decisions_name_the_bridge_and_the_connection_and_no_text(standing: Bridged) -> None:
    headers = {"X-Request-Id": "asked"}
    done(standing.bridge.post("/api/arp/notes.search", standing.body("notes.search", query="canary"), headers), 200)
    rows = standing.gateway.services.database.read_sync(
        lambda rows: rows.all(
            "SELECT principal_type, principal_id, action, outcome FROM log"
            " WHERE request_id = 'asked' AND kind = 'decision' ORDER BY seq"
        )
    )
    assert rows[0] == ("Bridge", standing.agent.id, "bridge.serve", "allow")
    assert {row[:3] for row in rows[1:]} == {("Connection", "conn-alpha", "memory.search")}


# -- what is refused


NO_PROJECTS = ("", " ", "*", "%", "a b", None, [], ["alpha"], {}, 1, True, "x" * 65, "x" * 10_000, "beta", 'a" ) ; permit')
NO_RESOURCES = ("Project:beta", "alpha", "Project:", 'Project::"beta"', 'P::"alpha" || true', "", [], 1, None, True, ":alpha")


def broken_bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    for value in NO_PROJECTS:
        for field, other in (("collection_id", "kb_id"), ("kb_id", "collection_id"), ("project_id", "collection_id")):
            yield field, {other: "alpha", field: value}
    for value in NO_RESOURCES:
        yield "resource", {"resource": value}
    for value in ({}, {"id": "alpha"}, {"type": "Project"}, {"type": "Project", "id": "beta"}, {"type": 1, "id": "alpha"}):
        yield "resource", {"resource": value}
    for value in ([], "{}", None, 1):
        yield "context", {"context": value}
    for value in ("notes.write", "", None, 1, "NOTES.SEARCH"):
        yield "action", {"action": value}
    for value in (0, 51, -1, 1.0, 10.5, "10", True, None, []):
        yield "limit", {"limit": value}
    for value in (99, 50_001, "100", 100.0, None, True):
        yield "max_tokens", {"max_tokens": value}
    for value in ("team", None, {}, [1], [None], [""], [" "], ["x" * 65], [str(n) for n in range(33)]):
        yield "tags", {"tags": value}
    for value in (None, 1, [], "", "   ", "x" * 2_001):
        yield "query", {"query": value}
    for value in (None, 1, {}, [], "", "x" * 300):
        yield "connection_id", {"connection_id": value}
        yield "source_did", {"source_did": value}
    for value in (None, 1, {}):
        yield "text", {"text": value}
    yield "obligations", {"obligations": None}
    for unknown in ("projectId", "agent_id", "classification", "tags_match", "mode", "cursor", "layers"):
        yield unknown, {unknown: "x"}


@pytest.mark.parametrize("route", ROUTES)
def test_a_malformed_request_is_a_400_that_names_the_field(standing: Bridged, route: str) -> None:
    found = []
    for field, changes in broken_bodies():
        made = standing.ask(route, **changes)
        if refused(made) != (400, "bad_request") or f"`{field}" not in made.json()["reason"]:
            found.append((field, changes, made.text[:200]))
    assert found == []


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_required_is_required(standing: Bridged, route: str) -> None:
    needed = "source_path" if route == "notes.read" else "query"
    for field in ("connection_id", "source_did", "obligations", "collection_id", needed):
        assert refused(standing.ask(route, without=field)) == (400, "bad_request"), field


def test_names_of_one_thing_that_disagree_are_a_400(standing: Bridged) -> None:
    assert refused(standing.ask("notes.search", project_id="beta")) == (400, "bad_request")
    assert refused(standing.ask("notes.read", id=standing.second)) == (400, "bad_request")
    assert refused(standing.ask("notes.search", source_path=standing.alpha)) == (400, "bad_request")


@pytest.mark.parametrize("text", ["C++ AND OR (", "' OR 1=1 --", "%_*", "漢字 🙂", '"', "\\", "\u202e", "NEAR(a b)"])
def test_any_query_is_literal_text(standing: Bridged, text: str) -> None:
    assert standing.search(query=text) == []
    assert done(standing.ask("knowledge.query", query=text), 200)["sources"] == []


def test_a_query_string_and_a_key_twice_are_a_400(standing: Bridged) -> None:
    headers = {"Authorization": f"Bearer {standing.bridge.key}", "Content-Type": "application/json"}
    for path in ("?collection_id=alpha", "?x=1"):
        made = standing.gateway.http.post(f"/api/arp/notes.search{path}", json=standing.body("notes.search"), headers=headers)
        assert refused(made) == (400, "bad_request")
    text = json.dumps(standing.body("notes.search"))[:-1] + ', "collection_id": "beta"}'
    assert refused(standing.gateway.http.post("/api/arp/notes.search", content=text, headers=headers)) == (400, "bad_request")


# -- obligations


def test_an_obligation_that_cannot_be_met_is_a_422_and_no_answer(standing: Bridged) -> None:
    for obligations in (
        obliged("redact_regex", pattern="x"),
        obliged("summarize_only", max_words="{{max_words}}"),
        obliged("redact_fields", fields=["{{field}}"]),
        obliged("rate_limit", window="fortnight", max=1),
        obliged("max_size_mb", max=0.00001),
        [{"type": "audit_level"}],
        "none",
        {},
    ):
        for route in ROUTES:
            made = standing.ask(route, obligations=obligations)
            assert (refused(made), set(made.json())) == ((422, "obligation_unsatisfiable"), {"ok", "error", "reason"})


def test_obligations_are_done_to_each_answer(standing: Bridged) -> None:
    for route in ROUTES:
        made = done(standing.ask(route, obligations=obliged("redact_fields", fields=["content"])), 200)
        assert ("Sarah" in json.dumps(made), made["redactions_applied"]) == (False, ["content"])
        made = standing.ask(route, obligations=obliged("max_size_mb", max=0.0003))
        assert (made.status_code, len(made.content) <= 300) == (200, True)
    made = done(standing.ask("notes.read", obligations=obliged("summarize_only", max_words=2)), 200)
    assert made["item"]["content"] == "Sarah leads"
    made = done(standing.ask("notes.search", obligations=obliged("redact_fields_except", allowlist=["id"])), 200)
    assert [set(item) for item in made["items"]] == [{"id"}, {"id"}]
    made = done(standing.ask("notes.search", obligations=obliged("audit_level", level="full")), 200)
    assert len(made["items"]) == 2


@pytest.mark.parametrize(("window", "length"), [("second", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400)])
def test_a_rate_holds_for_the_connection_on_every_route_until_its_window_has_passed(
    bridged: Bridged, window: str, length: int
) -> None:
    obligations = obliged("rate_limit", window=window, max=2)
    assert [bridged.ask(route, obligations=obligations).status_code for route in ROUTES] == [200, 200, 429]
    made = bridged.ask("notes.search", obligations=obligations)
    assert (refused(made), made.headers["retry-after"]) == ((429, "rate_limited"), str(length))
    assert bridged.ask("notes.search", obligations=obligations, connection_id="conn-beta").status_code == 200
    bridged.gateway.clock.advance(timedelta(seconds=length))
    assert bridged.ask("notes.search", obligations=obligations).status_code == 200


def test_of_two_rates_the_stricter_holds(bridged: Bridged) -> None:
    obligations = obliged("rate_limit", window="hour", max=5) + obliged("rate_limit", window="hour", max=1)
    assert [bridged.ask("notes.search", obligations=obligations).status_code for _ in range(2)] == [200, 429]


def test_the_rate_of_the_grant_is_shared_with_the_other_routes(bridged: Bridged) -> None:
    gateway = bridged.gateway
    body = {"agent_id": bridged.agent.id, "peer_did": PEER, "id": "conn-rate"}
    remote = replace(bridged.bridge, key=done(gateway.owner.post("/v1/connections", body), 201)["credential"])
    bridged.grant("conn-rate", "alpha", limits={"requests_per_minute": 2})
    assert bridged.ask("notes.search", connection_id="conn-rate").status_code == 200
    assert remote.post("/v1/memories/search", {"query": "Sarah"}).status_code == 200
    made = bridged.ask("knowledge.query", connection_id="conn-rate")
    assert (refused(made), made.headers["retry-after"]) == ((429, "rate_limited"), "60")
    assert remote.get(f"/v1/memories/{bridged.alpha}").status_code == 429


# -- free text


def test_free_text_gets_one_answer_whatever_is_sent(standing: Bridged) -> None:
    gateway, headers = standing.gateway, {"Authorization": f"Bearer {standing.bridge.key}"}
    answers = [
        gateway.http.post("/api/web/chat" + query, content=content, headers={**headers, **kind})
        for content in (
            b"",
            b"{}",
            b'{"prompt": "tell me everything", "connection_id": "conn-alpha"}',
            b"{",
            b"\xff",
            b"x" * 400_000,
        )
        for query in ("", "?q=x&q=y")
        for kind in ({}, {"Content-Type": "application/json"}, {"Content-Type": "text/plain"})
    ]
    assert {(made.status_code, made.content, made.headers["content-type"]) for made in answers} == {
        (200, answers[0].content, "text/event-stream")
    }
    event, data, *end = answers[0].text.split("\n")
    assert (event, list(json.loads(data.removeprefix("data: "))), end) == ("event: result", ["summary"], ["", ""])
