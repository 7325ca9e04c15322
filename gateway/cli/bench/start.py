"""Figures: how long a large data directory takes to start, and the memory it holds then."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.fill import fill
from gateway.cli.bench.process import gateway_on
from gateway.cli.output import Progress

PEERS, OBSERVERS, AGENTS = 100_000, 3, 1_000


def start(plan: Plan, shown: Progress) -> list[Figure]:
    """From the start of the process until it answers, in turn with a data directory that holds next to nothing."""
    peers, agents = plan.size(PEERS), plan.size(AGENTS, least=OBSERVERS)
    large, small = [], []
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory:
        full, empty = Path(directory) / "full", Path(directory) / "empty"
        fill(full, peers=peers, observers=OBSERVERS, agents=agents)
        fill(empty, peers=1, observers=1, agents=1)
        for number in range(plan.rounds):
            shown(number + 1, plan.rounds)
            small.append(_start(empty))
            large.append(_start(full))
    seconds, seconds_empty = (median(time for time, _ in series) for series in (large, small))
    sizes: dict[str, object] = {"peers": peers, "observers_each": OBSERVERS, "agents": agents}
    figures = [
        Figure(
            "start",
            f"from the start of the process until it answers, with {peers:,} peers",
            "s",
            seconds,
            {**sizes, "empty_s": seconds_empty, "slowest_s": max(time for time, _ in large)},
            aim=at_most(15),
            beside=seconds / seconds_empty,
        )
    ]
    held = [(mine, its) for (_, mine), (_, its) in zip(large, small, strict=True) if mine is not None and its is not None]
    if held:
        memory, memory_empty = (median(series) / 1e6 for series in zip(*held, strict=True))
        what = f"memory held then, with {peers:,} peers"
        measured = {**sizes, "empty_mb": memory_empty}
        figures.append(Figure("start-memory", what, "MB", memory, measured, aim=at_most(700), beside=memory / memory_empty))
    return figures


def _start(data: Path) -> tuple[float, int | None]:
    with gateway_on(data) as server:
        return server.seconds, server.resident_bytes()
