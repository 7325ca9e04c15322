"""Clients: our own load process, or `wrk` where it is installed; both answer with the same figures."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import IO, cast
from urllib.parse import urlsplit

from gateway.cli.bench.figure import Clients
from gateway.cli.bench.load import CONNECTIONS, Load, Request
from gateway.cli.bench.process import start_module
from gateway.cli.exits import USAGE, CommandError

UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
SCRIPT = """local requests = {{
{requests}
}}
local at = 0
request = function() at = at % #requests + 1; return requests[at] end
"""


def choose(asked: str | None) -> Clients:
    """The clients that were asked for; without a wish `wrk`, where it is installed.

    Raises:
        CommandError: `wrk` was asked for and is not there.
    """
    found = shutil.which("wrk") is not None
    if asked == "wrk" and not found:
        raise CommandError("`--clients wrk`: there is no `wrk` on the path; `--clients own` needs nothing", USAGE)
    return "wrk" if found and asked != "own" else "own"


def send(clients: Clients, url: str, requests: Sequence[Request], seconds: float) -> Load:
    """Keep eight connections busy with these requests, in turn, for some seconds.

    Raises:
        CommandError: nothing was answered with success, or something with neither that nor `503`.
    """
    return _wrk(url, requests, seconds) if clients == "wrk" else _own(url, requests, seconds)


def answer_bytes(url: str, request: Request) -> int:
    """The size of the body of one answer."""
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port)
    try:
        connection.request("GET", request.path, headers={"Authorization": f"Bearer {request.key}"})
        return len(connection.getresponse().read())
    finally:
        connection.close()


def middle(loads: Sequence[Load]) -> Load:
    """The median of each figure over the rounds."""
    return Load(*(median(getattr(load, name) for load in loads) for name in Load.__slots__))


def send_during(url: str, requests: Sequence[Request], act: Callable[[], None]) -> Load:
    """Keep eight connections busy with these requests for as long as `act` takes; by our own clients.

    Raises:
        CommandError: as `send`.
    """
    return _own(url, requests, None, act)


def _own(url: str, requests: Sequence[Request], seconds: float | None, act: Callable[[], None] | None = None) -> Load:
    job = {"url": url, "requests": [asdict(request) for request in requests], "seconds": seconds}
    with tempfile.TemporaryFile() as errors:
        process = start_module(["gateway.cli.bench.load"], errors)
        told = cast(IO[bytes], process.stdin)
        try:
            told.write(json.dumps(job).encode() + b"\n")
            told.flush()
            if act is not None:
                act()
            said, _ = process.communicate()
        finally:
            process.kill()
        if process.returncode:
            errors.seek(0)
            raise CommandError(f"the load did not go through: {errors.read().decode('utf-8', 'replace')[-1_000:]}")
    return Load(**json.loads(said))


def _wrk(url: str, requests: Sequence[Request], seconds: float) -> Load:
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "requests.lua"
        # The keys are in a file and not among the arguments, which everybody on the machine can read.
        script.write_text(SCRIPT.format(requests=",\n".join(_lua(request) for request in requests)), "utf-8")
        whole = max(1, round(seconds))
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{whole}s", "--latency", "-s", str(script), url]
        start, busy = time.perf_counter(), _children()
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own words
        elapsed, busy = time.perf_counter() - start, _children() - busy
    said = done.stdout
    answers, refused = int(_found(r"(\d+) requests in", said)[0]), _refused(said)
    if done.returncode or refused == answers or "Socket errors" in said:
        raise CommandError(f"the load did not go through: {said}{done.stderr}")
    return Load(
        answers=answers - refused,
        per_second=float(_found(r"Requests/sec:\s+([\d.]+)", said)[0]) * (answers - refused) / answers,
        p50_ms=_latency("50%", said),
        p99_ms=_latency("99%", said),
        refused=refused,
        clients_busy=busy / elapsed,
    )


def _refused(said: str) -> int:
    """How many answers were no success; which ones, `wrk` does not say."""
    found = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    return int(found[1]) if found is not None else 0


def _lua(request: Request) -> str:
    headers = {"Authorization": f"Bearer {request.key}"}
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    pairs = ", ".join(f'["{name}"] = "{value}"' for name, value in headers.items())
    method, body = ("GET", "nil") if request.body is None else ("POST", f"[==[{request.body}]==]")
    return f'wrk.format("{method}", "{request.path}", {{{pairs}}}, {body})'


def _latency(share: str, said: str) -> float:
    number, unit = _found(rf"{share}\s+([\d.]+)(us|ms|s)", said)
    return float(number) * UNITS[unit]


def _found(pattern: str, said: str) -> tuple[str, ...]:
    found = re.search(pattern, said)
    if found is None:
        raise CommandError(f"`wrk` said something unknown: {said}")
    return found.groups()


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
