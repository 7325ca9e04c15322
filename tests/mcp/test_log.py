"""What a call of a tool leaves in the log is what the same act over HTTP leaves; and no log has what was said."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.builders import Client, Response, done
from tests.mcp.acts import PAYLOAD, REQUEST
from tests.mcp.served import Served
from tests.operations.memory_acts import shared

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NONE = "00000000-0000-4000-8000-000000000000"
EVENT = {"event_type": "approval", "content": {"action": "refund.create", "decision": "approved", "payload": PAYLOAD}}

#: For each act: its method and path, its body, the tool and its arguments. Names in braces are filled in.
ACTS: dict[str, tuple[str, object, str, dict[str, object]]] = {
    "a context": ("GET /v1/agents/{agent}/peer-context?budget=150", None, "get_peer_context", {"budget": 150}),
    "a context of another": ("GET /v1/agents/{other}/peer-context", None, "get_peer_context", {"agent_id": "{other}"}),
    "a context of nobody": (f"GET /v1/agents/{NONE}/peer-context", None, "get_peer_context", {"agent_id": NONE}),
    "an event": ("POST /v1/peers/{peer}/events", EVENT, "record_event", {"peer_id": "{peer}", **EVENT}),
    "an event of no peer": (f"POST /v1/peers/{NONE}/events", EVENT, "record_event", {"peer_id": NONE, **EVENT}),
    "a prediction": (
        "POST /v1/peers/{peer}/predict-approval",
        {"action_type": "refund.create", "payload": PAYLOAD, "effective_risk_tier": 1},
        "predict_approval",
        {"peer_id": "{peer}", "action_type": "refund.create", "payload": PAYLOAD},
    ),
    "a request": ("POST /v1/approvals/request", REQUEST, "request_approval", {**REQUEST}),
    "a request that is refused": (
        "POST /v1/approvals/request",
        {**REQUEST, "action": "policy_change"},
        "request_approval",
        {**REQUEST, "action": "policy_change"},
    ),
    "a status": ("GET /v1/approvals/{approval}/status", None, "get_approval_status", {"approval_id": "{approval}"}),
    "a status of another's": ("GET /v1/approvals/{foreign}/status", None, "get_approval_status", {"approval_id": "{foreign}"}),
    "a list": ("GET /v1/approvals?limit=20&status=pending", None, "list_approvals", {"status": "pending"}),
    "a withdrawal": ("POST /v1/approvals/{cancelled}/cancel", {}, "cancel_approval", {"approval_id": "{cancelled}"}),
    "a memory": ("POST /v1/memories", {"text": "tea", "tags": ["t"]}, "remember", {"text": "tea", "tags": ["t"]}),
    "a search": ("POST /v1/memories/search", {"query": "tea"}, "memory_search", {"query": "tea"}),
    "a search of another": (
        "POST /v1/memories/search",
        {"query": "tea", "agent_id": "{other}"},
        "memory_search",
        {"query": "tea", "agent_id": "{other}"},
    ),
    "a reading": ("GET /v1/memories/{memory}", None, "memory_read", {"memory_id": "{memory}"}),
    "a reading of nothing": (f"GET /v1/memories/{NONE}", None, "memory_read", {"memory_id": NONE}),
    "passages": (
        "POST /v1/memories/query",
        {"query": "tea", "project_id": "alpha"},
        "memory_query",
        {"query": "tea", "project_id": "alpha"},
    ),
}


@pytest.fixture(scope="module")
def ids(gateway: Served, agent: Client, peer: dict[str, Any]) -> dict[str, str]:
    other = gateway.agent("another")
    asked = [done(who.post("/v1/approvals/request", REQUEST), 202)["id"] for who in (agent, agent, other)]
    done(agent.post(f"/v1/approvals/{asked[1]}/cancel"), 200)
    named = dict(zip(("approval", "cancelled", "foreign"), asked, strict=True))
    return {**named, "agent": agent.id, "other": other.id, "peer": peer["id"], "memory": shared(agent, "tea for two")["id"]}


def filled(value: Any, ids: dict[str, str]) -> Any:
    match value:
        case str():
            return value.format(**ids)
        case dict():
            return {name: filled(member, ids) for name, member in value.items()}
    return value


def comparable(gateway: Served, request_id: str, known: dict[str, str]) -> list[str]:
    """The rows of a request without what no two requests share."""
    keep = {*known.values(), NONE, *(org for org in gateway.services.state.orgs), *gateway.services.state.humans}
    rows = (str(row).replace(request_id, "R") for row in gateway.rows(request_id))
    return [UUID.sub(lambda found: found[0] if found[0] in keep else "*", row) for row in rows]


@pytest.mark.parametrize("act", ACTS)
def test_a_tool_leaves_the_rows_of_the_same_act_over_http(gateway: Served, agent: Client, ids: dict[str, str], act: str) -> None:
    asked, body, tool, arguments = ACTS[act]
    method, path = filled(asked, ids).split()
    number = [*ACTS].index(act)
    over_http, over_mcp = f"http.{number}", f"mcp.{number}"
    path, _, query = path.partition("?")
    first = agent.request(method, path, filled(body, ids), {"X-Request-Id": over_http}, **dict(parse_qsl(query)))
    second = gateway.call(agent, tool, filled(arguments, ids), x_request_id=over_mcp)
    assert first.is_success == (not second.failed) or act == "a context of nobody"
    rows = comparable(gateway, over_http, ids)
    assert rows
    assert comparable(gateway, over_mcp, ids) == rows
    if not first.is_success and second.failed:
        assert_same_refusal(first, second.data)


def assert_same_refusal(over_http: Response, over_mcp: dict[str, Any]) -> None:
    told = over_http.json()
    assert {**over_mcp, "decision_id": None} == {**told, "decision_id": None}
    assert ("decision_id" in over_mcp) == ("decision_id" in told)


def test_no_log_line_holds_a_key_or_what_was_said(
    gateway: Served, agent: Client, ids: dict[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "canary-77"
    notification = json.dumps({"jsonrpc": "2.0", "method": said}).encode()
    caplog.set_level(logging.DEBUG)
    calls: list[Callable[[], object]] = [
        lambda: gateway.call(agent, "remember", {"text": said}),
        lambda: gateway.call(agent, "memory_search", {"query": said, "colour": said}),
        lambda: gateway.post(agent.key, "tools/call", {"name": said, "arguments": {said: said}}),
        lambda: gateway.post(agent.key, "tools/call", {"name": {"a": said}, "arguments": {}}),
        lambda: gateway.post(agent.key, said, {said: said}),
        lambda: gateway.send(agent.key, said.encode()),
        lambda: gateway.send(agent.key, notification, mcp_protocol_version="2026-07-28"),
        lambda: gateway.send(f"ocv_{said}", b"{}"),
        lambda: gateway.send(agent.key, b"{}", mcp_session_id=said, host=said, origin=said),
    ]
    for call in calls:
        call()

    def broken(*_: object, **__: object) -> None:
        raise ValueError(said)

    monkeypatch.setattr("gateway.mcp.surface.dispatch", broken)
    made = gateway.call(agent, "memory_search", {"query": said}, x_request_id="broken")
    assert (made.failed, made.data["status"], made.data["title"]) == (True, 500, "internal error")
    assert said not in str(made)
    monkeypatch.undo()
    lines = [*(record.getMessage() for record in caplog.records), *(str(record.exc_text) for record in caplog.records)]
    assert any("request broken failed with ValueError" in line for line in lines)
    assert [line for line in lines if said in line or agent.key in line] == []
