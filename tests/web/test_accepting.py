"""Connections that come faster than they are taken, and a system that gives none, on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvloop

from gateway import limits
from gateway.web import accepting
from gateway.web.accepting import Accepting, allow_files, most_connections
from gateway.web.protocol import CROWDED, HEAD_BYTES
from gateway.web.server import listen

LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
Loop = Callable[[], asyncio.AbstractEventLoop]


class Greeting(asyncio.Protocol):
    """Says `hello`, and stays until the client leaves."""

    def __init__(self, open_: set[Greeting]) -> None:
        self.open = open_

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.open.add(self)
        transport.write(b"hello")

    def connection_lost(self, exc: Exception | None) -> None:
        self.open.discard(self)


class Listening:
    """A listening socket whose connections are taken, and those that are open; `turns` counts how often it was asked for one."""

    def __init__(self) -> None:
        self.socket = Counted(listen("127.0.0.1", 0))
        self.open: set[Greeting] = set()
        self.told: list[None] = []
        make, told = (lambda: Greeting(self.open)), (lambda: self.told.append(None))
        self.accepting = Accepting(self.socket, make, self.open, told)  # type: ignore[arg-type]

    async def client(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.socket.real.getsockname())


class Counted:
    """A socket that counts what it is asked for, and fails as it is told to."""

    def __init__(self, real: socket.socket) -> None:
        self.real = real
        self.asked = 0
        self.wrong: OSError | None = None

    def accept(self) -> tuple[socket.socket, Any]:
        self.asked += 1
        if self.wrong is not None:
            raise self.wrong
        return self.real.accept()

    def fileno(self) -> int:
        return self.real.fileno()

    def setblocking(self, value: bool) -> None:
        self.real.setblocking(value)


def with_listening(loop: Loop, talk: Callable[[Listening], Awaitable[None]]) -> None:
    async def run() -> None:
        made = Listening()
        try:
            await talk(made)
        finally:
            made.accepting.close()
            for each in list(made.open):
                each.transport.abort()
            await asyncio.sleep(0)
            made.socket.real.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


@pytest.fixture(autouse=True)
def _short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "PAUSE_SECONDS", 0.01)


@pytest.fixture(autouse=True)
def _none_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TAKEN_AT_ONCE", 0)


@LOOPS
def test_the_first_few_are_taken_as_they_come(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TAKEN_AT_ONCE", 12)

    async def talk(listening: Listening) -> None:
        ready = [socket.create_connection(listening.socket.real.getsockname()) for _ in range(20)]
        between, before = [], 0
        while len(listening.open) < len(ready):
            await asyncio.sleep(0)
            between.append(listening.socket.asked - before)
            before = listening.socket.asked
        taken = [count for count in between if count]
        assert (max(taken), taken[-1], sum(taken)) == (12, 1, 20)
        for each in ready:
            each.close()

    with_listening(loop, talk)


@LOOPS
def test_a_burst_beyond_the_limit_waits_and_is_served_when_there_is_room(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS", 3)
    monkeypatch.setattr(limits, "TURNED_AWAY", 2)

    async def talk(listening: Listening) -> None:
        clients = [await listening.client() for _ in range(12)]
        most, greeted = 0, 0
        while clients:
            reading = {asyncio.create_task(reader.readexactly(5)): (reader, writer) for reader, writer in clients}
            done, waiting = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
            most = max(most, len(listening.open))
            greeted += len(done)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            for task in done:
                assert task.result() == b"hello"
                reading[task][1].close()
                clients.remove(reading[task])
        assert (greeted, most <= 5) == (12, True)

    with_listening(loop, talk)


@LOOPS
def test_one_is_taken_a_turn_so_that_others_have_theirs_between(loop: Loop) -> None:
    async def talk(listening: Listening) -> None:
        ready = [socket.create_connection(listening.socket.real.getsockname()) for _ in range(20)]
        between, before = [], 0
        while len(listening.open) < len(ready):
            await asyncio.sleep(0)
            between.append(listening.socket.asked - before)
            before = listening.socket.asked
        assert max(between) == 1
        for each in ready:
            each.close()

    with_listening(loop, talk)


@LOOPS
def test_a_queue_that_does_not_end_is_told_to_come_back_whole_and_whoever_has_not_sent_all_is_served(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TURN_SECONDS", -1)

    async def talk(listening: Listening) -> None:
        clients = [socket.create_connection(listening.socket.real.getsockname()) for _ in range(20)]
        for client in clients[:-1]:
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        clients[-2].sendall(b" " * 2 * HEAD_BYTES)  # more than is looked at
        while len(listening.open) + len(listening.told) < len(clients):
            await asyncio.sleep(0)
        answers = []
        for client in clients:
            client.setblocking(False)
            answers.append(await asyncio.get_running_loop().sock_recv(client, 1_000))
            if answers[-1] != b"hello":
                assert await asyncio.get_running_loop().sock_recv(client, 1_000) == b""
            client.close()
        assert (answers.count(CROWDED), answers.count(b"hello")) == (len(listening.told), len(clients) - len(listening.told))
        assert (answers[-2:], len(listening.told) >= limits.TOLD_AT_ONCE) == ([b"hello"] * 2, True)

    with_listening(loop, talk)


@LOOPS
def test_a_queue_that_has_ended_is_forgotten(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(listening: Listening) -> None:
        monkeypatch.setattr(limits, "TURN_SECONDS", -1)
        for most in (10, 2):
            told = len(listening.told)
            clients = [socket.create_connection(listening.socket.real.getsockname()) for _ in range(most)]
            for client in clients:
                client.sendall(b"GET")
            while len(listening.open) + len(listening.told) - told < most:
                await asyncio.sleep(0)
            for client in clients:
                client.close()
            while listening.open:
                await asyncio.sleep(0.001)
            monkeypatch.setattr(limits, "TURN_SECONDS", 0.0001)
        assert (told, len(listening.told)) == (9, 9)

    with_listening(loop, talk)


@LOOPS
def test_a_queue_that_ends_at_times_is_served_whole(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TURN_SECONDS", 0.05)

    async def talk(listening: Listening) -> None:
        for _ in range(10):
            clients = [socket.create_connection(listening.socket.real.getsockname()) for _ in range(3)]
            for client in clients:
                client.sendall(b"GET")
            while len(listening.open) < len(clients):
                await asyncio.sleep(0)
            for client in clients:
                client.close()
            while listening.open:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.01)
        assert listening.told == []

    with_listening(loop, talk)


@LOOPS
def test_idle_it_asks_for_nothing(loop: Loop) -> None:
    async def talk(listening: Listening) -> None:
        reader, writer = await listening.client()
        assert await reader.readexactly(5) == b"hello"
        asked = listening.socket.asked
        await asyncio.sleep(0.1)
        assert (listening.socket.asked, listening.accepting._paused) == (asked, None)
        writer.close()

    with_listening(loop, talk)


@LOOPS
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EPERM])
def test_a_system_that_gives_none_is_asked_now_and_then_and_the_client_is_served_later(
    loop: Loop, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(listening: Listening) -> None:
        listening.socket.wrong = OSError(number, "there is none")
        reader, writer = await listening.client()
        turns = 0
        while listening.socket.asked < 3:
            await asyncio.sleep(0)
            turns += 1
        assert turns > listening.socket.asked * 2
        listening.socket.wrong = None
        assert await reader.readexactly(5) == b"hello"
        writer.close()

    with caplog.at_level(logging.WARNING, "gateway.web"):
        with_listening(loop, talk)
    assert [record.getMessage() for record in caplog.records] == ["no connection can be taken: there is none"]


@LOOPS
def test_a_process_that_may_open_no_more_files_breaks_no_connection_off(loop: Loop) -> None:
    async def talk(listening: Listening) -> None:
        reader, writer = await listening.client()
        assert await reader.readexactly(5) == b"hello"
        late = socket.socket()
        late.setblocking(False)
        with no_more_files():
            await asyncio.get_running_loop().sock_connect(late, listening.socket.real.getsockname())
            asked = listening.socket.asked
            while listening.socket.asked < asked + 3:
                await asyncio.sleep(0.001)
        assert await asyncio.get_running_loop().sock_recv(late, 5) == b"hello"
        late.close()
        writer.close()

    with_listening(loop, talk)


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@LOOPS
@pytest.mark.parametrize("failing", [False, True], ids=["ready", "paused"])
def test_closed_it_takes_nothing_more(loop: Loop, failing: bool) -> None:
    async def talk(listening: Listening) -> None:
        if failing:
            listening.socket.wrong = OSError(errno.EMFILE, "there is none")
            (await listening.client())[1].close()
            while not listening.socket.asked:
                await asyncio.sleep(0)
            listening.socket.wrong = None
        listening.accepting.close()
        asked = listening.socket.asked
        (await listening.client())[1].close()
        await asyncio.sleep(0.05)
        assert (listening.socket.asked, listening.open) == (asked, set())

    with_listening(loop, talk)


def test_connections_leave_files_for_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {"now": (10_000, 10_000)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: allowed["now"])
    assert most_connections() == limits.CONNECTIONS + limits.TURNED_AWAY
    allowed["now"] = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert most_connections() == limits.CONNECTIONS + limits.TURNED_AWAY
    allowed["now"] = (1_024, 1_024)
    assert most_connections() == 1_024 - limits.FILES_KEPT
    allowed["now"] = (100, 100)
    assert most_connections() == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [((1_024, 4_096), [(2_000, 4_096)]), ((1_024, 1_500), [(1_500, 1_500)]), ((1_024, -1), [(2_000, -1)]), ((3_000, -1), [])],
)
def test_as_many_files_as_wanted_are_allowed_up_to_what_the_system_lets(
    before: tuple[int, int], after: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: before)
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: changed.append(limit))
    allow_files(2_000)
    assert (changed, resource.RLIM_INFINITY) == (after, -1)


def test_what_is_taken_sends_at_once() -> None:
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        taken, _ = listening.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
