"""Figures: what a reload of 5,000 policies does to the requests that are answered meanwhile."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from gateway.cli.bench.clients import middle, send, send_during
from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.fill import fill
from gateway.cli.bench.load import Load, Request
from gateway.cli.bench.policy_texts import write_policies
from gateway.cli.bench.process import Server, gateway_on
from gateway.cli.exits import CommandError
from gateway.cli.output import Progress

POLICIES = 5_000
PEERS, AGENTS = 100, 10
SECONDS, WARM_SECONDS = 3.0, 1.0
ASK_SECONDS = 0.05
#: Nothing is judged by this; it only keeps a reload that never comes from being waited for without end.
MOST_SECONDS_TO_RELOAD = 600


def reloading(plan: Plan, shown: Progress) -> list[Figure]:
    """`GET /v1/peers/{id}/context` by eight connections, agents that observe the peers they ask about, over a store of a
    hundred peers without a history and a directory of 5,000 policies. Each round writes every generated policy anew, asks for
    a reload by a hangup, and holds the requests from then until `/health` names the new policies to those just before.
    """
    before: list[Load] = []
    during: list[Load] = []
    seconds: list[float] = []
    count = plan.size(POLICIES, least=300)
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory:
        data, policies = Path(directory) / "data", Path(directory) / "policies"
        filled = fill(data, peers=PEERS, observers=AGENTS, agents=AGENTS)
        write_policies(policies, count)
        agents = filled.agents
        requests = [Request(f"/v1/peers/{id_}/context", agents[n % AGENTS].key) for n, id_ in enumerate(filled.peers)]
        with gateway_on(data, audit="relaxed", policies=policies) as server:
            send("own", server.url, requests, plan.seconds(WARM_SECONDS))
            for number in range(plan.rounds):
                shown(number + 1, plan.rounds)
                write_policies(policies, count, edition=number + 1)
                before.append(send("own", server.url, requests, plan.seconds(SECONDS)))
                during.append(send_during(server.url, requests, _reload(server, filled.owner_key, seconds)))
    quiet, loud = middle(before), middle(during)
    ratios = [mine.p99_ms / its.p99_ms for mine, its in zip(during, before, strict=True)]
    refused = sum(load.refused for load in during)
    measured: dict[str, object] = {
        "policies": count,
        "reload_s": median(seconds),
        "before_p50_ms": quiet.p50_ms,
        "before_p99_ms": quiet.p99_ms,
        "before_per_second": quiet.per_second,
        "during_p50_ms": loud.p50_ms,
        "during_p99_ms": loud.p99_ms,
        "during_per_second": loud.per_second,
        "rounds_x": [round(min(ratios), 3), round(max(ratios), 3)],
    }
    what = f"the slowest of a hundred contexts while {count:,} policies are loaded again, against just before"
    failed = "contexts that were refused while the policies were loaded again"
    answered = {"refused": refused, "answers": sum(load.answers for load in during)}
    return [
        Figure("policies-reload", what, "x", loud.p99_ms / quiet.p99_ms, measured, must=at_most(3)),
        Figure("policies-reload-failed", failed, "requests", refused, answered, must=at_most(0)),
    ]


def _reload(server: Server, key: str, seconds: list[float]) -> Callable[[], None]:
    """What has the policies loaded again and waits until they are; how long that took is added to `seconds`."""

    def act() -> None:
        known = _health(server, key)["bundle"]
        start = time.perf_counter()
        os.kill(server.process_id, signal.SIGHUP)
        while (told := _health(server, key))["bundle"] == known:
            if told["policies_failure"] is not None or time.perf_counter() - start > MOST_SECONDS_TO_RELOAD:
                raise CommandError(f"the policies were not loaded again: {told['policies_failure']}")
            time.sleep(ASK_SECONDS)
        seconds.append(time.perf_counter() - start)

    return act


def _health(server: Server, key: str) -> dict[str, Any]:
    address = urlsplit(server.url)
    connection = HTTPConnection(address.hostname or "", address.port)
    try:
        connection.request("GET", "/health", headers={"Authorization": f"Bearer {key}"})
        told: dict[str, Any] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return told
