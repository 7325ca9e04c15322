"""Figures: contexts a second under eight clients, against a bare JSON route; and what a record on disk adds."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from gateway.cli.bench.clients import middle, send
from gateway.cli.bench.figure import Figure, Plan, at_least, at_most
from gateway.cli.bench.fill import Filled, fill, fill_events
from gateway.cli.bench.load import Load, Request
from gateway.cli.bench.process import gateway_on, listening
from gateway.cli.output import Progress
from gateway.config import Settings
from gateway.store.sweep import derive_all
from gateway.wiring import create_data, open_services

PEERS, AGENTS, BUCKETS = 100, 10, 10
SECONDS, WARM_SECONDS = 3.0, 1.0


def context(plan: Plan, shown: Progress) -> list[Figure]:
    """One server process each, all of them up; the load goes to one after the other, round by round."""
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory:
        relaxed, durable, empty = (Path(directory) / name for name in ("relaxed", "durable", "empty"))
        requests = _requests(_prepare(relaxed))
        shutil.copytree(relaxed, durable)
        create_data(empty)
        with gateway_on(relaxed, audit="relaxed") as one, gateway_on(durable, audit="durable") as other:
            seconds, warm = plan.seconds(SECONDS), plan.seconds(WARM_SECONDS)
            size = round(send(plan.clients, one.url, requests, warm).answer_bytes)
            send(plan.clients, other.url, requests, warm)
            with listening(["gateway.cli.bench.bare_server", str(empty), str(size)]) as bare:
                targets = [(bare.url, [Request("/", "none")]), (one.url, requests), (other.url, requests)]
                send(plan.clients, bare.url, targets[0][1], warm)
                rounds: list[list[Load]] = [[] for _ in targets]
                for number in range(plan.rounds):
                    shown(number + 1, plan.rounds)
                    for series, (url, sent) in zip(rounds, targets, strict=True):
                        series.append(send(plan.clients, url, sent, seconds))
    return _figures(plan, *(middle(series) for series in rounds))


def _figures(plan: Plan, bare: Load, relaxed: Load, durable: Load) -> list[Figure]:
    return [
        Figure(
            "context",
            "contexts a second with a relaxed audit, against a bare JSON route of the same size in the same server",
            "x",
            relaxed.per_second / bare.per_second,
            {
                "clients": plan.clients,
                "answer_bytes": relaxed.answer_bytes,
                **_shown("bare", bare),
                **_shown("relaxed", relaxed),
            },
            must=at_least(0.15),
            aim=at_least(0.30),
        ),
        Figure(
            "context-durable",
            "half of the contexts come so much later when each record is on disk before its answer",
            "ms",
            durable.p50_ms - relaxed.p50_ms,
            {"clients": plan.clients, "relaxed_p50_ms": relaxed.p50_ms, **_shown("durable", durable)},
            must=at_most(5),
            beside=durable.per_second / relaxed.per_second,
        ),
    ]


def _shown(name: str, load: Load) -> dict[str, float]:
    return {
        f"{name}_per_second": load.per_second,
        f"{name}_p50_ms": load.p50_ms,
        f"{name}_p99_ms": load.p99_ms,
        f"{name}_clients_busy": load.clients_busy,
    }


def _prepare(data: Path) -> Filled:
    """A data directory whose peers have facts to tell of."""
    filled = fill(data, peers=PEERS, observers=AGENTS, agents=AGENTS)
    services = open_services(Settings(data=data))
    try:
        now = services.clock()
        fill_events(services.database, filled.org_id, filled.peers, buckets=BUCKETS, now=now)
        asyncio.run(derive_all(services.database, now))
    finally:
        services.database.close()
    return filled


def _requests(filled: Filled) -> list[Request]:
    """Each peer is read once a turn, by another agent than the one before it."""
    return [
        Request(f"/v1/peers/{peer_id}/context", filled.agents[number % len(filled.agents)].key)
        for number, peer_id in enumerate(filled.peers)
    ]
