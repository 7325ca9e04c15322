"""Bodies that arrive slowly take no places from others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway import limits
from gateway.mcp.surface import Surface
from gateway.operations.registry import OPERATIONS
from gateway.web.app import Application
from tests.builders import Gateway

PATHS = ["/access/v1/evaluation", "/v1/auth/token", "/mcp"]


class Slow:
    """A request whose body is on its way until it is let go."""

    def __init__(self, app: Application, path: str, key: str | None, address: str = "192.0.2.1") -> None:
        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        headers += [(b"authorization", f"Bearer {key}".encode())] if key is not None else []
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
        self.scope = {**scope, "headers": headers, "client": (address, 1), "scheme": "http", "server": ("127.0.0.1", 80)}
        self.rest = asyncio.Event()
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.task = asyncio.create_task(app(self.scope, self.receive, self.send))

    async def receive(self) -> dict[str, Any]:
        await self.rest.wait()
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])

    async def answered(self) -> int:
        self.rest.set()
        await self.task
        return self.status


async def until_they_wait(gateway: Gateway, slow: list[Slow]) -> None:
    while gateway.services.traffic.under_way < len(slow):
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("path", PATHS)
def test_one_sender_has_a_share_of_the_places_and_others_have_theirs(
    gateway: Gateway, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CROWDED_REQUESTS", limits.BODIES_ARRIVING)
    surface = Surface(gateway.services, OPERATIONS)
    app = Application(gateway.services, OPERATIONS, (surface,))
    mine, theirs = (None, None) if path == "/v1/auth/token" else (gateway.owner.key, gateway.admin.key)

    async def run() -> None:
        async with surface.running():
            slow = [Slow(app, path, mine) for _ in range(limits.BODIES_ARRIVING)]
            await until_they_wait(gateway, slow)
            more = Slow(app, path, mine)
            await more.task
            assert (more.status, more.headers[b"retry-after"]) == (429, b"1")
            assert await Slow(app, path, theirs, "198.51.100.1").answered() not in (0, 429, 503)
            assert await slow[0].answered() not in (0, 429, 503)
            assert await Slow(app, path, mine).answered() not in (0, 429, 503)
            for each in slow:
                await each.answered()
        assert (len(gateway.services.arriving), gateway.services.traffic.under_way) == (0, 0)

    asyncio.run(run())


def test_there_is_no_share_while_there_is_room(gateway: Gateway) -> None:
    app = Application(gateway.services, OPERATIONS)

    async def run() -> None:
        slow = [Slow(app, PATHS[0], gateway.owner.key) for _ in range(limits.BODIES_ARRIVING * 2)]
        await until_they_wait(gateway, slow)
        assert {await each.answered() for each in slow}.isdisjoint((0, 429, 503))

    asyncio.run(run())


def test_a_client_that_gives_up_gives_its_place_back(gateway: Gateway) -> None:
    app = Application(gateway.services, OPERATIONS)

    async def run() -> None:
        slow = [Slow(app, PATHS[0], gateway.owner.key) for _ in range(limits.BODIES_ARRIVING)]
        await until_they_wait(gateway, slow)
        for each in slow:
            each.task.cancel()
        await asyncio.gather(*(each.task for each in slow), return_exceptions=True)
        assert len(gateway.services.arriving) == 0

    asyncio.run(run())


def test_the_share_is_small_beside_all_places() -> None:
    assert limits.CROWDED_REQUESTS + limits.BODIES_ARRIVING * 4 <= limits.CONCURRENT_REQUESTS
