"""A connection whose request head does not end."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

import pytest
import uvicorn
import uvloop
from uvicorn.server import ServerState

from gateway import limits
from gateway.web import protocol
from gateway.web.protocol import HEAD_SECONDS, QUEUED, BoundedProtocol

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


async def answering(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def refusing(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-length", b"2"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b"no"})


async def with_connection(talk: Any, app: Any = answering) -> None:
    """A server of one connection and a client on it."""
    loop = asyncio.get_running_loop()
    config = uvicorn.Config(app, log_config=None, lifespan="off")
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


def test_the_head_of_an_answer_goes_out_with_its_body() -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        transport, packets = connection.transport, []

        class Recorded:
            def __getattr__(self, name: str) -> Any:
                return getattr(transport, name)

            def write(self, data: bytes) -> None:
                packets.append(data)
                transport.write(data)

        connection.transport = Recorded()
        writer.write(REQUEST)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        writer.write(REQUEST.replace(b"Host", b"Expect: 100-continue\r\nContent-Length: 0\r\nHost"))
        assert (await reader.readuntil(b"ok")).count(b"HTTP/1.1") == 1
        writer.write(REQUEST.replace(b"GET", b"HEAD"))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert [packet.count(b"\r\n\r\n") for packet in packets] == [1, 1, 1]

    asyncio.run(with_connection(talk))


@pytest.mark.parametrize("body", ["Content-Length: 28", "Transfer-Encoding: chunked"], ids=["of a length", "in chunks"])
def test_a_body_behind_a_wish_for_another_protocol_is_no_request_of_its_own(body: str) -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        wish = f"Connection: Upgrade\r\nUpgrade: h2c\r\n{body}\r\nHost".encode()
        writer.write(REQUEST.replace(b"GET", b"POST").replace(b"Host", wish))
        writer.write(REQUEST)
        answers = await reader.read()
        assert (answers.count(b"HTTP/1.1 "), answers[:13]) == (1, b"HTTP/1.1 400 ")

    asyncio.run(with_connection(talk))


def test_a_wish_for_another_protocol_without_a_body_is_passed_over() -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        for length in (b"", b"Content-Length: 0\r\n"):
            writer.write(REQUEST.replace(b"Host", b"Connection: Upgrade\r\nUpgrade: h2c\r\n" + length + b"Host"))
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")

    asyncio.run(with_connection(talk))


async def breaking(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})


def test_an_answer_that_breaks_off_after_its_head_ends_the_connection_behind_it() -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        writer.write(REQUEST)
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")

    asyncio.run(with_connection(talk, breaking))


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


CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n"
LINE = b"X: " + b"x" * 1_000 + b"\r\n"


@pytest.mark.parametrize("trailers", [LINE * 2_000, b"X: " + b"x" * 2_000_000], ids=["many", "one"])
def test_trailers_count_with_the_head(trailers: bytes) -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        writer.write(CHUNKED)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        arriving = b"0\r\n" + trailers
        for start in range(0, len(arriving), 10_000):
            if not connection.transport.is_closing():
                connection.data_received(arriving[start : start + 10_000])
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        assert connection.headers == [(b"host", b"a"), (b"transfer-encoding", b"chunked")]

    asyncio.run(with_connection(talk))


async def told_headers(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    said = [(name, value) for name, value in scope["headers"] if name.startswith(b"x-")]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2"), *said]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.mark.parametrize("pieces", [1, 2])
def test_trailers_are_no_headers(pieces: int) -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        for _ in range(2):  # the second request of a connection has its own headers again
            arriving = CHUNKED.replace(b"Host: a", b"X-Sent: a") + b"0\r\nX-Auth-Confirm: trailer\r\n\r\n"
            cut = arriving.index(b"0\r\nX") if pieces == 2 else 0
            for piece in (arriving[:cut], arriving[cut:]):
                connection.data_received(piece)
                await asyncio.sleep(0)
            answer = await reader.readuntil(b"ok")
            assert b"x-sent: a" in answer
            assert b"trailer" not in answer

    asyncio.run(with_connection(talk, told_headers))


def test_a_whole_head_in_one_piece_is_no_larger_than_one_in_many() -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        connection.data_received(REQUEST[:-2] + LINE * 100 + b"\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")

    asyncio.run(with_connection(talk))


def test_large_bodies_in_many_pieces_are_no_head() -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        writer.write(CHUNKED + b"8000\r\n" + b" " * 0x8000 + b"\r\n")
        for _ in range(9):
            writer.write(b"8000\r\n" + b" " * 0x8000 + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n" + REQUEST)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 200 " in await reader.readuntil(b"ok")

    asyncio.run(with_connection(talk))


def test_a_refused_body_is_dropped_until_the_connection_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LINGER_SECONDS", 0.05)

    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
        assert (await reader.read()).endswith(b"no")
        assert not connection.transport.is_closing()
        writer.write(b" " * 100)
        lost = loop.create_future()
        monkeypatch.setattr(connection, "connection_lost", lost.set_result)
        assert await lost is None
        assert bytes(connection.cycle.body) == b""

    asyncio.run(with_connection(talk, refusing))


def test_an_answer_to_a_whole_request_ends_its_connection_at_once() -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        writer.write(REQUEST)
        assert (await reader.read()).endswith(b"no")
        assert connection.transport.is_closing()

    asyncio.run(with_connection(talk, refusing))


def test_one_connection_too_many_is_told_to_come_back_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        monkeypatch.setattr(limits, "CONNECTIONS", 1)
        late_reader, late_writer = await asyncio.open_connection(*connection.transport.get_extra_info("sockname"))
        late_writer.write(REQUEST)
        head = await late_reader.read()
        assert (head.startswith(b"HTTP/1.1 503 "), b"retry-after: 1\r\n" in head) == (True, True)
        late_writer.close()
        writer.write(REQUEST)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")

    asyncio.run(with_connection(talk))


def test_a_request_knows_since_when_it_waits_for_its_turn_also_behind_another() -> None:
    waited: list[float] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        waited.append(perf_counter() - scope[QUEUED])
        await answering(scope, receive, send)

    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        writer.write(REQUEST + REQUEST)
        for _ in range(2):
            await reader.readuntil(b"ok")
        assert [seconds >= 0 for seconds in waited] == [True, True]

    asyncio.run(with_connection(talk, app))


def test_what_is_written_to_a_client_that_has_left_is_dropped() -> None:
    wrong: list[RuntimeError] = []

    async def talk(loop: Any, connection: Any, reader: Any, writer: Any) -> None:
        writer.write(REQUEST)
        await reader.readuntil(b"ok")
        connection.transport.abort()
        await reader.read()
        try:
            connection.cycle.transport.write(b"late")
        except RuntimeError as raised:
            wrong.append(raised)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(with_connection(talk))
    assert wrong == []
