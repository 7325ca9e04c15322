"""Transport: what a request has to be, and what an error says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.authn.throttle import RateLimiter
from tests.authzen.asking import BATCH, PATHS, RESOURCES, SINGLE, SUBJECTS, Body, Pep, asked, without
from tests.builders import Gateway, done

every = pytest.mark.parametrize("path", PATHS)


@every
def test_calls_are_posts(gateway: Gateway, path: str) -> None:
    refused = gateway.owner.get(path)
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


@every
@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/x-www-form-urlencoded", ""])
def test_another_content_type_is_a_bad_request(pep: Pep, path: str, kind: str) -> None:
    refused = pep.raw(json.dumps(asked()).encode(), path, Content_Type=kind)
    assert refused.status_code == 400
    assert "content-type" in refused.json()["detail"]


@every
def test_so_is_none_at_all(gateway: Gateway, path: str) -> None:
    headers = {"Authorization": f"Bearer {gateway.owner.key}"}
    refused = gateway.http.post(path, content=json.dumps(asked()).encode(), headers=headers)
    assert refused.status_code == 400
    assert "content-type" in refused.json()["detail"]


@every
def test_json_with_a_charset_is_taken(pep: Pep, path: str) -> None:
    assert pep.raw(json.dumps(asked()).encode(), path, Content_Type="application/json; charset=utf-8").status_code == 200


@every
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"7", b"null", b"[{}]", b"\xff"])
def test_a_body_that_is_no_object_is_a_bad_request(pep: Pep, path: str, body: bytes) -> None:
    assert pep.raw(body, path).status_code == 400


@every
def test_an_answer_is_json(pep: Pep, path: str) -> None:
    answered = pep.client.post(path, asked())
    assert (answered.status_code, answered.headers["content-type"]) == (200, "application/json")


@every
@pytest.mark.parametrize(
    "changed", [{"subject": "cleo"}, {"resource": 7}, {"subject": ["a"]}, {"subject": {"type": 1, "id": "a"}}]
)
def test_a_member_of_the_wrong_type_is_a_bad_request(pep: Pep, path: str, changed: Body) -> None:
    refused = pep.client.post(path, asked() | changed)
    assert refused.status_code == 400
    assert next(iter(changed)) in refused.json()["detail"]


@pytest.mark.parametrize("path", [SINGLE, BATCH, SUBJECTS, RESOURCES])
def test_a_name_that_is_a_number_is_a_bad_request(pep: Pep, path: str) -> None:
    refused = pep.client.post(path, asked() | {"action": {"name": 7}})
    assert refused.status_code == 400
    assert refused.json()["fields"] == {"action.name": "`action.name` must be a string, got `7`"}


def test_members_that_are_not_known_are_ignored_anywhere(pep: Pep) -> None:
    body = asked(more={"deep": [1]})
    for member in ("subject", "action", "resource"):
        body[member] |= {"colour": "blue", "nested": {"a": [None]}}
    assert pep.decision(body) is True


def test_the_order_of_members_means_nothing(pep: Pep) -> None:
    body = asked("ben", "read", "roadmap", context={"network": "10.0.0.1"})
    turned = {name: dict(reversed(body[name].items())) for name in reversed(body)}
    assert pep.decision(body) is pep.decision(turned) is True


def test_a_deny_is_a_success_and_no_error(pep: Pep) -> None:
    answered = pep.client.post(SINGLE, asked("nobody"))
    assert (answered.status_code, answered.json()) == (200, {"decision": False})


@every
def test_without_a_credential_nothing_is_answered(gateway: Gateway, path: str) -> None:
    refused = gateway.http.post(path, json=asked())
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert isinstance(refused.json()["detail"], str)


@every
def test_errors_have_a_sentence_and_no_decision(gateway: Gateway, path: str) -> None:
    forbidden, malformed = gateway.agent("an agent").post(path, asked()), gateway.owner.post(path, {})
    assert (forbidden.status_code, malformed.status_code) == (403, 400)
    for refused in (forbidden, malformed):
        assert isinstance(refused.json()["detail"], str)
        assert "decision" not in refused.json()


@every
@pytest.mark.parametrize("sent", ["a-b.c:1", "with spaces, commas; and {braces}", "x" * 2_000, '"quoted"'])
def test_any_request_id_comes_back_as_it_was_sent(gateway: Gateway, path: str, sent: str) -> None:
    header = {"X-Request-ID": sent.encode("latin-1"), "Authorization": f"Bearer {gateway.owner.key}".encode()}
    for body in (asked(), {}):
        answered = gateway.http.post(path, json=body, headers=header)  # type: ignore[arg-type]
        assert dict(answered.headers.raw)[b"x-request-id"] == sent.encode("latin-1")


async def sent_back(gateway: Gateway, request_id: bytes) -> bytes:
    """The id that comes back with an answer, without a client between."""
    answers: list[Any] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        answers.append(message)

    headers = [(b"x-request-id", request_id), (b"content-type", b"application/json"), (b"content-length", b"2")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": SINGLE,
        "raw_path": SINGLE.encode(),
        "query_string": b"",
        "headers": headers,
    }
    await gateway.http.app(scope, receive, send)
    return dict(answers[0]["headers"])[b"x-request-id"]


@pytest.mark.parametrize("sent", ["été".encode(), "été".encode("latin-1"), b"", b"\x80\xff"])
def test_a_request_id_comes_back_byte_for_byte(gateway: Gateway, sent: bytes) -> None:
    assert asyncio.run(sent_back(gateway, sent)) == sent


def test_a_request_without_an_id_gets_one(gateway: Gateway) -> None:
    answered = gateway.owner.post(SINGLE, asked())
    assert answered.status_code == 200
    assert answered.headers["x-request-id"]


def test_an_id_that_is_not_safe_to_show_is_in_no_row_of_the_log(gateway: Gateway, pep: Pep) -> None:
    done(pep.client.post(SINGLE, asked(), {"X-Request-ID": "a strange {id}"}), 200)
    count = "SELECT count(*) FROM log WHERE request_id LIKE '%strange%'"
    assert gateway.services.database.read_sync(lambda rows: rows.value(count)) == 0


def test_elsewhere_such_an_id_is_not_echoed(gateway: Gateway) -> None:
    answered = gateway.owner.request("GET", "/v1/org/settings", headers={"X-Request-ID": "a strange {id}"})
    assert answered.headers["x-request-id"] != "a strange {id}"


@every
@pytest.mark.parametrize(
    "text",
    [
        b'"subject": {"type": "user", "id": "a", "id": "b"}',
        rb'"subject": {"type": "user", "id": "\ud800"}',
        b'"subject": {"type": "user", "id": "a", "properties": {"x": NaN}}',
        b'"subject": {"type": "user", "id": "a", "properties": {"x": 1e999}}',
        b'"subject": {"type": "user", "id": "a", "properties": {"__entity": {"type": "User", "id": "ada"}}}',
        b'"subject": {"type": "user", "id": "a", "properties": {"x": {"__extn": {"fn": "decimal", "arg": "1.0"}}}}',
        b'"context": {"x": [{"__expr": "1"}]}',
        b'"context": ' + b'{"a": ' * 60 + b"1" + b"}" * 60,
        b'"context": ' + b"[" * 60_000,
    ],
    ids=["duplicate", "surrogate", "nan", "number", "entity", "extension", "expression", "deep", "unclosed"],
)
def test_hostile_json_is_a_bad_request(pep: Pep, path: str, text: bytes) -> None:
    rest = json.dumps(without(without(asked(), "subject"), "resource")).encode()[1:]
    assert pep.raw(b"{" + text + b', "resource": {"type": "document", "id": "a"}, ' + rest, path).status_code == 400


def test_a_body_over_the_limit_is_refused_unread(pep: Pep) -> None:
    padding = {"padding": "x" * (300 * 1024)}
    assert pep.client.post(SINGLE, asked() | padding).status_code == 413
    assert pep.client.post(BATCH, asked() | padding).status_code == 200


def test_over_the_rate_limit_one_is_told_to_come_back(gateway: Gateway, pep: Pep) -> None:
    authenticator = gateway.services.authenticator
    before, authenticator.limiter = authenticator.limiter, RateLimiter(1)
    try:
        answered = [pep.client.post(SINGLE, asked()) for _ in range(2)]
    finally:
        authenticator.limiter = before
    assert [each.status_code for each in answered] == [200, 429]
    assert int(answered[1].headers["retry-after"]) >= 1
