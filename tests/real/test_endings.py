"""How a process ends, and what is there when the next one opens the same data directory."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from urllib.parse import SplitResult, urlsplit

import httpx
import pytest

from tests.real.process import Server, init, run
from tests.real.world import Agent, World, done


class Recorder:
    """Records events one after the other until the server is gone; `acknowledged` are the ids it got."""

    def __init__(self, world: World, peer_id: str, agent: Agent) -> None:
        self.acknowledged: list[str] = []
        self.warm = Event()
        self._path = f"/v1/peers/{peer_id}/events"
        self._http = world.http(agent.api_key)
        self._thread = Thread(target=self._record)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _record(self) -> None:
        try:
            while True:
                answer = self._http.post(self._path, json={"event_type": "message", "content": {"n": len(self.acknowledged)}})
                if answer.status_code != 201:
                    return
                self.acknowledged.append(answer.json()["event_id"])
                if len(self.acknowledged) == 5:
                    self.warm.set()
        except httpx.HTTPError:
            return
        finally:
            self.warm.set()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def owner(data: Path) -> Iterator[dict[str, str]]:
    return init(data)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=["SIGTERM", "Ctrl-C", "kill -9"])
def test_whatever_was_acknowledged_is_there_afterwards(data: Path, owner: dict[str, str], number: signal.Signals) -> None:
    with Server.serve(data) as server:
        world = World(server.url, owner)
        agents = [world.agent() for _ in range(4)]
        person = world.person("member")
        peer_id = world.peer(person, *agents)
        recorders = [Recorder(world, peer_id, agent) for agent in agents]
        for recorder in recorders:
            recorder.warm.wait()
        code = server.stop(number)
        for recorder in recorders:
            recorder.join()
        world.close()
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0), server.process.args
    acknowledged = {event_id for recorder in recorders for event_id in recorder.acknowledged}
    assert len(acknowledged) >= 20
    with Server.serve(data) as server:
        http = httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {person.api_key}"})
        with http:
            confirmed = {"X-Auth-Confirm": person.password}
            exported = done(http.get(f"/v1/peers/{peer_id}/export", headers=confirmed), 200)
        assert acknowledged <= {event["event_id"] for event in exported["raw_observations"]}
        assert server.stop() == 0
    verified = run("audit", "verify", "--data", data)
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_to_ask_for_the_end_twice_is_an_end_without_an_error(data: Path, owner: dict[str, str], number: signal.Signals) -> None:
    with Server.serve(data) as server:
        address = urlsplit(server.url)
        with connected(address) as idle, connected(address) as unfinished:
            unfinished.sendall(b"POST /v1/auth/token HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n{")
            idle.sendall(b"GET /health HTTP/1.1\r\nHost: here\r\n\r\n")
            assert idle.recv(4_096).startswith(b"HTTP/1.1 200 ")
            server.process.send_signal(number)
            assert idle.recv(4_096) == b"", "it has begun to stop, and waits for the rest of a body"
            assert (server.stop(number), server.errors()) == (0, "")


def connected(address: SplitResult) -> socket.socket:
    return socket.create_connection((address.hostname or "", address.port or 0), timeout=60)


def test_a_second_process_on_the_same_directory_is_refused(data: Path, owner: dict[str, str]) -> None:
    with Server.serve(data) as server:
        second = run("serve", "--data", data, "--port", "0")
        assert (second.returncode, second.stdout) == (4, "")
        assert (
            second.stderr == f"peergate: another process holds the data directory `{data}`: stop it, or use its HTTP interface\n"
        )
        assert httpx.get(f"{server.url}/health").json() == {"status": "ok"}
        for command in (
            ["derive"],
            ["backup", data.parent / "copy"],
            ["erase"],
            ["audit", "verify"],
            ["key", "recover", "--email", "x@y.z"],
        ):
            assert run(*command, "--data", data).returncode == 4
        assert server.stop() == 0


def test_a_port_that_is_taken_is_said(data: Path, owner: dict[str, str], tmp_path: Path) -> None:
    other = tmp_path / "other"
    init(other)
    with Server.serve(data) as server:
        port = server.url.rpartition(":")[2]
        refused = run("serve", "--data", other, "--port", port)
        assert refused.returncode == 1
        assert port in refused.stderr
        assert server.stop() == 0
