"""A gateway that is served on a loopback port, and clients of its MCP endpoint."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp import Client as McpClient
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from gateway.cli.surfaces import whole_app
from gateway.web.protocol import BoundedProtocol
from gateway.web.server import address, listen
from tests.builders import ROLES, Client, Gateway
from tests.real.process import clean_environment

#: Both eras of the protocol: with a handshake, and with every request complete in itself.
ERAS = ("legacy", "auto")
TRANSPORTS = ("http", "stdio")


class Served(Gateway):
    """A gateway in this process, whose clients reach it through a socket."""

    def __init__(self, data: Path, **settings: Any) -> None:
        super().__init__(data, **settings)
        self._listening = listen("127.0.0.1", 0)
        self.url = address(self._listening)
        self.app = whole_app(self.services)
        config = uvicorn.Config(self.app, http=BoundedProtocol, ws="none", lifespan="on", log_config=None)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listening]})
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.01)
        self.http = httpx2.Client(base_url=self.url, timeout=60)  # type: ignore[assignment]  # asked in the same way
        for role in ROLES:
            setattr(self, role, replace(getattr(self, role), http=self.http))

    def close(self) -> None:
        self._server.should_exit = True
        self.http.close()
        self._thread.join()
        self._listening.close()
        super().close()

    def rows(self, request_id: str) -> list[tuple[Any, ...]]:
        """What a request left in the log."""
        columns = "kind, principal_type, principal_id, action, resource_type, resource_id, outcome, deny_kind, policies, details"
        found: list[tuple[Any, ...]] = self.services.database.read_sync(
            lambda rows: rows.all(f"SELECT {columns} FROM log WHERE request_id = $1 ORDER BY seq", request_id)
        )
        return found

    def height(self) -> int:
        """How many rows the log has."""
        counted: int = self.services.database.read_sync(lambda rows: rows.value("SELECT count(*) FROM log"))
        return counted

    def session(self, who: Client, transport: str = "http", era: str = "auto") -> AbstractAsyncContextManager[McpClient]:
        """The official client with somebody's key."""
        return over_http(self.url, who.key, era) if transport == "http" else over_stdio(self.url, who.key, era)

    def post(self, key: str | None, method: str, params: object = None, **headers: str) -> httpx2.Response:
        """One message as it goes over the wire."""
        sent = message(method, params)
        return self.send(key, json.dumps(sent).encode(), **headers)

    def send(self, key: str | None, body: bytes, **headers: str) -> httpx2.Response:
        """A body of any kind; a header's name has `_` for `-`."""
        asked = {"content-type": "application/json", "accept": "application/json", "mcp-protocol-version": "2025-11-25"}
        if key is not None:
            asked["authorization"] = f"Bearer {key}"
        asked |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.request("POST", "/mcp", content=body, headers=asked)

    def call(self, who: Client, tool: str, arguments: Mapping[str, object] | None = None, **headers: str) -> Answered:
        """One call of a tool."""
        made = self.post(who.key, "tools/call", {"name": tool, "arguments": arguments or {}}, **headers)
        assert made.status_code == 200, made.text
        result = made.json()["result"]
        return Answered(result["isError"], [part["text"] for part in result["content"]], result["structuredContent"])


@dataclass(frozen=True, slots=True)
class Answered:
    """What a call of a tool answers."""

    failed: bool
    texts: list[str]
    data: dict[str, Any]


def message(method: str, params: object = None) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, **({} if params is None else {"params": params})}


def answered(result: CallToolResult) -> Answered:
    """What the official client made of an answer."""
    texts = [part.text for part in result.content if isinstance(part, TextContent)]
    return Answered(result.is_error, texts, result.structured_content)


@asynccontextmanager
async def over_http(url: str, key: str, era: str = "auto") -> AsyncIterator[McpClient]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http:
        async with McpClient(streamable_http_client(f"{url}/mcp", http_client=http), mode=era) as client:
            yield client


@asynccontextmanager
async def over_stdio(url: str, key: str, era: str = "auto") -> AsyncIterator[McpClient]:
    environment = clean_environment(PEERGATE_URL=url, PEERGATE_KEY=key)
    command = StdioServerParameters(command=sys.executable, args=["-m", "gateway.cli.main", "mcp"], env=environment)
    async with McpClient(stdio_client(command), mode=era) as client:
        yield client


def flat(error: BaseException) -> list[BaseException]:
    """The errors in a group of groups."""
    return [one for each in error.exceptions for one in flat(each)] if isinstance(error, BaseExceptionGroup) else [error]


def run(scenario: Any) -> Any:
    return asyncio.run(scenario)
