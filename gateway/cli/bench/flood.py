"""Flood: more requests than a server can answer, from a process of its own, over many connections at a rate.

Run as a module it reads a job as a line of JSON from standard input and prints what came back: how many answers of each
status, and how many connections broke. A connection that was closed behind an answer is opened again when its next request is
due.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import cast
from urllib.parse import urlsplit

from gateway.cli.bench.load import END_OF_HEAD, LENGTH, Request, run_fast

#: In the head of the last answer of a connection.
CLOSE = b"connection: close\r\n"
#: Connections that are opened at once.
OPENING = 64
#: What a client waits for a connection or an answer at the end.
LAST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Job:
    """Where to, what, at how many requests a second in all, over how many connections, and for how long."""

    url: str
    requests: list[Request]
    rate: float
    connections: int
    seconds: float


class _Run:
    """What all connections share."""

    def __init__(self, job: Job) -> None:
        address = urlsplit(job.url)
        self.host, self.port = address.hostname or "", address.port or 80
        self.loop = asyncio.get_running_loop()
        self.every = job.connections / job.rate
        self.until = perf_counter() + job.seconds
        self.statuses: Counter[str] = Counter()
        self.broken = 0
        self.sent = 0
        self._requests = [request.encoded(address.netloc) for request in job.requests]

    def request(self) -> bytes:
        self.sent += 1
        return self._requests[self.sent % len(self._requests)]


class _Connection(asyncio.Protocol):
    """One connection: a request, its answer, and the next when it is `due`, here or, where it was closed, on another."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._received = b""
        self.due = perf_counter()
        self._waits = False
        self.ended: asyncio.Future[None] = run.loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(END_OF_HEAD)
        start = self._received.find(LENGTH, 0, head) if head >= 0 else -1
        if start < 0:
            return
        start += len(LENGTH)
        size = int(self._received[start : self._received.index(b"\r", start)])
        if len(self._received) < head + len(END_OF_HEAD) + size:
            return
        self._run.statuses[self._received[9:12].decode("ascii", "replace")] += 1
        last = self._received.find(CLOSE, 0, head + len(CLOSE)) >= 0
        self._received, self._waits = b"", False
        self.due = max(self.due + self._run.every, perf_counter())
        if last:
            self._transport.close()
        else:
            self._run.loop.call_later(self.due - perf_counter(), self._send)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waits:
            self._run.broken += 1
        if not self.ended.done():
            self.ended.set_result(None)

    def _send(self) -> None:
        if perf_counter() >= self._run.until:
            self._transport.close()
        elif not self._transport.is_closing():
            self._waits = True
            self._transport.write(self._run.request())


async def flood(job: Job) -> dict[str, object]:
    """Send, and say what came back."""
    begun, run, opening = perf_counter(), _Run(job), asyncio.Semaphore(OPENING)

    async def connected() -> None:
        while perf_counter() < run.until:
            async with opening:
                _, connection = await run.loop.create_connection(lambda: _Connection(run), run.host, run.port)
            await connection.ended
            await asyncio.sleep(connection.due - perf_counter())

    await asyncio.wait_for(asyncio.gather(*(connected() for _ in range(job.connections))), job.seconds + LAST_SECONDS)
    busy = process_time() / (perf_counter() - begun)
    return {"sent": run.sent, "statuses": dict(run.statuses), "broken": run.broken, "clients_busy": busy}


def main() -> None:
    """Do the job on standard input."""
    job = json.loads(sys.stdin.readline())
    print(json.dumps(run_fast(flood(Job(**{**job, "requests": [Request(**request) for request in job["requests"]]})))))


if __name__ == "__main__":
    main()
