"""Marked secrets through every tool: neither they nor what was read are in the lines, the traces and the metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.mcp.tools import TOOLS
from tests.mcp.served import Served
from tests.operations.memory_acts import shared
from tests.web.told import Told

#: It is read.
CANARY = "canary-5f0c"
QUERY = "tea secret"
#: It is sent.
MARK = "mark-7d21"


def filled(schema: dict[str, Any]) -> dict[str, object]:
    """A mark, or what holds one, for every argument of a tool."""
    kinds: dict[str, object] = {
        "string": MARK,
        "array": [MARK],
        "object": {MARK: MARK},
        "integer": 1,
        "number": 1,
        "boolean": True,
    }
    return {name: kinds.get(said.get("type", "string"), MARK) for name, said in schema["properties"].items()}


def test_nothing_that_is_told_of_a_tool_holds_what_was_sent_or_read(tmp_path: Path) -> None:
    gateway = Served(tmp_path / "data", audit="relaxed")
    agent = gateway.agent("assistant", by=gateway.member)
    row = shared(agent, f"tea secret {CANARY}")
    heard = Told(gateway.app)
    try:
        tools = {tool["name"]: tool for tool in gateway.post(agent.key, "tools/list").json()["result"]["tools"]}
        assert tools.keys() == {tool.name for tool in TOOLS}
        for who in (agent.key, f"ocv_{MARK}"):
            for name, tool in tools.items():
                full = filled(tool["inputSchema"])
                for arguments in (full, *({each: full[each]} for each in full), {MARK: MARK}):
                    gateway.post(who, "tools/call", {"name": name, "arguments": arguments}, user_agent=MARK, mcp_session_id=MARK)
                    gateway.post(who, "tools/call", {"name": name, "arguments": arguments}, user_agent=MARK)
            gateway.post(who, "tools/call", {"name": MARK, "arguments": {}})
            gateway.post(who, MARK, {MARK: MARK})
        found = gateway.call(agent, "memory_search", {"query": QUERY}).texts
        assert CANARY in "".join(found)
        texts = {**heard.texts(), "metrics": gateway.auditor.get("/metrics").text}
    finally:
        heard.end()
        gateway.close()
    secrets = [MARK, CANARY, QUERY, agent.id, agent.key, str(row["id"])]
    for name, text in texts.items():
        assert "mcp" in text, name
        assert [secret for secret in secrets if secret in text] == [], name
