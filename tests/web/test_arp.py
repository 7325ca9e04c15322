"""The dialect of the bridge's paths: how each refusal looks there, and that it is spoken nowhere else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from starlette.testclient import TestClient

from gateway.errors import (
    Conflict,
    Forbidden,
    GatewayError,
    Invalid,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from gateway.operations.call import Call
from gateway.operations.obligations import Unsatisfiable
from gateway.operations.operation import Operation, Reply
from gateway.operations.registry import OPERATIONS
from gateway.store.rows import Tx
from gateway.store.writer import Unit
from gateway.web import arp
from gateway.web.app import create_app
from gateway.web.problems import Broken, TooSlow, WrongMethod
from tests.builders import Gateway

NOT_FOUND = b'{"ok":false,"error":"not_found"}'
UNAUTHORIZED = b'{"ok":false,"error":"unauthorized"}'


@pytest.mark.parametrize(
    ("error", "word", "headers"),
    [
        (Invalid("`a` is wrong", field="a"), "bad_request", {}),
        (WrongMethod("PUT", ("POST",)), "bad_request", {b"allow": b"POST"}),
        (TooSlow("slow"), "bad_request", {}),
        (Conflict("busy"), "bad_request", {}),
        (TooLarge("large"), "bad_request", {}),
        (Forbidden("no", decision_id="d"), "forbidden", {}),
        (Unsatisfiable("what"), "obligation_unsatisfiable", {}),
        (TooManyRequests("slower", retry_after=7, by="grant"), "rate_limited", {b"retry-after": b"7"}),
        (Broken(), "internal", {}),
        (Unavailable("later", retry_after=0), "internal", {b"retry-after": b"1"}),
    ],
)
def test_an_error_is_a_word_and_its_sentence(error: GatewayError, word: str, headers: dict[bytes, bytes]) -> None:
    made = arp.refusal(error)
    assert made.body is not None
    assert json.loads(made.body) == {"ok": False, "error": word, "reason": error.detail}
    assert (made.status, dict(made.headers)) == (error.status, headers)


def test_what_must_not_tell_one_cause_from_another_has_no_sentence() -> None:
    for error in (NotFound(), NotFound("there is no such method")):
        assert (arp.refusal(error).status, arp.refusal(error).body) == (404, NOT_FOUND)
    made = arp.refusal(Unauthenticated())
    assert (made.status, made.body, made.headers) == (401, UNAUTHORIZED, ((b"www-authenticate", b"Bearer"),))


@pytest.mark.parametrize("path", ["/api/arp/none", "/api/arp/", "/api/%61rp/none", "/api/arp/notes.search/", "/api/arp//x"])
def test_a_path_beside_the_routes_is_a_404_of_the_dialect(gateway: Gateway, path: str) -> None:
    made = gateway.http.post(path)
    assert (made.status_code, made.content) == (404, NOT_FOUND)


@pytest.mark.parametrize("path", ["/api/arp", "/api/none", "/api/web/chat/x", "/v1/api/arp/none", "/"])
def test_every_other_path_speaks_problem_details(gateway: Gateway, path: str) -> None:
    assert gateway.http.post(path).json()["title"] == "not found"


@pytest.mark.parametrize("path", ["/api/arp/notes.search", "/api/arp/notes.read", "/api/arp/knowledge.query", "/api/web/chat"])
def test_the_layers_before_an_operation_speak_it_too(gateway: Gateway, path: str) -> None:
    made = gateway.http.get(path)
    assert (made.status_code, made.json()["error"], made.headers["allow"]) == (405, "bad_request", "POST")
    for headers in ({}, {"Authorization": "Bearer pgb_none"}, {"Authorization": "Basic x"}):
        made = gateway.http.post(path, headers=headers, content=b"{")
        assert (made.status_code, made.content) == (401, UNAUTHORIZED)


def test_a_body_that_is_too_large_or_no_json_is_a_bad_request(gateway: Gateway) -> None:
    for content, status in ((b'{"a": "' + b"x" * 300_000 + b'"}', 413), (b"{", 400), (b'{"a": 1, "a": 1}', 400), (b"[]", 400)):
        headers = {"Authorization": f"Bearer {gateway.owner.key}", "Content-Type": "application/json"}
        made = gateway.http.post("/api/arp/notes.read", headers=headers, content=content)
        assert (made.status_code, made.json()["ok"], made.json()["error"]) == (status, False, "bad_request")


def test_a_fault_of_ours_is_internal_and_says_nothing_of_it(gateway: Gateway) -> None:
    async def broken(_: Call) -> Reply:
        raise RuntimeError("what a person wrote")

    operation = Operation("t", "POST", "/api/arp/broken", "", broken, public="a test says so")
    made = TestClient(create_app(gateway.services, (*OPERATIONS, operation))).post("/api/arp/broken")
    assert (made.status_code, made.json()["error"]) == (500, "internal")
    assert "wrote" not in made.text


def test_health_is_public_and_says_what_may_be_asked_for(gateway: Gateway) -> None:
    made = gateway.http.get("/api/arp/health")
    assert (made.status_code, made.json()) == (
        200,
        {"ok": True, "endpoints": ["notes.search", "notes.read", "knowledge.query"]},
    )
    assert gateway.http.get("/api/arp/health?x=1").status_code == 400


def test_health_is_not_well_when_the_store_is_lost(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data")
    database = gateway.services.database

    def vanish(_: Tx) -> None:
        database.files.database.unlink()
        database.files.wal.unlink(missing_ok=True)
        raise duckdb.FatalException("gone")

    database.write(Unit(vanish)).exception()
    made = gateway.http.get("/api/arp/health")
    assert (made.status_code, made.json()["ok"], made.json()["error"]) == (503, False, "internal")
    gateway.close()


def test_an_unread_operation_looks_at_nothing_but_the_credential(gateway: Gateway) -> None:
    async def deaf(call: Call) -> Reply:
        call.access.authorize(call.session, "audit.verify", call.org)
        return Reply(None, text=("text/plain; charset=utf-8", f"é {dict(call.query.members)} {dict(call.body.members)}"))

    operation = Operation("t", "POST", "/t", "", deaf, actions=("audit.verify",), unread=True)
    owner = replace(gateway.owner, http=TestClient(create_app(gateway.services, (operation,))))
    for content, query in ((b"", ""), (b"{}", "?a=%"), (b'{"a": 1', "?a=1&a=2"), (b"x" * 3_000_000, "?%FF")):
        made = owner.http.post(f"/t{query}", content=content, headers={"Authorization": f"Bearer {owner.key}"})
        assert (made.status_code, made.text, made.headers["content-type"]) == (200, "é {} {}", "text/plain; charset=utf-8")
        assert made.headers["content-length"] == str(len(made.content))
