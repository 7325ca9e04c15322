"""Figures: contexts a second under eight clients, against a bare JSON route; and what a record on disk adds."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from gateway.cli.bench.clients import answer_bytes, middle, send
from gateway.cli.bench.figure import Figure, Plan, at_least, at_most
from gateway.cli.bench.fill import Filled, fill, fill_events
from gateway.cli.bench.load import Load, Request
from gateway.cli.bench.process import Server, gateway_on, listening
from gateway.cli.output import Progress
from gateway.config import Settings
from gateway.store.sweep import derive_all
from gateway.wiring import create_data, open_services

PEERS, AGENTS, BUCKETS = 100, 10, 10
SECONDS, WARM_SECONDS = 3.0, 1.0


@dataclass(frozen=True, slots=True)
class _Target:
    """A server under load, and what each round brought; `processor` is its own time a request, in microseconds."""

    server: Server
    requests: Sequence[Request]
    loads: list[Load] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def context(plan: Plan, shown: Progress) -> list[Figure]:
    """One server process each, all of them up; the load goes to one after the other, round by round."""
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory, _serving(Path(directory)) as (size, targets):
        for target in targets:
            send(plan.clients, target.server.url, target.requests, plan.seconds(WARM_SECONDS))
        for number in range(plan.rounds):
            shown(number + 1, plan.rounds)
            for target in targets:
                _load(plan, target)
    bare, relaxed, durable = (middle(target.loads) for target in targets)
    measured: dict[str, object] = {"clients": plan.clients, "answer_bytes": size}
    for name, target in zip(("bare", "relaxed", "durable"), targets, strict=True):
        measured |= _shown(name, target)
    return [
        Figure(
            "context",
            "contexts a second with a relaxed audit, against a bare JSON route of the same size in the same server",
            "x",
            relaxed.per_second / bare.per_second,
            measured,
            must=at_least(0.15),
            aim=at_least(0.30),
        ),
        Figure(
            "context-durable",
            "how much later half of the contexts come when each record is on disk before its answer",
            "ms",
            durable.p50_ms - relaxed.p50_ms,
            {"relaxed_p50_ms": relaxed.p50_ms, "durable_p50_ms": durable.p50_ms},
            must=at_most(5),
            beside=durable.per_second / relaxed.per_second,
        ),
    ]


@contextmanager
def _serving(directory: Path) -> Iterator[tuple[int, list[_Target]]]:
    """The bare server and two gateways, and how many bytes an answer has."""
    empty, relaxed, durable = (directory / name for name in ("empty", "relaxed", "durable"))
    create_data(empty)
    requests = requests_to(prepare(relaxed))
    shutil.copytree(relaxed, durable)
    with ExitStack() as running:
        gateways = [running.enter_context(gateway_on(relaxed, audit="relaxed")), running.enter_context(gateway_on(durable))]
        size = round(median(answer_bytes(gateways[0].url, request) for request in requests))
        bare = running.enter_context(listening(["gateway.cli.bench.bare_server", str(empty), str(size)]))
        yield size, [_Target(bare, [Request("/", "none")]), *(_Target(server, requests) for server in gateways)]


def _load(plan: Plan, target: _Target) -> None:
    before = target.server.processor_seconds()
    load = send(plan.clients, target.server.url, target.requests, plan.seconds(SECONDS))
    after = target.server.processor_seconds()
    target.loads.append(load)
    if before is not None and after is not None:
        target.processor.append((after - before) / load.answers * 1e6)


def _shown(name: str, target: _Target) -> dict[str, object]:
    load = middle(target.loads)
    shown: dict[str, object] = {
        f"{name}_per_second": load.per_second,
        f"{name}_p50_ms": load.p50_ms,
        f"{name}_p99_ms": load.p99_ms,
        f"{name}_refused": load.refused,
        f"{name}_clients_busy": load.clients_busy,
    }
    return shown | ({f"{name}_processor_us": median(target.processor)} if target.processor else {})


def prepare(data: Path) -> Filled:
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


def requests_to(filled: Filled) -> list[Request]:
    """Each peer is read once a turn, by another agent than the one before it."""
    return [
        Request(f"/v1/peers/{peer_id}/context", filled.agents[number % len(filled.agents)].key)
        for number, peer_id in enumerate(filled.peers)
    ]
