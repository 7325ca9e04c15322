"""`peergate serve`, as people start it, answers MCP, and stops cleanly while a client is connected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from tests.mcp.served import Answered, answered, over_http, run
from tests.real.process import Server, init


def test_a_server_that_is_started_as_people_do_answers_and_stops_cleanly(tmp_path: Path) -> None:
    owner = init(tmp_path / "data")
    with Server.serve(tmp_path / "data") as server:
        made = httpx.post(
            f"{server.url}/v1/agents", json={"name": "helper"}, headers={"Authorization": f"Bearer {owner['api_key']}"}
        )

        async def ask() -> tuple[Answered, int]:
            async with over_http(server.url, made.json()["api_key"]) as session:
                wrote: Any = await session.call_tool("remember", {"text": "canary-8 at four"})
                return answered(wrote), server.stop()

        wrote, code = run(ask())
        assert (wrote.failed, code, server.errors()) == (False, 0, "")
