"""Load: requests over keep-alive connections from a process of its own, each connection one request at a time.

Run as a module it reads a job as a line of JSON from standard input and prints what it measured; a job without `seconds` lasts
until that input ends. Nothing is parsed beyond what is
needed to know that an answer is whole and what it is, so that the clients are not what is measured. A server that says to
come back later (503) is asked again, and that is counted; any other answer than 200 ends the measurement.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import math
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

T = TypeVar("T")

CONNECTIONS = 8
END_OF_HEAD = b"\r\n\r\n"
LENGTH = b"content-length: "


@dataclass(frozen=True, slots=True)
class Request:
    """One request: `GET` without a body, else `POST` with one of JSON."""

    path: str
    key: str
    body: str | None = None

    def encoded(self, host: str) -> bytes:
        fields = f"{self.path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {self.key}\r\n"
        if self.body is None:
            return f"GET {fields}\r\n".encode()
        body = self.body.encode()
        return f"POST {fields}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass(frozen=True, slots=True)
class Load:
    """What came back: how many answers, how many a second, and their times; how many were 503 instead, of which there are
    no times; and how busy the clients were (1 is wholly).
    """

    answers: float
    per_second: float
    p50_ms: float
    p99_ms: float
    refused: float
    clients_busy: float


class _Run:
    """The connections' shared state: what to send next, and what came back."""

    def __init__(self, requests: list[bytes], until: float) -> None:
        self._requests = requests
        self._until = until
        self._next = 0
        self._open = CONNECTIONS
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.times: list[float] = []
        self.refused = 0

    def request(self) -> bytes | None:
        """The next one to send, or None when it is time to stop."""
        if perf_counter() >= self._until:
            self._open -= 1
            if not self._open and not self.ended.done():
                self.ended.set_result(None)
            return None
        self._next += 1
        return self._requests[self._next % len(self._requests)]

    def stop(self) -> None:
        """Nothing is sent after what is under way."""
        self._until = 0.0

    def fail(self, why: str) -> None:
        if not self.ended.done():
            self.ended.set_exception(RuntimeError(why))


class _Connection(asyncio.Protocol):
    """One keep-alive connection."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._sent_at = 0.0
        self._received = b""
        self._stopped = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        head = received.find(END_OF_HEAD)
        start = received.find(LENGTH, 0, head) if head >= 0 else -1
        if start < 0:
            self._received = received
            return
        start += len(LENGTH)
        size = int(received[start : received.index(b"\r", start)])
        if len(received) < head + len(END_OF_HEAD) + size:
            self._received = received
            return
        self._received = b""
        if received.startswith(b"HTTP/1.1 200 "):
            self._run.times.append(perf_counter() - self._sent_at)
        elif received.startswith(b"HTTP/1.1 503 "):
            self._run.refused += 1
        else:
            self._run.fail(received[:500].decode("utf-8", "replace"))
            return
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._stopped:
            self._run.fail(f"a connection was closed: {exc}")

    def _send(self) -> None:
        request = self._run.request()
        if request is None:
            self._stopped = True
            self._transport.close()
            return
        self._sent_at = perf_counter()
        self._transport.write(request)


async def load(url: str, requests: list[Request], seconds: float | None) -> Load:
    """Send requests in turn for some seconds, or else until the standard input ends.

    Raises:
        RuntimeError: with an answer that is neither 200 nor 503, or none was 200.
    """
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or 80
    start, busy = perf_counter(), process_time()
    run = _Run([request.encoded(address.netloc) for request in requests], math.inf if seconds is None else start + seconds)
    loop = asyncio.get_running_loop()
    if seconds is None:
        loop.add_reader(sys.stdin.fileno(), run.stop)
    for _ in range(CONNECTIONS):
        await loop.create_connection(lambda: _Connection(run), host, port)
    await run.ended
    elapsed = perf_counter() - start
    times = sorted(run.times)
    if not times:
        raise RuntimeError("no request was answered with success")
    return Load(
        answers=len(times),
        per_second=len(times) / elapsed,
        p50_ms=times[len(times) // 2] * 1e3,
        p99_ms=times[len(times) * 99 // 100] * 1e3,
        refused=run.refused,
        clients_busy=(process_time() - busy) / elapsed,
    )


def main() -> None:
    """Do the job on standard input."""
    job = json.loads(sys.stdin.readline())
    requests = [Request(**request) for request in job["requests"]]
    done = run_fast(load(job["url"], requests, job["seconds"]))
    print(json.dumps({name: getattr(done, name) for name in Load.__slots__}))


def run_fast(measured: Coroutine[Any, Any, T]) -> T:
    """Run it on the fastest loop there is: what is measured is the server, and not its clients."""
    if importlib.util.find_spec("uvloop") is None:
        return asyncio.run(measured)
    with asyncio.Runner(loop_factory=importlib.import_module("uvloop").new_event_loop) as runner:
        return runner.run(measured)


if __name__ == "__main__":
    main()
