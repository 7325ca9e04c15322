"""Figure: how many rows a second an agent can have remembered, each by a request of its own."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from starlette.types import ASGIApp, Message

from gateway.cli.bench.corpus import Passage, corpus
from gateway.cli.bench.figure import Figure, Plan
from gateway.cli.bench.fill import fill
from gateway.cli.exits import CommandError
from gateway.cli.output import Progress
from gateway.config import Settings
from gateway.web.app import create_app
from gateway.wiring import OPERATIONS, open_services

ROWS, CLIENTS = 100_000, 64
#: What is not remembered in this time is left out: a rate needs no more.
SECONDS = 60.0
PATH = "/v1/memories"


def insert(plan: Plan, shown: Progress) -> list[Figure]:
    """Requests to the application in this process: authenticated, decided, recorded and on disk before each answer."""
    rows = plan.size(ROWS)
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory:
        data = Path(directory) / "data"
        filled = fill(data, peers=0, observers=0, agents=1)
        services = open_services(Settings(data=data, rate_limit=0, embedding="off"))
        try:
            app = create_app(services, OPERATIONS)
            done, seconds = asyncio.run(_send(app, filled.agents[0].key, _bodies(rows), plan.seconds(SECONDS), shown))
        finally:
            services.database.close()
    measured: dict[str, object] = {"rows": done, "clients": CLIENTS, "seconds": seconds}
    return [
        Figure("memory-insert", "rows remembered a second, each on disk before its answer", "rows/s", done / seconds, measured)
    ]


def _bodies(rows: int) -> Iterator[bytes]:
    encoded = [json.dumps(_body(passage)).encode() for passage in corpus() if passage.project_id is not None]
    return (encoded[number % len(encoded)] for number in range(rows))


def _body(passage: Passage) -> dict[str, object]:
    body = {"text": passage.text, "project_id": passage.project_id, "tags": passage.tags, "layer": passage.layer}
    return {**body, "classification": passage.classification}


async def _send(app: ASGIApp, key: str, bodies: Iterator[bytes], most: float, shown: Progress) -> tuple[int, float]:
    """Send the bodies from all clients for at most so many seconds; return how many rows were remembered, and in how many."""
    done, start = 0, perf_counter()

    async def client() -> None:
        nonlocal done
        for body in bodies:
            await _post(app, key, body)
            done += 1
            if done % 1_000 == 0:
                shown(done)
            if perf_counter() - start > most:
                return

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return done, perf_counter() - start


async def _post(app: ASGIApp, key: str, body: bytes) -> None:
    """One request, without a socket.

    Raises:
        CommandError: it was not answered with a new row.
    """
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json", "content-length": str(len(body))}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    answers: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        answers.append(message)

    await app(scope, receive, send)
    if answers[0]["status"] != 201:
        raise CommandError(f"POST {PATH} answers {answers[0]['status']}: {answers[-1].get('body', b'').decode()}")
