"""Figures: four times as much as a server can answer, and what it is like under that and after it."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, cast

from gateway import limits
from gateway.cli.bench.clients import send
from gateway.cli.bench.context import prepare, requests_to
from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.flood import Job
from gateway.cli.bench.load import Request
from gateway.cli.bench.process import Server, gateway_on, start_module
from gateway.cli.exits import CommandError
from gateway.cli.output import Progress
from gateway.web.accepting import allow_files

TIMES = 4
#: Connections that are left for others; the flood takes all the rest.
SPARE = 96
#: A first flood, after which everything that many connections need has been had once.
WARM_SECONDS = 10.0
CALM_SECONDS = 3.0
#: Memory at the end of the flood, against after the first; half of the answers after it, against before.
MEMORY_FACTOR, RECOVERED_FACTOR, RECOVERED_SECONDS = 1.25, 2.0, 5.0
#: What one look at the recovery takes, and how long it is looked for.
LOOK_SECONDS, MOST_SECONDS = 0.5, 60.0
#: A server that is overloaded answers so, and with success. Anything else, and an answer that breaks off, is a fault.
FINE = {"200", "429", "503"}


def overload(plan: Plan, shown: Progress) -> list[Figure]:
    """Contexts with a relaxed audit: calm, a first flood, the flood, and calm again.

    Each connection wants to send at a rate, together four times what was answered in calm, and waits for its answer first,
    so that what was sent may be less: the rest is what the server held back.
    """
    connections = plan.size(limits.CONNECTIONS - SPARE, least=limits.CONCURRENT_REQUESTS + 128)
    allow_files(connections + 1_024)
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory:
        data = Path(directory) / "data"
        requests = requests_to(prepare(data))
        with gateway_on(data, audit="relaxed") as server:
            send("own", server.url, requests, plan.seconds(CALM_SECONDS))
            calm = send("own", server.url, requests, plan.seconds(CALM_SECONDS))
            rate = TIMES * calm.per_second
            shown(1, 2)
            _, warm = _flood(server, requests, rate, connections, plan.seconds(WARM_SECONDS))
            shown(2, 2)
            came, end = _flood(server, requests, rate, connections, plan.seconds(plan.overload_seconds))
            recovered, p50 = _recovered(server, requests, calm.p50_ms)
    statuses: dict[str, int] = came["statuses"]
    bad = came["broken"] + sum(count for status, count in statuses.items() if status not in FINE)
    seconds = plan.seconds(plan.overload_seconds)
    measured: dict[str, object] = {
        "seconds": seconds,
        "connections": connections,
        "calm_per_second": calm.per_second,
        "calm_p50_ms": calm.p50_ms,
        "wanted_times_calm": float(TIMES),
        "sent_times_calm": came["sent"] / seconds / calm.per_second,
        "answered_times_calm": statuses.get("200", 0) / seconds / calm.per_second,
        "clients_busy": came["clients_busy"],
        "load_average": os.getloadavg()[0],
        **{f"status_{status}": count for status, count in sorted(statuses.items())},
    }
    figures = [
        Figure(
            "overload-statuses",
            f"answers that are no success, 429 or 503, and ones that broke off, at {TIMES} times what it can answer",
            "requests",
            bad,
            {**measured, "broken": came["broken"]},
            must=at_most(0),
        ),
        Figure(
            "overload-recovery",
            f"from the end of it until half of the answers take at most {RECOVERED_FACTOR:g} times what they took before",
            "s",
            recovered,
            {"p50_ms": p50, "calm_p50_ms": calm.p50_ms},
            must=at_most(RECOVERED_SECONDS),
            beside=p50 / calm.p50_ms,
        ),
    ]
    if warm is not None and end is not None:
        what = "memory at the end of it, against after a first flood as large"
        held: dict[str, object] = {"warm_mb": warm / 1e6, "end_mb": end / 1e6}
        figures.insert(0, Figure("overload-memory", what, "x", end / warm, held, must=at_most(MEMORY_FACTOR)))
    return figures


def _flood(
    server: Server, requests: Sequence[Request], rate: float, connections: int, seconds: float
) -> tuple[dict[str, Any], int | None]:
    """What came back, and the memory that the server held just before the end."""
    job = Job(server.url, list(requests), rate, connections, seconds)
    with tempfile.TemporaryFile() as errors:
        process = start_module(["gateway.cli.bench.flood"], errors)
        try:
            told = cast(IO[bytes], process.stdin)
            told.write(json.dumps(asdict(job)).encode() + b"\n")
            told.flush()
            time.sleep(seconds)
            held = server.resident_bytes()
            said, _ = process.communicate()
        finally:
            process.kill()
        if process.returncode:
            errors.seek(0)
            raise CommandError(f"the flood did not go through: {errors.read().decode('utf-8', 'replace')[-1_000:]}")
    return json.loads(said), held


def _recovered(server: Server, requests: Sequence[Request], before: float) -> tuple[float, float]:
    """How many seconds it took, to the end of the look that was fine, and half of the answers' milliseconds in that."""
    start = time.perf_counter()
    while True:
        p50 = send("own", server.url, requests, LOOK_SECONDS).p50_ms
        seconds = time.perf_counter() - start
        if p50 <= RECOVERED_FACTOR * before or seconds > MOST_SECONDS:
            return seconds, p50
