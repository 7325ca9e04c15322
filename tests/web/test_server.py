"""One serving process, from outside: its port, its stop, and what it does with broken HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from gateway.config import Settings
from gateway.web import server as server_module
from gateway.web.protocol import HEAD_BYTES
from gateway.web.server import ServeError, address, listen
from gateway.wiring import create_data, open_services, set_up_org

SERVE = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from gateway.config import Settings
from gateway.web.app import create_app
from gateway.operations.sweeps import Sweep
from gateway.web.server import serve
from gateway.wiring import OPERATIONS, open_services

def say(*words):
    print(*words, flush=True)

async def sweep():
    say("swept")
    raise ValueError("a sweep that fails")

services = open_services(Settings(data=Path(sys.argv[1]), port=0, audit=sys.argv[2]))
serve(
    create_app(services, OPERATIONS), services,
    ready=lambda url: say("ready", url), sweeps=[Sweep("failing", timedelta(milliseconds=200), sweep)],
)
say("stopped")
"""


class Process:
    """A server in a process of its own, on a free port."""

    def __init__(self, data: Path, audit: str = "durable") -> None:
        self.data = data
        create_data(data)
        services = open_services(Settings(data=data))
        self.key = set_up_org(services, name="o", email="owner@sample.example").api_key
        services.database.close()
        command = [sys.executable, "-c", SERVE, str(data), audit]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = next(line.split()[1] for line in self.process.stdout if line.startswith("ready"))

    def get(self, path: str) -> httpx2.Response:
        return httpx2.get(self.url + path, headers={"Authorization": f"Bearer {self.key}"})

    def stop(self, number: signal.Signals) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=5)
        return self.process.returncode, out, err

    def raw(self, sent: bytes) -> bytes:
        """What comes back on a connection that sends these bytes, until the server closes it."""
        host, port = self.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            received = b""
            # A server that has seen enough closes while we send: what it said before is what counts.
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                connection.sendall(sent)
                while piece := connection.recv(65_536):
                    received += piece
            return received


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    made = Process(tmp_path_factory.mktemp("server") / "data")
    yield made
    assert made.stop(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("audit", ["durable", "relaxed"])
def test_it_stops_cleanly_within_five_seconds_with_everything_answered_on_disk(
    tmp_path: Path, audit: str, number: signal.Signals
) -> None:
    server = Process(tmp_path / "data", audit)
    with httpx2.Client() as idle:
        assert idle.get(server.url + "/health").json() == {"status": "ok"}
        for index in range(20):
            answered = httpx2.get(
                server.url + "/v1/audit/verify", headers={"Authorization": f"Bearer {server.key}", "X-Request-Id": f"r{index}"}
            )
            assert answered.status_code == 200
        code, out, err = server.stop(number)
    assert (code, out.splitlines()[-1]) == (0, "stopped")
    assert "what" not in out
    assert "request sweep failing failed with ValueError" in err
    assert "a sweep that fails" not in err.replace('raise ValueError("a sweep that fails")', "")
    services = open_services(Settings(data=server.data))
    found = services.database.read_sync(
        lambda rows: rows.all("SELECT request_id FROM log WHERE request_id LIKE 'r%' ORDER BY seq")
    )
    services.database.close()
    assert found == [(f"r{index}",) for index in range(20)]


def test_it_writes_a_line_of_json_a_request_to_its_standard_error(tmp_path: Path) -> None:
    server = Process(tmp_path / "data")
    answered = httpx2.get(server.url + "/v1/peers", headers={"Authorization": f"Bearer {server.key}", "X-Request-Id": "mine"})
    code, _, err = server.stop(signal.SIGTERM)
    lines = [json.loads(line) for line in err.splitlines()]
    assert (code, answered.status_code) == (0, 200)
    [line] = [line for line in lines if line.get("request_id") == "mine"]
    assert (line["operation"], line["status"], len(line["decisions"])) == ("peer.list", 200, 1)


LOSE = """
import duckdb
from gateway.store.writer import Unit

def vanish(tx):
    services.database.files.database.unlink()
    services.database.files.wal.unlink(missing_ok=True)
    raise duckdb.FatalException("the disk is gone")

async def lose():
    await services.database.awrite(Unit(vanish))

sweeps = [Sweep("losing", timedelta(days=1), lose)]
"""


def test_it_stops_with_a_sentence_when_its_database_is_lost(tmp_path: Path) -> None:
    create_data(tmp_path / "data")
    head, _, tail = SERVE.partition("serve(\n")
    script = head + LOSE + "serve(\n" + tail.replace('[Sweep("failing", timedelta(milliseconds=200), sweep)]', "sweeps")
    command = [sys.executable, "-c", script, str(tmp_path / "data"), "durable"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "stopped" in done.stdout) == (1, False)
    last = done.stderr.splitlines()[-1]
    assert last == (
        "gateway.web.server.StoreLost: the server has stopped, because the database has failed: the disk is gone; "
        "it could not be opened again: its file is gone"
    )


def test_an_answer_names_no_server_software(server: Process) -> None:
    made = server.get("/health")
    assert sorted(made.headers) == [
        "cache-control",
        "content-length",
        "content-type",
        "date",
        "x-content-type-options",
        "x-request-id",
    ]


@pytest.mark.parametrize(
    "target",
    [
        b"//",
        b"/..",
        b"/../etc/passwd",
        b"/v1/../v1/peers",
        b"/%00",
        b"/%ff",
        b"/%",
        b"/v1/peers/%zz",
        b"http://a/v1/x",
        b"/v1/x;a=b",
    ],
)
def test_a_hostile_path_is_a_404(server: Process, target: bytes) -> None:
    assert server.raw(b"GET %b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % target).startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"POST /v1/peers HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/peers HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/peers HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * (2 * HEAD_BYTES),
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * HEAD_BYTES,
        b"GET /" + b"x" * (2 * HEAD_BYTES),
    ],
)
def test_what_is_not_http_is_a_400_and_closed(server: Process, sent: bytes) -> None:
    assert server.raw(sent).startswith(b"HTTP/1.1 400 ")


def test_a_body_over_the_limit_is_answered_before_it_ends(server: Process) -> None:
    head = b"POST /v1/agents HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer %b\r\n" % server.key.encode()
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    assert server.raw(head + b"Content-Length: 300000\r\n\r\n").startswith(b"HTTP/1.1 413 ")
    assert server.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 5).startswith(b"HTTP/1.1 413 ")
    large = httpx2.post(server.url + "/v1/agents", headers={"Authorization": f"Bearer {server.key}"}, content=b" " * 5_000_000)
    assert (large.status_code, large.json()["title"]) == (413, "too large")


@pytest.mark.parametrize(
    "sent",
    [
        b"Content-Length: 1000000000\r\n\r\n",
        b"Content-Length: 1000000000\r\nExpect: 100-continue\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n",
        b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n" + b"X: y\r\n" * HEAD_BYTES,
    ],
)
def test_whoever_shows_no_credential_holds_no_connection_with_a_body(server: Process, sent: bytes) -> None:
    received = server.raw(b"POST /v1/peers HTTP/1.1\r\nHost: a\r\n" + sent)
    head, status = received.partition(b"\r\n\r\n")[0], received[9:12]
    assert (status, b"connection: close" in head) in ((b"401", True), (b"400", True))


def test_two_requests_in_one_piece_are_answered_in_order(server: Process) -> None:
    one = b"GET /health HTTP/1.1\r\nHost: a\r\nX-Request-Id: one\r\n\r\n"
    two = b"GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: two\r\n\r\n"
    received = server.raw(one + two)
    assert received.index(b"x-request-id: one") < received.index(b"x-request-id: two")


def test_hangups_during_a_reload_ask_for_one_more_and_one_that_fails_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    reloads: list[object] = []

    async def run() -> None:
        asked = asyncio.Event()

        async def reload(services: object) -> None:
            reloads.append(services)
            for _ in range(5 if len(reloads) < 3 else 0):
                asked.set()
                await asyncio.sleep(0)
            if len(reloads) == 2:
                raise ValueError

        monkeypatch.setattr(server_module, "reload", reload)
        task = asyncio.create_task(server_module._reload_when(asked, "services"))  # type: ignore[arg-type]
        asked.set()
        for _ in range(50):
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(run())
    assert reloads == ["services"] * 3


def test_an_address_that_is_taken_or_none_is_refused_with_a_sentence() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert address(taken) == f"http://127.0.0.1:{port}"
        sentence = f"^cannot listen on 127.0.0.1 port {port}: Address already in use; --port 0 picks a free one$"
        with pytest.raises(ServeError, match=sentence):
            listen("127.0.0.1", port)
    with pytest.raises(ServeError, match=r"^cannot listen on 203\.0\.113\.1 port 0: Cannot assign requested address$"):
        listen("203.0.113.1", 0)
