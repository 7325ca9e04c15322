"""Figure: what many written rules cost a prediction over HTTP, up to as many as a document may hold."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from gateway.cli.bench.clients import middle, send
from gateway.cli.bench.figure import Figure, Plan
from gateway.cli.bench.fill import fill
from gateway.cli.bench.load import Load, Request
from gateway.cli.bench.process import gateway_on
from gateway.cli.bench.records import some_rules
from gateway.cli.output import Progress
from gateway.model.rules import MAX_RULES

COUNTS = (3, 30, MAX_RULES)
SECONDS, WARM_SECONDS = 2.0, 0.5


def rules_http(plan: Plan, shown: Progress) -> list[Figure]:
    """Predictions for one peer by three agents, each with another number of rules, in turn."""
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory:
        data = Path(directory) / "data"
        filled = fill(data, peers=1, observers=len(COUNTS), agents=len(COUNTS), rules=[some_rules(count) for count in COUNTS])
        requests = [
            Request(f"/v1/peers/{filled.peers[0]}/predict-approval", agent.key, _body(count))
            for agent, count in zip(filled.agents, COUNTS, strict=True)
        ]
        rounds: list[list[Load]] = [[] for _ in COUNTS]
        with gateway_on(data, audit="relaxed") as server:
            for request in requests:
                send(plan.clients, server.url, [request], plan.seconds(WARM_SECONDS))
            for number in range(plan.rounds):
                shown(number + 1, plan.rounds)
                for series, request in zip(rounds, requests, strict=True):
                    series.append(send(plan.clients, server.url, [request], plan.seconds(SECONDS)))
    loads = [middle(series) for series in rounds]
    measured: dict[str, object] = {"clients": plan.clients}
    for count, load in zip(COUNTS, loads, strict=True):
        measured |= {f"{count}_rules_per_second": load.per_second, f"{count}_rules_p50_ms": load.p50_ms}
    return [
        Figure(
            "rules-http",
            f"half of the predictions take so much longer by {COUNTS[-1]} written rules than by {COUNTS[0]}",
            "x",
            loads[-1].p50_ms / loads[0].p50_ms,
            measured,
        )
    ]


def _body(count: int) -> str:
    return json.dumps({"action_type": some_rules(count).rules[-1].action_type, "effective_risk_tier": 1, "payload": {}})
