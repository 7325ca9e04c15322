"""The endpoint itself: who gets in, from where, with what, and how a message is refused that is none."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from gateway import limits
from tests.builders import Client
from tests.mcp.served import Served, message

LIST = json.dumps(message("tools/list")).encode()
SAME = "the credential is missing, unknown, expired or revoked"


def test_a_bad_credential_is_the_401_of_every_route(gateway: Served) -> None:
    for key in (None, "none", "ocv_none", "1ck_none", "pgc_none", "a.b.c"):
        made = gateway.send(key, b"{not json")
        there = gateway.http.get("/v1/peers", headers={} if key is None else {"Authorization": f"Bearer {key}"})
        assert (made.status_code, made.headers["www-authenticate"]) == (401, there.headers["www-authenticate"])
        told = made.json()
        assert {name: told[name] for name in there.json()} == there.json()
        assert (told["id"], told["error"]) == (None, {"code": -32000, "message": SAME})


def test_only_post_has_an_answer_and_only_for_whoever_may_know(gateway: Served, agent: Client) -> None:
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        assert gateway.http.request(method, "/mcp").status_code == 401
        made = agent.request(method, "/mcp")
        assert (made.status_code, made.headers["allow"]) == (405, "POST")
    assert agent.post("/mcp/").status_code == 404


def test_a_session_id_is_worth_nothing_whoever_shows_it(gateway: Served, agent: Client) -> None:
    begin = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    assert "mcp-session-id" not in gateway.post(agent.key, "initialize", begin).headers
    asked = [gateway.send(who.key, LIST, mcp_session_id="f" * 32) for who in (agent, gateway.agent(), gateway.other_owner)]
    assert {(made.status_code, made.content) for made in asked} == {(404, asked[0].content)}
    assert asked[0].json()["detail"] == "there is no such session; begin a new one"
    assert gateway.send(None, LIST, mcp_session_id="f" * 32).status_code == 401


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:1", "LOCALHOST:8787", "[::1]:8787", "gateway.example", "gateway.example:443"]
)
def test_a_name_of_this_machine_or_the_public_one_is_let_in(public: Served, host: str) -> None:
    assert public.send(public.owner.key, LIST, host=host).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "localhost@evil.example", "evil.example#localhost", "127.0.0.1.evil.example", ""],
)
def test_another_host_is_a_421(public: Served, host: str) -> None:
    made = public.send(public.owner.key, LIST, host=host)
    assert (made.status_code, made.json()["title"]) == (421, "misdirected request")


def test_without_a_public_url_the_public_name_is_another_host(gateway: Served, agent: Client) -> None:
    assert gateway.send(agent.key, LIST, host="gateway.example").status_code == 421


@pytest.mark.parametrize("origin", ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:1", "https://gateway.example"])
def test_a_page_of_this_machine_or_the_public_one_may_ask(public: Served, origin: str) -> None:
    assert public.send(public.owner.key, LIST, origin=origin).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://gateway.example",
        "https://gateway.example:8443",
        "https://gateway.example.evil.example",
        "https://localhost@evil.example",
        "file://",
        "null",
        "",
    ],
)
def test_any_other_page_is_a_403(public: Served, origin: str) -> None:
    made = public.send(public.owner.key, LIST, origin=origin)
    assert (made.status_code, made.json()["title"]) == (403, "forbidden")


def test_where_a_request_is_going_is_looked_at_before_who_sends_it(gateway: Served) -> None:
    assert gateway.send(None, LIST, host="evil.example").status_code == 421
    assert gateway.send(None, LIST, origin="https://evil.example").status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{not json",
        b"[]",
        b"[{}]",
        b"{}",
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":[]}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 60 + b"1" + b"}" * 61,
    ],
)
def test_what_is_no_message_is_a_400_in_both_shapes(gateway: Served, agent: Client, body: bytes) -> None:
    made = gateway.send(agent.key, body)
    told = made.json()
    assert (made.status_code, told["title"], told["id"]) == (400, "invalid request", None)
    assert told["error"] == {"code": -32600, "message": told["detail"]}


def test_a_message_of_another_type_or_size_is_refused(gateway: Served, agent: Client) -> None:
    assert gateway.send(agent.key, LIST, content_type="text/plain").status_code == 400
    assert gateway.send(agent.key, LIST, content_encoding="gzip").status_code == 400
    assert gateway.send(agent.key, b" " * (2 * 1024 * 1024 + 1)).status_code == 413


def test_a_notification_is_taken_and_not_answered(gateway: Served, agent: Client) -> None:
    for version in ("2025-11-25", "2026-07-28"):
        body = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
        made = gateway.send(agent.key, body, mcp_protocol_version=version)
        assert (made.status_code, made.content) == (202, b"")


def test_a_version_that_nobody_speaks_is_refused(gateway: Served, agent: Client) -> None:
    assert gateway.send(agent.key, LIST, mcp_protocol_version="1999-01-01").status_code == 400


def test_a_request_for_a_stream_is_answered_without_one(gateway: Served, agent: Client) -> None:
    params = {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        },
        "notifications": {},
    }
    made = gateway.post(
        agent.key,
        "subscriptions/listen",
        params,
        mcp_protocol_version="2026-07-28",
        mcp_method="subscriptions/listen",
        accept="application/json, text/event-stream",
    )
    assert (made.status_code, made.json()["error"]["code"]) == (404, -32601)


def test_a_key_that_ends_while_the_body_arrives_is_good_for_nothing(gateway: Served) -> None:
    mortal = gateway.agent()

    def slowly() -> Iterator[bytes]:
        yield LIST[:20]
        assert gateway.owner.post(f"/v1/agents/{mortal.id}/rotate-key").status_code == 200
        yield LIST[20:]

    asked = {"authorization": f"Bearer {mortal.key}", "content-type": "application/json", "accept": "application/json"}
    made = gateway.http.request("POST", "/mcp", content=slowly(), headers=asked)  # type: ignore[arg-type]  # a client of HTTP
    assert (made.status_code, made.json()["detail"]) == (401, SAME)


def test_every_answer_is_kept_by_nobody(gateway: Served, agent: Client) -> None:
    for made in (gateway.send(agent.key, LIST), gateway.send(None, LIST), gateway.send(agent.key, b"{")):
        assert (made.headers["cache-control"], made.headers["x-content-type-options"]) == ("no-store", "nosniff")


def test_one_limit_counts_what_a_credential_asks_here_and_elsewhere(limited: Served) -> None:
    agent, other = limited.agent(), limited.agent()
    status = [limited.send(agent.key, LIST).status_code for _ in range(10)]
    made = limited.send(agent.key, LIST)
    assert set(status) == {200}
    assert (made.status_code, made.json()["title"]) == (429, "too many requests")
    assert int(made.headers["retry-after"]) > 0
    assert agent.get("/v1/agents/me").status_code == 429
    assert limited.send(other.key, LIST).status_code == 200


def test_whoever_shows_no_good_credential_is_counted_by_address_here_too(limited: Served) -> None:
    made = [limited.send(key, LIST) for key in (None, "ocv_none", "a.b.c", "none")]
    assert [each.status_code for each in made] == [401, 401, 401, 429]
    assert (made[3].headers["retry-after"], made[3].json()["title"]) == ("20", "too many requests")
    assert limited.services.traffic.limited["address"] == 1


def test_one_message_too_many_at_once_is_told_to_come_back(
    gateway: Served, agent: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = gateway.services.traffic.shed["requests"]
    with monkeypatch.context() as patched:
        patched.setattr(limits, "CONCURRENT_REQUESTS", 0)
        made = gateway.send(agent.key, LIST)
    assert (made.status_code, made.headers["retry-after"], made.json()["title"]) == (503, "1", "unavailable")
    assert gateway.services.traffic.shed["requests"] == before + 1


def test_a_message_is_counted_as_mcp_and_told_with_the_decisions_of_its_call(gateway: Served, agent: Client) -> None:
    counts, told = gateway.services.traffic.requests, list[tuple[str, str, int, list[str]]]()
    before = counts["mcp", "2xx"]
    gateway.app.told = lambda exchange, status, _: told.append(
        (exchange.request_id, exchange.operation, status, list(exchange.decisions))
    )
    called = json.dumps(message("tools/call", {"name": "memory_search", "arguments": {"query": "tea"}})).encode()
    assert gateway.send(agent.key, called, x_request_id="r-1").status_code == 200
    assert gateway.send(agent.key, LIST, x_request_id="r-2").status_code == 200
    gateway.http.get("/health/live")  # by now both have been told
    gateway.app.told = None
    kept = gateway.services.database.read_sync(
        lambda rows: rows.all("SELECT id FROM log WHERE request_id = $1 AND kind = 'decision'", "r-1")
    )
    assert told[:2] == [("r-1", "mcp", 200, [row[0] for row in kept]), ("r-2", "mcp", 200, [])]
    assert (len(kept) > 0, counts["mcp", "2xx"]) == (True, before + 2)


def test_a_call_that_is_told_to_come_back_is_counted_by_its_cause(
    gateway: Served, agent: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    shed = gateway.services.traffic.shed
    before = shed["store"]
    with monkeypatch.context() as patched:
        patched.setattr(limits, "READER_QUEUE", 0)
        patched.setattr(limits, "WRITER_QUEUE", 0)
        called = gateway.call(agent, "memory_search", {"query": "tea"})
    assert (called.failed, called.data["title"], shed["store"]) == (True, "unavailable", before + 1)
