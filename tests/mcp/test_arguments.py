"""What models send: junk is refused with a hint, anything unknown by its name, and numbers are read as they were written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.mcp.tool import Tool
from gateway.mcp.tools import TOOLS
from tests.builders import Client, done
from tests.mcp.acts import REQUEST, samples
from tests.mcp.served import Served
from tests.operations.memory_acts import shared

JUNK: tuple[tuple[object, str], ...] = (
    ("", "``"),
    ("  ", "`  `"),
    ("null", "`null`"),
    ("None", "`None`"),
    ("undefined", "`undefined`"),
    ("*", "`*`"),
    ({}, "`{}`"),
    (None, "`null`"),
)
#: Any text is one that can be looked for or kept, and any object one that can be recorded or shown.
FREE, OBJECTS = ("text", "query", "target_type", "target_id", "summary"), ("content", "summary")
ID = "must be an id (a lower-case UUID)"


@pytest.fixture(scope="module")
def given(agent: Client, peer: dict[str, Any]) -> Any:
    asked = done(agent.post("/v1/approvals/request", REQUEST), 202)
    return samples(peer["id"], asked["id"], shared(agent, "tea for two")["id"])


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_junk_for_an_optional_argument_is_refused_with_a_hint(gateway: Served, agent: Client, given: Any, tool: Tool) -> None:
    before = gateway.height()
    for argument in tool.arguments:
        for junk, shown in JUNK if not argument.required else ():
            made = gateway.call(agent, tool.name, {**given[tool.name], argument.name: junk})
            hint = f"`{argument.name}` is optional: leave it out instead of sending {shown}"
            assert (made.failed, made.texts) == (True, [f"invalid request: {hint}"])
            assert made.data["fields"] == {argument.name: hint}
    assert gateway.height() == before


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_an_argument_that_a_tool_has_not_is_refused_by_its_name(gateway: Served, agent: Client, given: Any, tool: Tool) -> None:
    for name in ("colour", "org_id", "connection_id", "observer_agent_ids"):
        made = gateway.call(agent, tool.name, {**given[tool.name], name: "x"})
        known = ", ".join(argument.name for argument in tool.arguments)
        assert made.texts == [f"invalid request: `{name}` is not a known field here; known are {known}"]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_an_argument_that_is_needed_is_named_when_it_is_missing_or_wrong(
    gateway: Served, agent: Client, given: Any, tool: Tool
) -> None:
    for argument in tool.arguments:
        for wrong in (None, "", "*", 7, True, [], {"a": 1}) if argument.required else ():
            if (argument.name in OBJECTS and isinstance(wrong, dict)) or (argument.name in FREE and wrong == "*"):
                continue
            arguments = {**given[tool.name], argument.name: wrong}
            if wrong is None:
                del arguments[argument.name]
            made = gateway.call(agent, tool.name, arguments)
            assert (made.failed, made.data["status"], [*made.data["fields"]]) == (True, 400, [argument.name]), wrong
            assert f"`{argument.name}`" in made.texts[0]


@pytest.mark.parametrize(
    ("tool", "argument", "value", "told"),
    [
        ("get_peer_context", "budget", "500", "`budget` must be a whole number from 1 to 8000, got `500`"),
        ("get_peer_context", "budget", True, "`budget` must be a whole number from 1 to 8000, got `true`"),
        ("get_peer_context", "budget", 0, "`budget` must be a whole number from 1 to 8000, got `0`"),
        ("get_peer_context", "budget", -1, "`budget` must be a whole number from 1 to 8000, got `-1`"),
        ("get_peer_context", "budget", 1.5, "`budget` must be a whole number from 1 to 8000, got `1.5`"),
        ("get_peer_context", "agent_id", "me", f"`agent_id` {ID}, got `me`"),
        ("list_approvals", "limit", 201, "`limit` must be a whole number from 1 to 200, got `201`"),
        ("list_approvals", "status", ["pending"], "`status` must be a string, got a list"),
        ("list_approvals", "status", "open", "`status` must be one of pending, approved, rejected, expired, cancelled, denied"),
        ("memory_search", "mode", "magic", "`mode` must be one of keyword, semantic, hybrid, got `magic`"),
        ("memory_search", "limit", 10.0, "`limit` must be a whole number from 1 to 200, got `10.0`"),
        ("memory_search", "project_id", "%", "`project_id` must be a project of 1 to 64"),
        ("remember", "classification", "secret", "`classification` must be one of public, internal, confidential, pii"),
        ("request_approval", "declared_risk_tier", 4, "`declared_risk_tier` must be a whole number from 1 to 3, got `4`"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_what_would_be_right(
    gateway: Served, agent: Client, given: Any, tool: str, argument: str, value: object, told: str
) -> None:
    made = gateway.call(agent, tool, {**given[tool], argument: value})
    assert made.failed
    assert made.texts[0].startswith(f"invalid request: {told}")
    assert [*made.data["fields"]] == [argument]


def test_an_amount_is_read_as_it_was_written(gateway: Served, agent: Client, peer: dict[str, Any]) -> None:
    amount = "922337203685477.5807"
    asked = {"name": "request_approval", "arguments": {**REQUEST, "payload": {"amount_usd": "AMOUNT"}}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}).replace('"AMOUNT"', amount)
    result = gateway.send(agent.key, body.encode()).json()["result"]
    assert not result["isError"]
    assert f'"payload":{{"amount_usd":{amount}}}' in result["content"][0]["text"]
    assert result["structuredContent"]["understood"]["amount_usd"] == amount


def test_what_would_be_read_two_ways_is_refused(gateway: Served, agent: Client) -> None:
    twice = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":{"query":"a","query":"b"}}}'
    )
    made = gateway.send(agent.key, twice)
    assert (made.status_code, made.json()["detail"]) == (400, "`params.arguments` holds the key `query` twice")
    for name, value in (("query", "NaN"), ("query", '"\\ud800"'), ("payload", '{"__entity":{"type":"A","id":"a"}}')):
        body = twice.replace(b'"query":"a","query":"b"', f'"{name}":{value}'.encode())
        assert gateway.send(agent.key, body).status_code == 400


def test_a_body_is_as_large_as_its_operation_takes(gateway: Served, agent: Client, given: Any) -> None:
    padding = {"reason": "x" * 300_000}
    refused = gateway.call(agent, "request_approval", {**given["request_approval"], **padding})
    assert (refused.failed, refused.data["status"], refused.data["detail"]) == (
        True,
        413,
        "the body is over the limit of 256 KiB",
    )
    assert not gateway.call(agent, "remember", {"text": "\N{SNOWMAN}" * 21_000}).failed
    large = gateway.call(agent, "remember", {"text": "x" * 65_537})
    assert (large.failed, [*large.data["fields"]]) == (True, ["text"])
