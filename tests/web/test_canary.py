"""A hidden row and every route: whoever holds the credential of a connection asks all there is, and it is in no answer.

And marked secrets through every route: neither they nor what was read are in the lines, the traces and the metrics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from gateway import spans
from gateway.model.memory import LAYERS
from gateway.operations.operation import Operation
from gateway.operations.registry import OPERATIONS
from gateway.web.app import OWN
from tests.builders import Client, Gateway, Response, done
from tests.operations.asking import stored
from tests.operations.connecting import connect
from tests.operations.memory_acts import MODES, allow_all, remember, shared
from tests.web.samples import body_of
from tests.web.told import Told

#: It is never sent: wherever it is, it was read. Every row is found by `QUERY`.
CANARY = "canary-5f0c"
QUERY = "tea secret"
#: In whatever is sent, wherever anything may be sent: nothing that is told of a request may hold it.
MARK = "mark-7d21"
#: Where fields are left out one after another, because a caller over a connection gets past some of the others.
CLOSE = ("/v1/memories", "/v1/connections", "/api/")
#: What keeps each canary from the connection.
HIDDEN: dict[str, dict[str, object]] = {
    "untagged": {},
    "of another project": {"project_id": "beta"},
    "of a tier that was not granted": {"project_id": "alpha", "classification": "pii"},
    "ended": {"project_id": "alpha", "expires_at": "2020-01-01T00:00:00Z"},
    "without the tag": {"project_id": "gamma", "tags": [f"{CANARY}-tag"]},
}


class Caged:
    """An agent with canaries of every kind in every layer, one row that is granted, and those who ask over a connection."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway, self.agent = gateway, gateway.agent()
        self.connection = connect(gateway, self.agent, "conn-1")
        allow_all(gateway, self.connection)
        allow_all(gateway, self.connection, "gamma", tags=["open"])
        self.shown = shared(self.agent, "tea for everybody")
        self.hidden = [
            remember(self.agent, f"tea secret {CANARY} {why}", layer=layer, **how)
            for layer in LAYERS
            for why, how in HIDDEN.items()
        ]
        retracted, superseded = (
            shared(self.agent, f"tea secret {CANARY} retracted"),
            shared(self.agent, f"tea secret {CANARY} superseded"),
        )
        done(self.agent.post(f"/v1/memories/{retracted['id']}/retract"), 200)
        shared(self.agent, "tea anew", supersedes=superseded["id"])
        shared(gateway.agent("another"), f"tea secret {CANARY} of another agent")
        self.hidden += [retracted, superseded]
        talk = done(self.agent.post("/v1/connections/conn-1/conversations"), 201)["token"]
        token = done(gateway.owner.post(f"/v1/agents/{self.agent.id}/bridge-token"), 201)["token"]
        self.callers = (self.connection, Client(gateway.http, "conn-1", talk), Client(gateway.http, self.agent.id, token))

    def paths(self, operation: Operation) -> Iterator[str]:
        """The path of an operation about a hidden row, the shown one and the connection, wherever an id goes."""
        ids = (self.hidden[0]["id"], self.shown["id"], "conn-1")
        for first in ids if "{" in operation.path else ids[:1]:
            half = re.sub(r"\{[a-z_]+\}", first, operation.path, count=1)
            for second in ids if "{" in half else ids[:1]:
                yield re.sub(r"\{[a-z_]+\}", second, half)

    def bodies(self, operation: Operation) -> Iterator[dict[str, object] | None]:
        """The sample of an operation, with what finds the canary in it, and without each of its fields."""
        sample = body_of(operation)
        if sample is None:
            yield None
            return
        hidden = self.hidden[2]["id"]
        full = {**sample, **{name: value for name, value in self.wishes(hidden).items() if name in operation.fields}}
        yield full
        for left_out in full if operation.path.startswith(CLOSE) and "{" not in operation.path else ():
            yield {name: value for name, value in full.items() if name != left_out}
        for mode in MODES if "mode" in operation.fields else ():
            yield {"query": QUERY, "project_id": "alpha", "mode": mode}
            yield {"query": QUERY, "mode": mode}
        if operation.path.startswith("/api/arp/"):
            named = {"connection_id": "conn-1", "source_did": "did:web:peer.example", "obligations": []}
            for project in ("alpha", "beta", "gamma"):
                yield {**named, "collection_id": project, "query": QUERY}
            for row in (*self.hidden, self.shown) if "source_path" in operation.fields else ():
                yield {**named, "collection_id": "alpha", "source_path": row["id"]}

    @staticmethod
    def wishes(hidden: str) -> dict[str, object]:
        wished: dict[str, object] = dict.fromkeys(("id", "source_path", "supersedes"), hidden)
        return {**wished, "query": QUERY, "derived_from": [hidden], "source_did": "did:web:peer.example"}

    def queries(self, operation: Operation) -> Iterator[dict[str, object]]:
        """Nothing asked in the query string, then one thing."""
        yield {}
        for name in operation.query if operation.path.startswith(CLOSE) else ():
            for value in ("alpha", "beta", "all", "search", "remember"):
                yield {name: value}


@pytest.fixture(scope="module")
def caged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caged]:
    gateway = Gateway(tmp_path_factory.mktemp("caged") / "data", audit="relaxed")
    yield Caged(gateway)
    gateway.close()


@pytest.fixture(scope="module")
def told(caged: Caged) -> Iterator[Told]:
    """Everything that is told of requests from here on."""
    made = Told(caged.gateway.http.app)
    yield made
    made.end()


@pytest.fixture(scope="module")
def asked(caged: Caged, told: Told) -> list[tuple[str, Response]]:
    """Every answer that whoever asks over a connection gets to anything, by operation."""
    answers = []
    for operation in sorted(OPERATIONS, key=lambda operation: operation.name == "session.end"):
        for who in caged.callers if operation.path.startswith(CLOSE) else caged.callers[:1]:
            for path in caged.paths(operation):
                for body in caged.bodies(operation):
                    for query in caged.queries(operation):
                        made = who.request(operation.method, path, body, **query)
                        answers.append((operation.name, made))
    return answers


def test_a_hidden_row_is_in_no_answer_of_any_route(asked: list[tuple[str, Response]]) -> None:
    assert {name for name, _ in asked} == {operation.name for operation in OPERATIONS}
    assert [(name, made.request.url, made.text) for name, made in asked if CANARY in made.text] == []


def test_the_walk_reaches_every_route_that_shows_a_connection_rows(asked: list[tuple[str, Response]]) -> None:
    showing = {"memory.list", "memory.search", "memory.read", "memory.query"}
    showing |= {"arp.search_notes", "arp.read_note", "arp.query_knowledge"}
    assert {name for name, made in asked if "tea for everybody" in made.text} == showing


def test_the_walk_finds_the_canary_where_it_may_be_seen(caged: Caged) -> None:
    found = set()
    for operation in OPERATIONS:
        if operation.method == "GET" and operation.path.startswith(CLOSE):
            for path in caged.paths(operation):
                found |= {operation.name for query in caged.queries(operation) if CANARY in caged.agent.get(path, **query).text}
    assert found == {"memory.list", "memory.list_untagged", "memory.read"}


def test_nothing_was_changed_on_the_way(caged: Caged, asked: list[tuple[str, Response]]) -> None:
    rows = stored(caged.gateway, "SELECT count(*) FROM memories WHERE strpos(text, $1) > 0", CANARY)
    assert (rows, bool(asked)) == ([(len(caged.hidden) + 1,)], True)
    assert json.loads(caged.agent.get(f"/v1/memories/{caged.shown['id']}").text)["memory"] == caged.shown


def marked(operation: Operation) -> Iterator[dict[str, object] | None]:
    """The sample of an operation with a mark in the place of every text, then of one text after the other."""
    sample = body_of(operation)
    if sample is None:
        yield None
        return
    texts = [name for name, value in sample.items() if isinstance(value, str | list | dict)]
    yield {name: MARK if name in texts else value for name, value in sample.items()}
    for name in texts if not operation.path.startswith("/v1/admin") else ():
        yield {**sample, name: MARK}


@pytest.fixture(scope="module")
def sent(caged: Caged, asked: list[tuple[str, Response]], told: Told) -> dict[str, set[int]]:
    """The statuses of every operation to whoever sends marks in its path, its query, its body and its headers."""
    answered: dict[str, set[int]] = {}
    headers = {"X-Auth-Confirm": MARK, "Idempotency-Key": MARK, "X-Forwarded-For": MARK, "User-Agent": MARK, "Cookie": MARK}
    for operation in sorted((*OWN, *OPERATIONS), key=lambda operation: operation.name == "session.end"):
        path = re.sub(r"\{[a-z_]+\}", MARK, operation.path)
        query = {name: MARK for name in (*operation.query, MARK)}
        for who in (caged.gateway.owner, caged.agent, Client(caged.gateway.http, "", f"ocv_{MARK}")):
            for body in marked(operation):
                made = who.request(operation.method, path, body, headers, **query)
                answered.setdefault(operation.name, set()).add(made.status_code)
    caged.gateway.http.get(f"/{MARK}/{MARK}?{MARK}={MARK}")
    return answered


def test_nothing_that_is_told_of_a_request_holds_what_was_sent_or_read(
    caged: Caged, asked: list[tuple[str, Response]], sent: dict[str, set[int]], told: Told
) -> None:
    assert sent.keys() == {operation.name for operation in (*OWN, *OPERATIONS)}
    assert {status for statuses in sent.values() for status in statuses} >= {200, 201, 400, 401, 403, 404}
    hidden = [str(row["id"]) for row in (*caged.hidden, caged.shown)]
    secrets = [MARK, CANARY, QUERY, "tea for everybody", "conn-1", caged.agent.id, *hidden]
    secrets += [who.key for who in (*caged.callers, caged.agent, caged.gateway.owner)]
    texts = {**told.texts(), "metrics": caged.gateway.auditor.get("/metrics").text}
    for name, text in texts.items():
        assert text, name
        assert [secret for secret in secrets if secret in text] == [], name


def test_a_secret_that_was_told_would_be_found(told: Told) -> None:
    with spans.span("request") as made:
        made.set(operation="canary-of-a-span")
    assert "canary-of-a-span" in told.texts()["traces"]
