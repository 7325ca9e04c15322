"""Every route: in the table, closed without a credential, and never answered without a decision."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.operations.operation import Operation
from gateway.operations.registry import OPERATIONS
from gateway.web.app import OWN, Application, create_app
from gateway.web.routing import Router
from tests.builders import Client, Gateway, Response, done
from tests.web.samples import BODIES, OTHERWISE, SOME_ID, body_of

ALL = (*OWN, *OPERATIONS)
PUBLIC = Path(__file__).parent / "public_routes.json"


def path_of(operation: Operation, filling: str = SOME_ID) -> str:
    return re.sub(r"\{[a-z_]+\}", filling, operation.path)


def named(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


def decisions_of(gateway: Gateway, request_id: str) -> int:
    counted: int = gateway.services.database.read_sync(
        lambda rows: rows.value("SELECT count(*) FROM log WHERE request_id = $1 AND kind = 'decision'", request_id)
    )
    return counted


@pytest.fixture(scope="module")
def principals(gateway: Gateway) -> dict[str, Client]:
    """One of every kind of principal."""
    app = done(gateway.owner.post("/v1/org/platform-apps", {"name": "app", "slug": "app"}), 201)
    return {
        "owner": gateway.owner,
        "member": gateway.member,
        "auditor": gateway.auditor,
        "other owner": gateway.other_owner,
        "agent": gateway.agent(),
        "platform": Client(gateway.http, "platform", app["api_key"]),
    }


def test_every_route_of_the_application_is_in_the_table(gateway: Gateway) -> None:
    app = gateway.http.app
    assert isinstance(app, Application)
    assert [route.operation for route in app.routes] == list(ALL)
    assert [named(route.operation) for route in app.routes] == [f"{route.method} {route.path}" for route in app.routes]


def test_a_route_beside_the_table_would_be_seen(gateway: Gateway) -> None:
    beside = replace(OWN[0], path="/v1/beside")
    app = create_app(gateway.services, (*OPERATIONS, beside))
    assert [route.operation for route in app.routes if route.operation not in ALL] == [beside]


def test_an_operation_says_what_it_decides_or_why_it_is_public() -> None:
    assert [named(operation) for operation in OPERATIONS if bool(operation.actions) == (operation.public is not None)] == []
    names = [operation.name for operation in ALL]
    assert sorted(set(names)) == sorted(names)


def test_the_public_routes_are_the_ones_written_down_with_their_reasons() -> None:
    assert {named(o): o.public for o in ALL if o.public is not None} == json.loads(PUBLIC.read_text("utf-8"))


def test_every_operation_with_a_body_has_a_sample_with_every_field() -> None:
    shown = {name: set(body) | OTHERWISE.get(name, set()) for name, body in BODIES.items()}
    assert shown == {operation.name: set(operation.fields) for operation in ALL if operation.fields}


@pytest.mark.parametrize("operation", [o for o in ALL if o.public is None], ids=named)
def test_without_a_credential_it_is_a_401_before_anything_is_read(gateway: Gateway, operation: Operation) -> None:
    for headers in ({}, {"Authorization": "Bearer none"}, {"Authorization": "Basic none"}):
        made = gateway.http.request(operation.method, path_of(operation), headers=headers, content=b"{not json")
        check_answer(made)
        word = made.json()["error" if speaks_arp(made) else "title"]
        assert (made.status_code, word) == (401, "unauthorized" if speaks_arp(made) else "unauthenticated")


def calls(operation: Operation) -> Iterator[tuple[str, object]]:
    for filling in (SOME_ID, "not-an-id", "%2E%2F%7C"):
        yield path_of(operation, filling), body_of(operation)
        if "{" not in operation.path:
            return


@pytest.mark.parametrize("operation", [o for o in ALL if o.public is None], ids=named)
def test_an_answer_to_a_credential_left_a_decision_or_is_a_400(
    gateway: Gateway, principals: dict[str, Client], operation: Operation
) -> None:
    for who, client in principals.items():
        for index, (path, body) in enumerate(calls(operation)):
            request_id = f"{operation.name}.{who.replace(' ', '-')}.{index}"
            made = client.request(operation.method, path, body, {"X-Request-Id": request_id})
            check_answer(made)
            if made.status_code != 400:
                assert decisions_of(gateway, request_id) > 0, (who, path, made.status_code, made.text)


def speaks_arp(made: Response) -> bool:
    return made.request.url.path.startswith(("/api/arp/", "/api/web/"))


def reason(made: Response) -> str:
    """The sentence of a refusal."""
    sentence: str = made.json()["reason" if speaks_arp(made) else "detail"]
    return sentence


def check_answer(made: Response) -> None:
    """An answer is a success, or a problem with a sentence, and nothing that a client of this wire cannot take."""
    statuses = {200, 201, 202, 204, 400, 401, 403, 404, 409, 413, 429}
    assert made.status_code in statuses | ({422} if speaks_arp(made) else set()), (made.request.url, made.text)
    assert made.headers["cache-control"] == "no-store"
    assert made.headers["x-content-type-options"] == "nosniff"
    if made.status_code >= 400 and speaks_arp(made):
        assert made.json()["ok"] is False
        assert set(made.json()) == ({"ok", "error"} if made.status_code in (401, 404) else {"ok", "error", "reason"})
    elif made.status_code >= 400:
        problem = made.json()
        assert {type(problem[name]) for name in ("type", "title", "detail")} == {str}
        assert problem["status"] == made.status_code
        assert not {"resource_limit_exceeded", "approval_required"} & {problem["type"], problem["title"]}


def objects(operation: Operation) -> bool:
    return "{" in operation.path and operation.public is None


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if objects(o)], ids=named)
def test_an_unknown_object_and_one_of_another_organisation_are_the_same_bytes(
    gateway: Gateway, foreign: dict[str, str], operation: Operation
) -> None:
    for kind, found_id in foreign.items():
        answers = [
            gateway.owner.request(operation.method, path_of(operation, filling), body_of(operation), {"X-Request-Id": "r"})
            for filling in (found_id, SOME_ID, "not-an-id")
        ]
        assert len({(a.status_code, a.content, tuple(a.headers.items())) for a in answers}) == 1, (
            kind,
            [a.text for a in answers],
        )


@pytest.fixture(scope="module")
def foreign(gateway: Gateway) -> dict[str, str]:
    """Objects of another organisation, by kind."""
    other = gateway.other_owner
    agent = gateway.agent(by=other)
    peer = gateway.peer(person=other, observers=[agent], by=other)
    approval = done(agent.post("/v1/approvals/request", BODIES["approval.request"]), 202)
    decision = done(other.get("/v1/decisions"), 200)["decisions"][0]
    key = done(other.post("/v1/auth/api-keys", {"name": "k"}), 201)["key"]
    app = done(other.post("/v1/org/platform-apps", {"name": "app", "slug": "other"}), 201)
    template = done(other.post("/v1/org/platform-templates", {"name": "t", "agents": [{"name": "a"}]}), 201)["template"]
    platform = Client(gateway.http, "platform", app["api_key"])
    user = done(platform.post("/v1/platform/users/upsert", {"email": "user@other.example"}), 201)
    done(platform.post(f"/v1/platform/connections/{user['connection_id']}/bootstrap", {"template_id": template["id"]}), 201)
    return {
        "agent": agent.id,
        "peer": peer["id"],
        "human": other.id,
        "approval": approval["id"],
        "decision": decision["id"],
        "key": key["id"],
        "connection": user["connection_id"],
    }


def test_no_path_is_answered_by_two_operations_and_fixed_ones_win() -> None:
    router = Router(ALL)
    for operation in ALL:
        found = router.find(path_of(operation).encode())
        assert found is not None
        assert found[0][operation.method].operation is operation
