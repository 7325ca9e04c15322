"""The yardstick of a request: a Starlette route that answers JSON, in the gateway's own server and nothing else of it.

Run as a module with a data directory and the bytes of an answer; prints `{"url": ...}` once it answers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from gateway.config import Settings
from gateway.web.server import serve
from gateway.wiring import open_services

EMPTY = len(json.dumps({"context": ""}, separators=(",", ":")))


def bare_app(size: int) -> Starlette:
    """An application that answers one route with JSON of `size` bytes, encoded anew each time."""
    text = "x" * max(size - EMPTY, 0)

    async def answer(request: Request) -> JSONResponse:
        return JSONResponse({"context": text})

    return Starlette(routes=[Route("/", answer)])


def main(data: str, size: str) -> None:
    """Serve until SIGTERM."""
    services = open_services(Settings(data=Path(data), port=0))
    serve(bare_app(int(size)), services, ready=lambda url: print(json.dumps({"url": url}), flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
