"""A connection whose request head does not end."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from gateway.web.protocol import HEAD_SECONDS, BoundedProtocol

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


async def answering(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def with_connection(talk: Any) -> None:
    """A server of one connection and a client on it."""
    loop = asyncio.get_running_loop()
    config = uvicorn.Config(answering, log_config=None, lifespan="off")
    state = ServerState()
    server = await loop.create_server(lambda: BoundedProtocol(config, state, {}), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    while not state.connections:
        await asyncio.sleep(0)
    [connection] = state.connections
    await talk(loop, connection, reader, writer)
    writer.close()
    server.close()
    await server.wait_closed()


def test_a_connection_that_sends_no_request_is_closed_after_a_while() -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        connection.close_if_slow(loop.time() + HEAD_SECONDS / 2)
        assert not connection.transport.is_closing()
        connection.close_if_slow(loop.time() + HEAD_SECONDS + 1)
        assert await reader.read() == b""

    asyncio.run(with_connection(talk))


def test_a_head_that_trickles_in_does_not_win_time_and_a_whole_one_does() -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        writer.write(REQUEST)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        connection.close_if_slow(loop.time() + 1_000)
        assert not connection.transport.is_closing()
        writer.write(REQUEST + REQUEST[:10])
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        connection.close_if_slow(loop.time() + HEAD_SECONDS + 1)
        assert await reader.read() == b""

    asyncio.run(with_connection(talk))
