"""The application over a real gateway, with operations small enough to see through."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from gateway import limits
from gateway.authn.authenticator import Authenticator
from gateway.errors import Conflict, InvalidToken, NotFound, Unauthenticated
from gateway.operations.call import Call, Services
from gateway.operations.fields import stamp
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.registry import OPERATIONS as PRODUCT
from gateway.store.db import Database
from gateway.web.app import create_app
from gateway.web.challenge import challenge
from gateway.web.protocol import QUEUED
from tests.builders import Client, Gateway, done

WORDS = "what a person wrote"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def mirror(call: Call) -> Reply:
    call.access.authorize(call.session, "audit.verify", call.org)
    body = {"path": dict(call.path), "query": dict(call.query.members), "body": dict(call.body.members)}
    return Reply(body, 201, {"Location": "/x"})


async def forgetful(call: Call) -> Reply:
    return Reply({"secret": "never shown"})


async def broken(call: Call) -> Reply:
    call.access.authorize(call.session, "audit.verify", call.org)
    raise RuntimeError(WORDS)


async def conflicting(call: Call) -> Reply:
    call.access.authorize(call.session, "audit.verify", call.org)
    raise Conflict("not now")


async def missing(call: Call) -> Reply:
    raise NotFound


async def nothing(call: Call) -> Reply:
    call.access.authorize(call.session, "audit.verify", call.org)
    return NO_CONTENT


async def unguarded(call: Call) -> Reply:
    return Reply({"caller": call.session.caller.id})


def an_operation(run: Any, method: str, path: str, **more: Any) -> Operation:
    return Operation(name=path, method=method, path=path, summary="", run=run, **more)


OPERATIONS = (
    an_operation(mirror, "GET", "/t/mirror/{id}/facts/{key}", query=("a", "b")),
    an_operation(mirror, "POST", "/t/mirror", fields=("a", "b"), query=("a",)),
    an_operation(mirror, "POST", "/t/large", fields=("a",), body_bytes=512 * 1024),
    an_operation(mirror, "PUT", "/t/strict", fields=("a", "b"), query=("a",), strict=True),
    an_operation(forgetful, "GET", "/t/forgetful"),
    an_operation(broken, "GET", "/t/broken"),
    an_operation(conflicting, "GET", "/t/conflicting"),
    an_operation(missing, "GET", "/t/missing"),
    an_operation(nothing, "DELETE", "/t/nothing"),
    an_operation(unguarded, "GET", "/t/public", public="because a test says so"),
)


def over(gateway: Gateway, services: Services | None = None) -> Client:
    """The owner of a gateway, calling the operations above."""
    http = TestClient(create_app(services or gateway.services, OPERATIONS))
    return replace(gateway.owner, http=http)


def logged(gateway: Gateway) -> list[tuple[Any, ...]]:
    return gateway.services.database.read_sync(lambda rows: rows.all("SELECT action, outcome, request_id FROM log ORDER BY seq"))


def new_rows(gateway: Gateway, run: Callable[[], object]) -> list[tuple[Any, ...]]:
    before = len(logged(gateway))
    run()
    return logged(gateway)[before:]


def test_an_answer_is_json_that_no_cache_keeps_with_the_request_id_echoed(gateway: Gateway) -> None:
    made = over(gateway).request("POST", "/t/mirror", {"a": 1.5}, {"X-Request-Id": "run:7._-Z"}, a="x")
    assert (made.status_code, made.json()) == (201, {"path": {}, "query": {"a": "x"}, "body": {"a": 1.5}})
    assert dict(made.headers) == {
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "x-request-id": "run:7._-Z",
        "location": "/x",
        "content-type": "application/json",
        "content-length": str(len(made.content)),
    }


def test_a_204_has_no_body_and_no_type(gateway: Gateway) -> None:
    made = over(gateway).delete("/t/nothing")
    assert (made.status_code, made.content, made.headers.get("content-type")) == (204, b"", None)


@pytest.mark.parametrize("sent", ["", "a b", "x" * 129, "é", "a\tb"])
def test_a_request_id_that_is_not_safe_to_log_is_replaced(gateway: Gateway, sent: str) -> None:
    made = over(gateway).request("GET", "/t/conflicting", headers={"X-Request-Id": sent.encode()})  # type: ignore[dict-item]
    assert UUID.fullmatch(made.headers["x-request-id"])
    assert logged(gateway)[-1] == ("audit.verify", "allow", made.headers["x-request-id"])


def test_without_a_good_credential_every_answer_is_the_same_401(gateway: Gateway) -> None:
    http = over(gateway).http
    key = gateway.owner.key
    sent: list[list[tuple[str, str]]] = [
        [],
        [("Authorization", "Bearer nonsense")],
        [("Authorization", f"Basic {key}")],
        [("Authorization", f"Bearer {key}x")],
        [("Authorization", f"Bearer {key}"), ("Authorization", f"Bearer {key}")],
    ]
    answers = [http.post("/t/mirror", headers=headers, content=b"{") for headers in sent]
    assert {(a.status_code, a.content) for a in answers} == {(401, answers[0].content)}
    none, bad = challenge(Unauthenticated()), challenge(InvalidToken())
    assert [a.headers["www-authenticate"] for a in answers] == [none, bad, none, bad, none]
    assert answers[0].json() == {
        "type": "urn:peergate:problem:unauthenticated",
        "title": "unauthenticated",
        "status": 401,
        "detail": "the credential is missing, unknown, expired or revoked",
    }


def test_an_unknown_route_is_the_same_404_as_a_missing_object(gateway: Gateway) -> None:
    owner = over(gateway)
    answers = [owner.get(path) for path in ("/t/missing", "/t/none", "/t/missing/", "/t//missing", "/t/%00", "/%FF", "/")]
    answers.append(gateway.http.get("/none"))
    assert {(a.status_code, a.content) for a in answers} == {(404, answers[0].content)}
    assert len({tuple(sorted(set(a.headers.items()) - {("x-request-id", a.headers["x-request-id"])})) for a in answers}) == 1


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS", "PROPFIND"])
def test_another_method_is_a_405_that_names_the_methods_there_are(gateway: Gateway, method: str) -> None:
    made = over(gateway).request(method, "/t/broken")
    assert (made.status_code, made.headers["allow"]) == (405, "GET")


def test_a_fact_key_with_slashes_pipes_and_percents_arrives_intact(gateway: Gateway) -> None:
    made = over(gateway).get("/t/mirror/7/facts/approval_tendency%3Ax%7C0-10%7Cknown%7Ca%252F%2Fb%2F..%2Fc%20%E6%88%91")
    assert made.json()["path"] == {"id": "7", "key": "approval_tendency:x|0-10|known|a%2F/b/../c 我"}


def test_an_empty_body_is_an_empty_object_whatever_its_content_type(gateway: Gateway) -> None:
    owner = over(gateway)
    for kind in ("application/json", "text/plain"):
        made = owner.http.post("/t/mirror", headers={"Authorization": f"Bearer {owner.key}", "Content-Type": kind})
        assert (made.status_code, made.json()["body"]) == (201, {})


def test_a_body_that_is_not_said_to_be_json_is_a_400(gateway: Gateway) -> None:
    owner = over(gateway)
    headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "text/plain"}
    made = owner.http.post("/t/mirror", headers=headers, content=b"{}")
    detail = "`content-type` must be application/json in UTF-8, got `text/plain`"
    assert (made.status_code, made.json()["detail"]) == (400, detail)


def test_unknown_members_are_ignored_where_clients_send_extras_and_refused_elsewhere(gateway: Gateway) -> None:
    owner = over(gateway)
    assert owner.request("POST", "/t/mirror", {"a": 1, "extra": 2}, extra="1").status_code == 201
    refused = owner.request("PUT", "/t/strict", {"a": 1, "extra": 2})
    said = "`extra` is not a known field here; known are a, b"
    assert (refused.status_code, refused.json()["fields"]) == (400, {"extra": said})
    refused = owner.request("PUT", "/t/strict", {"a": 1}, extra="1")
    said = "`extra` is not a known parameter here; known are a"
    assert (refused.status_code, refused.json()["fields"]) == (400, {"extra": said})


def test_a_body_over_the_limit_is_a_413_that_names_it(gateway: Gateway) -> None:
    made = over(gateway).post("/t/mirror", {"a": "x" * 300_000})
    assert (made.status_code, made.json()["detail"]) == (413, "the body is over the limit of 256 KiB")


def test_an_answer_that_leaves_before_the_body_was_read_is_the_last_of_its_connection(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = over(gateway)
    key = {"Authorization": f"Bearer {owner.key}"}

    def asked(method: str, path: str, headers: dict[str, str], content: bytes = b"{}") -> tuple[int, str | None]:
        made = owner.http.request(method, path, headers=headers, content=content)
        return made.status_code, made.headers.get("connection")

    assert asked("POST", "/t/mirror", {}) == (401, "close")
    assert asked("POST", "/t/none", key) == (404, "close")
    assert asked("PUT", "/t/mirror", key) == (405, "close")
    assert asked("POST", "/t/mirror", key, b" " * 300_000) == (413, "close")
    assert asked("GET", "/t/conflicting", key) == (409, "close")
    assert asked("GET", "/t/conflicting", key, b"") == (409, None)
    assert asked("POST", "/t/mirror", {"Content-Type": "application/json", **key}, b"{") == (400, None)
    monkeypatch.setattr(limits, "CONCURRENT_REQUESTS", 0)
    assert asked("POST", "/t/mirror", key) == (503, "close")


def test_a_malformed_request_leaves_no_record_and_a_decided_one_leaves_one(gateway: Gateway) -> None:
    owner = over(gateway)
    assert new_rows(gateway, lambda: owner.request("PUT", "/t/strict", {"x": 1})) == []
    assert new_rows(gateway, lambda: owner.request("PUT", "/t/strict", {"a": 1}, {"X-Request-Id": "r"})) == [
        ("audit.verify", "allow", "r")
    ]


def test_an_error_after_a_decision_leaves_the_decision_in_the_log(gateway: Gateway) -> None:
    owner = over(gateway)
    for path, status in (("/t/conflicting", 409), ("/t/broken", 500)):
        answers: list[int] = []
        rows = new_rows(gateway, lambda path=path, answers=answers: answers.append(owner.get(path).status_code))  # type: ignore[misc]
        assert (answers, [row[:2] for row in rows]) == ([status], [("audit.verify", "allow")])


def test_a_denial_is_recorded_and_names_its_decision(gateway: Gateway) -> None:
    agent = replace(gateway.agent(), http=over(gateway).http)
    made = agent.post("/t/mirror")
    assert made.status_code == 403
    last = gateway.services.database.read_sync(lambda rows: rows.one("SELECT id, outcome FROM log ORDER BY seq DESC LIMIT 1"))
    assert last == (made.json()["decision_id"], "deny")


def test_an_operation_that_decides_nothing_never_answers(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    made = over(gateway).get("/t/forgetful")
    assert made.status_code == 500
    assert b"secret" not in made.content
    assert "Undecided" in caplog.text


def test_a_public_operation_answers_without_a_credential_and_knows_nobody(gateway: Gateway) -> None:
    made = over(gateway).get("/t/public")
    assert (made.status_code, made.json()) == (200, {"caller": "anonymous"})


def test_a_fault_of_ours_shows_nothing_and_is_logged_by_its_request_id_without_content(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        made = over(gateway).request("GET", "/t/broken", headers={"X-Request-Id": "r-1"})
    assert made.json() == {
        "type": "urn:peergate:problem:internal-error",
        "title": "internal error",
        "status": 500,
        "detail": "the gateway failed on this request; the request id finds it in the server's own log",
    }
    [record] = caplog.records
    assert record.getMessage().startswith("request r-1 failed with RuntimeError\n")
    assert "in broken" in record.getMessage()
    assert WORDS not in caplog.text


def test_relaxed_records_are_in_the_log_by_the_time_it_closes(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", audit="relaxed")
    over(gateway).request("PUT", "/t/strict", {"a": 1}, {"X-Request-Id": "r"})
    services = gateway.services
    gateway.close()
    again = Database.open(services.settings.data)
    found = again.read_sync(lambda rows: rows.all("SELECT action, outcome FROM log WHERE request_id = $1", "r"))
    again.close()
    assert found == [("audit.verify", "allow")]


@pytest.mark.parametrize("audit", ["durable", "relaxed"])
def test_when_the_log_cannot_be_written_there_is_no_answer(tmp_path: Path, audit: str) -> None:
    gateway = Gateway(tmp_path / "data", audit=audit)
    owner = over(gateway)
    gateway.close()
    for path in ("/t/conflicting", "/t/mirror/7/facts/k", "/t/broken"):
        made = owner.get(path)
        assert (made.status_code, made.headers["retry-after"], made.json()["title"]) == (503, "1", "unavailable")
    assert (owner.http.get("/health").status_code, owner.http.get("/health").json()) == (503, {"status": "failing"})


def test_a_credential_over_its_rate_is_told_when_to_come_back_and_others_are_not(gateway: Gateway) -> None:
    signer = gateway.services.authenticator.signer
    limited = Authenticator(signer, gateway.services.state, rate_limit=2)
    owner = over(gateway, replace(gateway.services, authenticator=limited))
    assert [owner.delete("/t/nothing").status_code for _ in range(2)] == [204, 204]
    refused = owner.delete("/t/nothing")
    assert (refused.status_code, refused.headers["retry-after"], refused.json()["title"]) == (429, "30", "too many requests")
    assert replace(gateway.admin, http=owner.http).delete("/t/nothing").status_code == 204
    assert owner.http.delete("/t/nothing").status_code == 401


def test_whoever_shows_no_good_credential_is_counted_by_address_and_a_good_one_never_is(gateway: Gateway) -> None:
    signer = gateway.services.authenticator.signer
    limited = Authenticator(signer, gateway.services.state, rate_limit=0, address_limit=2)
    owner = over(gateway, replace(gateway.services, authenticator=limited))
    wrong = [{}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic x"}]
    answers = [owner.http.delete("/t/nothing", headers=headers) for headers in wrong]
    assert [made.status_code for made in answers] == [401, 401, 429]
    assert (answers[2].headers["retry-after"], answers[2].json()["title"]) == ("30", "too many requests")
    assert [owner.http.get("/t/public").status_code for _ in range(3)] == [200, 200, 429]
    assert [owner.http.get("/health/live").status_code for _ in range(3)] == [200, 200, 429]
    assert [owner.delete("/t/nothing").status_code for _ in range(5)] == [204] * 5


def test_one_request_too_many_at_once_is_told_to_come_back(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONCURRENT_REQUESTS", 0)
    made = over(gateway).get("/t/public")
    assert (made.status_code, made.headers["retry-after"]) == (503, "1")


def test_a_request_that_waited_long_for_its_turn_is_told_to_come_back(gateway: Gateway) -> None:
    app = create_app(gateway.services, OPERATIONS)
    waited = [limits.TURN_SECONDS + 1, 0.0]

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, QUEUED: perf_counter() - waited.pop(0)}, receive, send)

    http = TestClient(behind)
    shed, answered = http.get("/t/public"), http.get("/t/public")
    assert (shed.status_code, shed.headers["retry-after"], answered.status_code) == (503, "1", 200)
    assert shed.json()["detail"] == "too many requests came before this one; try again"


def test_the_application_takes_part_in_a_lifespan_and_takes_no_websocket(gateway: Gateway) -> None:
    app = create_app(gateway.services, ())

    async def talk(kind: str, *received: str) -> list[str]:
        inbox, outbox = list(received), []

        async def receive() -> Message:
            return {"type": inbox.pop(0)}

        async def send(message: Message) -> None:
            outbox.append(message["type"])

        await app({"type": kind}, receive, send)
        return outbox

    assert asyncio.run(talk("lifespan", "lifespan.startup", "lifespan.shutdown")) == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert asyncio.run(talk("websocket", "websocket.connect")) == ["websocket.close"]


def test_a_client_that_leaves_while_sending_gets_no_answer_and_leaves_no_record(gateway: Gateway) -> None:
    app = create_app(gateway.services, OPERATIONS)
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/t/mirror",
        "raw_path": b"/t/mirror",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {gateway.owner.key}".encode())],
        "client": None,
    }
    assert new_rows(gateway, lambda: asyncio.run(app(scope, receive, send))) == []
    assert sent == []


def slowly(gateway: Gateway, client: Client, path: str, body: bytes, meanwhile: Callable[[], object]) -> int:
    """The status of a request whose body ends after something else has happened."""
    app = create_app(gateway.services, (*OPERATIONS, *PRODUCT))
    statuses: list[int] = []
    parts = [(body[:1], True), (body[1:], False)]

    async def receive() -> Message:
        part, more = parts.pop(0)
        if not more:
            await asyncio.to_thread(meanwhile)
        return {"type": "http.request", "body": part, "more_body": more}

    async def send(message: Message) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    headers = [(b"authorization", f"Bearer {client.key}".encode()), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "client": None}
    asyncio.run(app({**scope, "headers": headers}, receive, send))
    [status] = statuses
    return status


def test_a_lease_that_ends_while_a_body_arrives_has_ended(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer()
    lease = {"agent_id": agent.id, "observer_expires_at": stamp(gateway.clock.now + timedelta(seconds=10))}
    done(gateway.owner.put(f"/v1/peers/{peer['id']}/observers", {"observers": [lease]}), 200)
    posting = (gateway, agent, f"/v1/peers/{peer['id']}/events", b'{"event_type": "message", "content": {}}')
    assert slowly(*posting, lambda: gateway.clock.advance(timedelta(seconds=9))) == 201
    assert slowly(*posting, lambda: gateway.clock.advance(timedelta(seconds=1))) == 403


def test_a_key_that_is_revoked_while_a_body_arrives_is_no_good(gateway: Gateway) -> None:
    agent = gateway.agent()
    rotate = f"/v1/agents/{agent.id}/rotate-key"
    assert slowly(gateway, agent, "/t/mirror", b"{}", lambda: done(gateway.owner.post(rotate), 200)) == 401


def test_a_token_is_no_good_once_its_key_has_ended_while_a_body_arrives(gateway: Gateway) -> None:
    agent, peer = gateway.agent(), gateway.peer()
    observers = {"observers": [{"agent_id": agent.id}]}
    done(gateway.owner.put(f"/v1/peers/{peer['id']}/observers", observers), 200)
    token = done(gateway.http.post("/v1/auth/agent-token", json={"api_key": agent.key}), 200)["access_token"]
    ends = stamp(gateway.clock.now + timedelta(seconds=10))
    done(gateway.owner.patch(f"/v1/agents/{agent.id}", {"api_key_expires_at": ends}), 200)
    event = b'{"event_type": "message", "content": {}}'
    posting = (gateway, replace(agent, key=token), f"/v1/peers/{peer['id']}/events", event)
    assert slowly(*posting, lambda: gateway.clock.advance(timedelta(seconds=9))) == 201
    assert slowly(*posting, lambda: gateway.clock.advance(timedelta(seconds=1))) == 401


def test_an_operation_may_take_larger_bodies_than_others(gateway: Gateway) -> None:
    large = {"a": "x" * 300_000}
    owner = over(gateway)
    assert [owner.post(path, large).status_code for path in ("/t/mirror", "/t/large")] == [413, 201]
    refused = owner.post("/t/large", {"a": "x" * 600_000})
    assert (refused.status_code, refused.json()["detail"]) == (413, "the body is over the limit of 512 KiB")
