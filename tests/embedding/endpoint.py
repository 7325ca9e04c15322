"""An OpenAI-compatible endpoint on this machine: a real one, whose answers a test chooses."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gateway.embedding.embedder import Embedder
from gateway.embedding.http import http_embedder

Answer = Callable[[dict[str, Any]], tuple[int, object]]
#: How a body starts that is compressed.
PACKED = gzip.compress(b"")[:3]


@dataclass
class Endpoint:
    """Answers with what `answer` makes of a request, and keeps each of them with its credential.

    After it come `more` bytes of white space, one at a time.
    """

    answer: Answer
    url: str = ""
    more: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    shown: list[str | None] = field(default_factory=list)

    def embedder(self, key: str | None = None) -> Embedder:
        return http_embedder(self.url + "/v1", "a-model", key)


def vectors(size: int, shortened: int | None = None) -> Answer:
    """An answer in the reverse order, as an endpoint may give it."""

    def answer(asked: dict[str, Any]) -> tuple[int, object]:
        numbers = size if "dimensions" not in asked else shortened or asked["dimensions"]
        each = [{"index": n, "embedding": [float(n + 1), *[1.0] * (numbers - 1)]} for n in range(len(asked["input"]))]
        return 200, {"data": each[::-1]}

    return answer


@contextmanager
def serving() -> Iterator[Endpoint]:
    """An endpoint that answers until the block ends."""
    made = Endpoint(vectors(4))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.asked.append(body)
            made.shown.append(self.headers["Authorization"])
            status, answer = made.answer(body) if self.path == "/v1/embeddings" else (404, {})
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content) + made.more))
            if content.startswith(PACKED):
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            self.wfile.write(content)
            with suppress(ConnectionError):
                for _ in range(made.more):
                    self.wfile.write(b" ")
                    time.sleep(0.001)

        def log_message(self, *_: object) -> None:
            """Nothing: it is a test."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        server.shutdown()
        thread.join()
