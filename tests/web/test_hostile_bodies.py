"""Hostile bodies for every operation that reads one: a plain refusal, and nothing half done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from gateway.operations.operation import Operation
from gateway.operations.registry import OPERATIONS
from gateway.store.rows import Rows
from tests.builders import Client, Gateway, Response, done
from tests.web.samples import BODIES, FACT_KEY, RULES, body_of
from tests.web.test_routes import check_answer, decisions_of, named, reason

READING = [operation for operation in OPERATIONS if operation.fields]
#: Values by the JSON text they are sent as.
VALUES = {
    "a word": '"x"',
    "a number": "7",
    "a fraction": "7.5",
    "true": "true",
    "null": "null",
    "a list": "[1]",
    "an empty list": "[]",
    "an object": '{"$ne": ""}',
    "an empty object": "{}",
    "10^30": "1" + "0" * 30,
    "a negative number": "-1",
    "an endless fraction": "1e308",
    "an empty string": '""',
    "blanks": '"  \\t\\n"',
    "a long string": '"' + "é" * 100_000 + '"',
    "a right-to-left override": '"\\u202eabc"',
}
#: Values that no member anywhere may have.
NEVER = {
    "NaN": "NaN",
    "an infinity": "-Infinity",
    "an overflow": "1e999",
    "a long number": "9" * 5_000,
    "a lone surrogate": '"\\ud800"',
    "a lone surrogate inside": '{"a": ["\\udfff"]}',
    "a NUL": '"a\\u0000"',
    "a key twice": '{"a": 1, "a": 2}',
    "a hundred levels": "[" * 100 + "]" * 100,
    "an entity": '{"__entity": {"type": "Human", "id": "x"}}',
    "an extension": '{"a": [{"__extn": {"fn": "ip", "arg": "::1"}}]}',
    "an expression": '{"__expr": "true"}',
}
WHOLE = {
    "nothing but a type": (b"", "application/json", None),
    "an empty object": (b"{}", "application/json", None),
    "an array": (b"[]", "application/json", 400),
    "a string": (b'"x"', "application/json", 400),
    "null": (b"null", "application/json", 400),
    "half an object": (b'{"a": ', "application/json", 400),
    "no UTF-8": (b'{"a": "\xff"}', "application/json", 400),
    "a byte order mark": (b"\xef\xbb\xbf{}", "application/json", 400),
    "UTF-16": ("{}".encode("utf-16"), "application/json", 400),
    "a form": (b"a=b", "application/x-www-form-urlencoded", 400),
    "plain text": (b"{}", "text/plain", 400),
    "no type": (b"{}", None, 400),
    "a hundred levels": (b'{"a":' * 100 + b"1" + b"}" * 100, "application/json", 400),
    "only openings": (b"[" * 200_000, "application/json", 400),
}
#: Fields that take any object: what is inside is the caller's own.
FREE = {
    ("approval.request", "summary"),
    ("approval.request_alias", "summary"),
    ("platform.bootstrap", "parameters"),
}
#: Fields that take a second type, which older clients send.
ALSO = {("settings.update", flag): bool for flag, value in BODIES["settings.update"].items() if value in ("true", "false")}


def tables(rows: Rows) -> dict[str, int]:
    """The rows of every table but the log's own."""
    names = [name for (name,) in rows.all("SELECT table_name FROM duckdb_tables() ORDER BY table_name")]
    asked = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM \"{name}\"" for name in names if name not in ("log", "slices"))
    return dict(rows.all(asked))


class Scene:
    """A gateway with an object of every kind, so that a body meets more than a 404, and who may act on each."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        agent = gateway.agent(policy=RULES)
        peer = gateway.peer(observers=[agent])
        app = done(gateway.owner.post("/v1/org/platform-apps", {"name": "app", "slug": "app"}), 201)
        platform = Client(gateway.http, "platform", app["api_key"])
        user = done(platform.post("/v1/platform/users/upsert", {"email": "user@sample.example"}), 201)
        for event_id in ("one", "two", "three"):
            done(agent.post(f"/v1/peers/{peer['id']}/events", {**BODIES["peer.record_event"], "event_id": event_id}), 201)
        template = done(gateway.owner.post("/v1/org/platform-templates", BODIES["platform_template.create"]), 201)["template"]
        self.bodies = {"platform.bootstrap": {**BODIES["platform.bootstrap"], "template_id": template["id"]}}
        self.who: dict[str, Client] = {"approval.request": agent, "approval.request_alias": agent, "peer.record_event": agent}
        self.who |= {"peer.predict": agent, "platform.upsert_user": platform, "platform.bootstrap": platform}
        self.ids = {
            "{id}": peer["id"],
            "{agent_id}": gateway.agent("another", policy=RULES).id,
            "{approval_id}": done(agent.post("/v1/approvals/request", BODIES["approval.request"]), 202)["id"],
            "{key}": quote(FACT_KEY, safe=""),
            "{connection_id}": user["connection_id"],
        }

    def body(self, operation: Operation) -> dict[str, object]:
        return self.bodies.get(operation.name) or body_of(operation) or {}

    def path(self, operation: Operation) -> str:
        path = operation.path
        if operation.name.startswith("member."):
            path = path.replace("{id}", self.gateway.member.id)
        for name, found_id in self.ids.items():
            path = path.replace(name, found_id)
        return path

    def send(self, operation: Operation, request_id: str, body: bytes, kind: str | None = "application/json") -> Response:
        client = self.who.get(operation.name, self.gateway.owner)
        headers = {"Authorization": f"Bearer {client.key}", "X-Request-Id": request_id}
        if kind is not None:
            headers["Content-Type"] = kind
        return client.http.request(operation.method, self.path(operation), content=body, headers=headers)

    def counts(self) -> dict[str, int]:
        return self.gateway.services.database.read_sync(tables)


@pytest.fixture(scope="module")
def scene(gateway: Gateway) -> Scene:
    return Scene(gateway)


def with_member(body: dict[str, Any], field: str, text: str) -> bytes:
    texts = {name: json.dumps(value) for name, value in body.items()} | {field: text}
    members = [f"{json.dumps(name)}: {sent}" for name, sent in texts.items()]
    return ("{" + ", ".join(members) + "}").encode()


def altered(operation: Operation, body: dict[str, Any], values: dict[str, str]) -> Iterator[tuple[str, str, bytes]]:
    for field in operation.fields:
        for kind, text in values.items():
            yield field, kind, with_member(body, field, text)


@pytest.mark.parametrize("operation", READING, ids=named)
def test_a_value_that_no_member_may_have_is_a_400_that_changes_nothing(scene: Scene, operation: Operation) -> None:
    before = scene.counts()
    for field, kind, body in altered(operation, scene.body(operation), NEVER):
        made = scene.send(operation, "never", body)
        check_answer(made)
        assert made.status_code == 400, (field, kind, made.text)
    assert scene.counts() == before
    assert decisions_of(scene.gateway, "never") == 0


@pytest.mark.parametrize("operation", READING, ids=named)
def test_a_body_that_is_no_object_in_json_is_a_400_and_one_too_large_a_413(scene: Scene, operation: Operation) -> None:
    before = scene.counts()
    large = b'{"a": "' + b"x" * (operation.body_bytes + 44 * 1024) + b'"}'
    for what, (body, kind, status) in {**WHOLE, "over the limit of the operation": (large, "application/json", 413)}.items():
        made = scene.send(operation, "whole", body, kind)
        check_answer(made)
        if status is not None:
            assert made.status_code == status, (what, made.text)
        if made.status_code in (400, 413):
            assert scene.counts() == before, what
        else:
            before = scene.counts()


@pytest.mark.parametrize("operation", READING, ids=named)
def test_a_field_of_the_wrong_type_is_a_400_that_names_it_and_changes_nothing(scene: Scene, operation: Operation) -> None:
    sample = scene.body(operation)
    problems = []
    before = scene.counts()
    for index, (field, kind, body) in enumerate(altered(operation, sample, VALUES)):
        request_id = f"{operation.name}.{index}"
        made = scene.send(operation, request_id, body)
        check_answer(made)
        if made.status_code in (400, 413, 422):
            if scene.counts() != before:
                problems.append((field, kind, "changed something"))
            if wrong_type(sample.get(field), VALUES[kind]) and f"`{field}" not in reason(made):
                problems.append((field, kind, f"does not name it: {made.text[:200]}"))
            continue
        before = scene.counts()
        if operation.public is None and made.status_code != 401 and not decisions_of(scene.gateway, request_id):
            problems.append((field, kind, f"no decision: {made.status_code}"))
        taken = (operation.name, field) in FREE or ALSO.get((operation.name, field)) is type(json.loads(VALUES[kind]))
        if wrong_type(sample.get(field), VALUES[kind]) and not taken:
            problems.append((field, kind, f"{made.status_code} {made.text[:200]}"))
    assert problems == []


def wrong_type(right: object, text: str) -> bool:
    """Whether a JSON text is of another type than a right value, absent being right everywhere."""
    sent = json.loads(text)
    if sent is None or right is None:
        return False
    return type(sent) is not type(right)
