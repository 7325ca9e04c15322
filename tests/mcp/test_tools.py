"""The table of tools: who has which, that none of them opens anything, and that none answers without a decision."""

from __future__ import annotations

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gateway.mcp.tool import Tool
from gateway.mcp.tools import TOOLS
from gateway.operations.registry import OPERATIONS
from tests.builders import Client, done
from tests.mcp.acts import REQUEST, samples
from tests.mcp.served import Served
from tests.operations.connecting import connect
from tests.operations.memory_acts import allow_all, shared

NAMED = {operation.name: operation for operation in OPERATIONS}
each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
MEMORY = ["remember", "memory_search", "memory_read", "memory_query"]


@pytest.fixture(scope="module")
def sessions(gateway: Served, agent: Client) -> dict[str, Client]:
    """A credential of every kind."""
    app = done(gateway.owner.post("/v1/org/platform-apps", {"name": "app", "slug": "app"}), 201)
    connection = connect(gateway, agent, "conn-1")
    allow_all(gateway, connection)
    talk = done(agent.post("/v1/connections/conn-1/conversations"), 201)["token"]
    bridge = done(gateway.owner.post(f"/v1/agents/{agent.id}/bridge-token"), 201)["token"]
    token = done(gateway.http.post("/v1/auth/agent-token", json={"api_key": agent.key}), 200)["access_token"]
    return {
        **{role: getattr(gateway, role) for role in ("owner", "admin", "security", "auditor", "member")},
        "platform": Client(gateway.http, "platform", app["api_key"]),
        "bridge": Client(gateway.http, "bridge", bridge),
        "connection": connection,
        "conversation": Client(gateway.http, "conn-1", talk),
        "agent": agent,
        "token of an agent": Client(gateway.http, agent.id, token),
    }


@pytest.fixture(scope="module")
def given(agent: Client, peer: dict[str, Any]) -> Any:
    asked = done(agent.post("/v1/approvals/request", REQUEST), 202)
    return samples(peer["id"], asked["id"], shared(agent, "tea for two")["id"])


def test_the_tools_are_these_operations_and_no_others() -> None:
    assert {tool.name: tool.operation for tool in TOOLS} == {
        "get_peer_context": "agent.read_context",
        "record_event": "peer.record_event",
        "predict_approval": "peer.predict",
        "request_approval": "approval.request",
        "get_approval_status": "approval.status",
        "list_approvals": "approval.list",
        "cancel_approval": "approval.cancel",
        "remember": "memory.remember",
        "memory_search": "memory.search",
        "memory_read": "memory.read",
        "memory_query": "memory.query",
    }


def test_every_kind_of_session_has_the_tools_that_are_written_down_for_it(gateway: Served, sessions: dict[str, Client]) -> None:
    everything = [tool.name for tool in TOOLS]
    expected = {who: [] for who in sessions} | {"agent": everything, "token of an agent": everything}
    expected |= {"connection": MEMORY, "conversation": MEMORY}
    listed = {who: gateway.post(client.key, "tools/list").json()["result"]["tools"] for who, client in sessions.items()}
    assert {who: [tool["name"] for tool in tools] for who, tools in listed.items()} == expected


def test_a_tool_that_a_session_has_not_is_not_there_and_asks_nothing(
    gateway: Served, sessions: dict[str, Client], given: Any
) -> None:
    listed = {who: gateway.post(client.key, "tools/list").json()["result"]["tools"] for who, client in sessions.items()}
    for who, client in sessions.items():
        for name in (*(tool.name for tool in TOOLS), "create_peer"):
            if name in {tool["name"] for tool in listed[who]}:
                continue
            request_id = f"absent.{name}.{who.replace(' ', '-')}"
            arguments = given.get(name, {})
            made = gateway.post(client.key, "tools/call", {"name": name, "arguments": arguments}, x_request_id=request_id)
            error = {"code": -32602, "message": f"there is no tool `{name}` for this credential"}
            assert made.json()["error"] == error, who
            assert gateway.rows(request_id) == []


def test_there_is_nothing_but_tools(gateway: Served, agent: Client) -> None:
    for method in ("resources/list", "resources/templates/list", "prompts/list", "completion/complete", "logging/setLevel"):
        code = gateway.post(agent.key, method, {}).json()["error"]["code"]
        assert code in (-32601, -32602), method
    begun = gateway.post(
        agent.key,
        "initialize",
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    )
    assert begun.json()["result"]["capabilities"] == {"tools": {"listChanged": False}}
    assert "mcp-session-id" not in begun.headers


@each_tool
def test_a_tool_that_is_answered_left_a_decision(gateway: Served, agent: Client, given: Any, tool: Tool) -> None:
    request_id = f"answered.{tool.name}"
    assert not gateway.call(agent, tool.name, given[tool.name], x_request_id=request_id).failed
    decided = [row[3] for row in gateway.rows(request_id) if row[0] == "decision"]
    assert decided
    assert set(decided) <= set(NAMED[tool.operation].actions)


@each_tool
def test_what_a_tool_takes_is_what_its_operation_reads(tool: Tool) -> None:
    operation = NAMED[tool.operation]
    places: dict[str, set[str]] = {
        place: {argument.target for argument in tool.arguments if argument.place == place} for place in ("path", "query", "body")
    }
    assert places["path"] == set(re.findall(r"\{(\w+)\}", operation.path))
    assert places["query"] <= set(operation.query)
    assert places["body"] <= set(operation.fields)


@each_tool
def test_a_tool_teaches_and_takes_nothing_else(gateway: Served, agent: Client, given: Any, tool: Tool) -> None:
    listed = gateway.post(agent.key, "tools/list").json()["result"]["tools"]
    shown = next(each for each in listed if each["name"] == tool.name)
    schema = shown["inputSchema"]
    Draft202012Validator.check_schema(schema)
    Draft202012Validator.check_schema(shown.get("outputSchema", {}))
    assert schema["additionalProperties"] is False
    assert len(shown["description"]) > 80
    assert [name for name, about in schema["properties"].items() if len(about["description"]) < 10] == []
    Draft202012Validator(schema).validate(given[tool.name])
    output = gateway.call(agent, tool.name, given[tool.name]).data
    Draft202012Validator(shown.get("outputSchema", {})).validate(output)


def test_a_connection_reads_and_writes_what_its_grants_cover(gateway: Served, sessions: dict[str, Client], agent: Client) -> None:
    hidden, open_row = shared(agent, "tea in beta", project_id="beta"), shared(agent, "tea in the open")
    for who in ("connection", "conversation"):
        found = gateway.call(sessions[who], "memory_search", {"query": "tea"})
        assert open_row["id"] in str(found.data)
        assert "beta" not in str(found)
        read = gateway.call(sessions[who], "memory_read", {"memory_id": hidden["id"]})
        assert (read.failed, read.data["status"]) == (True, 404)
        wrote = gateway.call(sessions[who], "remember", {"text": "it said so", "project_id": "alpha"})
        assert not wrote.failed
        row = agent.get(f"/v1/memories/{wrote.data['memory']['id']}").json()["memory"]
        assert (row["connection_id"], row["source_did"]) == ("conn-1", "did:web:peer.example")
        for owners in ({"connection_id": "conn-2"}, {"source_did": "did:web:a.example"}, {"supersedes": open_row["id"]}):
            told = gateway.call(sessions[who], "remember", {"text": "it said so", "project_id": "alpha", **owners})
            assert (told.failed, told.data["status"], [*told.data["fields"]]) == (True, 400, [*owners])
