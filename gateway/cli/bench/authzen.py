"""Figures: what an AuthZEN decision costs in this process, and how many a second of the server's processor time answers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from gateway.cli.bench.authzen_store import DESCRIPTION, question, write_store
from gateway.cli.bench.clients import send
from gateway.cli.bench.figure import Figure, Plan, at_least, at_most
from gateway.cli.bench.load import Request
from gateway.cli.bench.process import Server, gateway_on
from gateway.cli.bench.rounds import alternate
from gateway.cli.exits import CommandError
from gateway.cli.output import Progress
from gateway.config import Settings
from gateway.model.asked import Asked
from gateway.operations.authzen_request import read_batch
from gateway.policy.foreign.served import Served
from gateway.policy.foreign.store import ForeignStore, Ruled
from gateway.wiring import create_data, open_services, set_up_org

USERS, DOCUMENTS = 200, 2_000
BATCH, ITEMS, REQUESTS = 1_000, 50, 200
TIMES = 5
SECONDS, WARM_SECONDS = 3.0, 1.0
SINGLE, BATCHES = "/access/v1/evaluation", "/access/v1/evaluations"


def authzen(plan: Plan, shown: Progress) -> list[Figure]:
    """A batch in this process first, then one server under four kinds of load in turn."""
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory:
        store = write_store(Path(directory) / "store", users=USERS, documents=DOCUMENTS)
        about: dict[str, object] = {"store": f"{USERS} users, {DOCUMENTS} documents, {DESCRIPTION}", "clients": plan.clients}
        return [
            _in_process(plan, shown, Served.load(store).store, about),
            *_over_http(plan, shown, Path(directory) / "data", store, about),
        ]


def _in_process(plan: Plan, shown: Progress, store: ForeignStore, about: dict[str, object]) -> Figure:
    bodies = [{"evaluations": _questions(BATCH, properties=properties)} for properties in (False, True)]

    def ask(body: dict[str, object]) -> None:
        batch = read_batch(body)
        items = [item for item in batch.items if isinstance(item, Asked)] if batch is not None else []
        if not any(isinstance(ruled, Ruled) and ruled.allowed for ruled in store.decide_all(items)):
            raise RuntimeError("the store allows nothing of what is to be measured")

    passes = [lambda body=body: ask(body) for body in bodies]
    plain, laid_over = alternate(plan.rounds, passes, times=plan.size(TIMES), each=BATCH, shown=shown)
    return Figure(
        "authzen-batch",
        f"an item of a batch of {BATCH} evaluations in this process, without properties",
        "us",
        plain.microseconds,
        {**about, "with_properties_us": laid_over.microseconds, "rounds_x": laid_over.spread_over(plain)},
        must=at_most(50),
        beside=laid_over.over(plain),
    )


def _over_http(plan: Plan, shown: Progress, data: Path, store: Path, about: dict[str, object]) -> list[Figure]:
    key = _owner_key(data)
    kinds = {
        "single": (1, _requests(SINGLE, key, items=1, properties=False)),
        "batch": (ITEMS, _requests(BATCHES, key, items=ITEMS, properties=False)),
        "single_properties": (1, _requests(SINGLE, key, items=1, properties=True)),
        "batch_properties": (ITEMS, _requests(BATCHES, key, items=ITEMS, properties=True)),
    }
    rounds: dict[str, list[float]] = {name: [] for name in kinds}
    with gateway_on(data, audit="relaxed", store=store) as server:
        for _, requests in kinds.values():
            send(plan.clients, server.url, requests, plan.seconds(WARM_SECONDS))
        for number in range(plan.rounds):
            shown(number + 1, plan.rounds)
            for name, (items, requests) in kinds.items():
                rounds[name].append(items * _answers_a_second(plan, server, requests))
    rates = {name: median(found) for name, found in rounds.items()}
    asked = f"`audit` relaxed, no rate limit, one request as `{kinds['single'][1][0].body}`"
    what = "decisions over HTTP for each second of the server's processor time"
    return [
        Figure(
            "authzen-single",
            f"{what}, one a request",
            "decisions",
            rates["single"],
            {**about, "asked": asked},
            must=at_least(3_000),
            aim=at_least(5_000),
            beside=rates["single_properties"] / rates["single"],
        ),
        Figure(
            "authzen-http-batch",
            f"{what}, in batches of {ITEMS}",
            "decisions",
            rates["batch"],
            about,
            must=at_least(18_000),
            aim=at_least(25_000),
            beside=rates["batch"] / rates["single"],
        ),
        Figure(
            "authzen-properties",
            f"{what}, in batches of {ITEMS} whose resources carry properties",
            "decisions",
            rates["batch_properties"],
            {**about, "one_a_request": rates["single_properties"]},
            aim=at_least(10_000),
            beside=rates["batch_properties"] / rates["batch"],
        ),
    ]


def _answers_a_second(plan: Plan, server: Server, requests: Sequence[Request]) -> float:
    before = server.processor_seconds()
    answers = send(plan.clients, server.url, requests, plan.seconds(SECONDS)).answers
    after = server.processor_seconds()
    if before is None or after is None:
        raise CommandError("this system does not tell how much processor time a process has used")
    return answers / max(after - before, 0.01)


def _owner_key(data: Path) -> str:
    create_data(data)
    services = open_services(Settings(data=data))
    try:
        return set_up_org(services, name="bench", email="owner@bench.example").api_key
    finally:
        services.database.close()


def _questions(count: int, *, properties: bool, first: int = 0) -> list[dict[str, object]]:
    numbers = range(first, first + count)
    return [question(number, users=USERS, documents=DOCUMENTS, properties=properties) for number in numbers]


def _requests(path: str, key: str, *, items: int, properties: bool) -> list[Request]:
    made = []
    for number in range(REQUESTS):
        asked = _questions(items, properties=properties, first=number * items)
        made.append(Request(path, key, json.dumps({"evaluations": asked} if items > 1 else asked[0])))
    return made
