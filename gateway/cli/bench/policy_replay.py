"""Figure: how fast a log of decisions is decided again under other policies."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

from gateway.cli.bench.figure import Figure, Plan, at_least
from gateway.cli.bench.fill import fill
from gateway.cli.bench.rounds import Timed
from gateway.cli.output import Progress
from gateway.config import Settings
from gateway.model.caller import Caller
from gateway.model.evidence import LogRow
from gateway.model.grant import Session
from gateway.operations.call import Services
from gateway.operations.replay import replay_data
from gateway.policy.bundle import Bundle
from gateway.store.writer import Unit
from gateway.wiring import open_services

DECISIONS = 100_000
AGENTS, PEERS = 100, 50
ASKED = ("peer.read", "peer.read_context", "peer.predict")
EVERY = timedelta(minutes=1)
#: Rows to a transaction.
CHUNK = 5_000
#: What the candidate adds: some of what was allowed is denied.
MORE = """@id("bench") @reason("Nobody reads contexts of users.")
forbid (principal, action == Action::"peer.read_context", resource is Peer) when { resource.peer_type == "user" };"""


def replaying(plan: Plan, shown: Progress) -> list[Figure]:
    """`peergate policy replay` of 100,000 decisions, reading the log included: a hundred agents ask in turn for fifty
    peers that they observe, one decision each minute and three actions in turn, so that the entities of each of 5,000 pairs
    come twenty times; the candidate is the shipped policies and a forbid on one of the actions. One that reads the clock is
    slower: what differs in nothing but its time is then another question. `processor_per_second` is of the processor time
    of this process, which other work on the machine hardly touches.
    """
    decisions = plan.size(DECISIONS)
    seconds: list[float] = []
    processor: list[float] = []
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory:
        data = Path(directory) / "data"
        fill(data, peers=PEERS, observers=AGENTS, agents=AGENTS)
        services = open_services(Settings(data=data))
        try:
            _fill_log(services, decisions)
            candidate = _candidate(services.access.engine.bundle)
            for number in range(plan.rounds):
                shown(number + 1, plan.rounds)
                start, busy = perf_counter(), process_time()
                report = asyncio.run(replay_data(services, candidate, since=None))
                seconds.append(perf_counter() - start)
                processor.append(process_time() - busy)
        finally:
            services.database.close()
    if report.decided < decisions or not report.loses:
        raise RuntimeError("the log was not decided again")
    timed = Timed(tuple(seconds))
    return [
        Figure(
            "policies-replay",
            f"decisions of a log of {decisions:,} that are taken again in a second",
            "decisions/s",
            decisions / timed.median,
            {
                "decisions": decisions,
                "loses": report.loses,
                "slowest_per_second": decisions / max(seconds),
                "processor_per_second": decisions / Timed(tuple(processor)).median,
            },
            aim=at_least(10_000),
        )
    ]


def _candidate(bundle: Bundle) -> Bundle:
    texts = {f"{id_}.cedar": info.text for id_, info in bundle.policies.items()}
    return Bundle.from_text(bundle.schema_text, {**texts, "bench.cedar": MORE}, house_rules=False)


def _fill_log(services: Services, decisions: int) -> None:
    """Take the decisions and write their rows; the door is the product's own, and only the clock is not."""
    rows = islice(_rows(services), decisions)
    while chunk := tuple(islice(rows, CHUNK)):
        services.database.write(Unit(lambda tx: None, log=chunk)).result()


def _rows(services: Services) -> Iterator[LogRow]:
    state, now = services.state, services.clock()
    agents = [Caller("Agent", agent.id, agent.org_id, "bench") for agent in list(state.agents.values())]
    peers = list(state.peers.values())
    number = 0
    while True:
        agent, peer = agents[number % len(agents)], peers[number // len(agents) % len(peers)]
        session = Session(agent, "bench", now + EVERY * number)
        yield services.access.ask(session, ASKED[number % len(ASKED)], peer).row
        number += 1
