"""`peergate tour`: five requests on sample data, each with its answer: allowed, denied, predicted, corrected, shared."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from gateway import wiring
from gateway.cli.demo import OWNERS, fill
from gateway.cli.exits import DONE
from gateway.cli.opening import find_settings, opened
from gateway.cli.output import bold, print_json, print_prose
from gateway.cli.sample import REFUND, Sample
from gateway.operations.call import Services
from gateway.web.app import create_app

REFUND_QUESTION = {"action_type": "refund.create", "effective_risk_tier": 1, "payload": REFUND}
CORRECTION = {"text": "Ask about every refund."}
TAGGED = {"text": "The launch of alpha moved to May.", "project_id": "alpha", "tags": ["launch"]}
UNTAGGED = {"text": "The sample person is at home on Fridays."}
REMOTE, REMOTE_DID = "sample-partner", "did:web:partner.example"
ALLOWED = {"project_id": "alpha", "actions": ["search", "read"]}


@dataclass(frozen=True, slots=True)
class Stop:
    """One request of the tour: what it shows, who asks, and what was answered."""

    shows: str
    who: str
    request: str
    body: object
    status: int
    answer: Any


def add_command(commands: Any) -> None:
    parser = commands.add_parser(
        "tour",
        help="show what a gateway answers, on sample data that is gone afterwards",
        description="Ask a gateway in this process what it allows, denies, predicts and shares, and print every answer.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="peergate-tour-") as directory:
        with opened(find_settings({"data": Path(directory) / "data"}), create=True) as services:
            stops = asyncio.run(_walk(services))
    if given.json:
        print_json({"stops": [{name: getattr(stop, name) for name in Stop.__slots__} for stop in stops]})
        return DONE
    for number, stop in enumerate(stops, 1):
        print(f"{bold(f'{number}. {stop.shows}')}\n{stop.who} asks {stop.request}")
        if stop.body is not None:
            print_prose(f"  {json.dumps(stop.body)}")
        print(f"answer {stop.status}")
        print_prose("\n".join(f"  {line}" for line in json.dumps(stop.answer, indent=2, ensure_ascii=False).split("\n")) + "\n")
    print("next: `peergate demo` serves the same data, with a key for every role")
    return DONE


async def _walk(services: Services) -> list[Stop]:
    sample = await fill(services, *(wiring.set_up_org(services, name=name, email=email) for name, email in OWNERS))
    transport = httpx.ASGITransport(create_app(services, wiring.OPERATIONS))
    async with httpx.AsyncClient(transport=transport, base_url="http://tour") as http:
        return [stop async for stop in _stops(http, sample)]


async def _stops(http: httpx.AsyncClient, sample: Sample) -> AsyncIterator[Stop]:
    people = sample.credentials
    keys = {"the person": people["member"]["api_key"], "the owner": people["owner"]["api_key"]}
    keys |= dict(zip(("the assistant", "a stranger"), (agent["api_key"] for agent in people["agents"]), strict=True))
    peer = f"/v1/peers/{sample.peer_id}"

    async def ask(shows: str, who: str, method: str, path: str, body: object = None) -> Stop:
        answer = await http.request(method, path, json=body, headers={"Authorization": f"Bearer {keys[who]}"})
        return Stop(shows, who, f"{method} {path}", body, answer.status_code, answer.json())

    yield await ask("allowed: the assistant observes this person", "the assistant", "GET", f"{peer}/context")
    yield await ask("denied, with the reason: a stranger is not on the list", "a stranger", "GET", f"{peer}/context")
    shows = "predicted, and still not automatic: the written rule says ask"
    yield await ask(shows, "the assistant", "POST", f"{peer}/predict-approval", REFUND_QUESTION)
    known = await ask("", "the person", "GET", peer)
    correction = {"fact_key": known.answer["facts"][0]["fact_key"], "fact_value": CORRECTION}
    yield await ask("corrected: no derivation writes over this", "the person", "PATCH", f"{peer}/facts", correction)
    for row in (TAGGED, UNTAGGED):
        await ask("", "the assistant", "POST", "/v1/memories", row)
    remote = {"agent_id": people["agents"][0]["id"], "peer_did": REMOTE_DID, "id": REMOTE}
    await ask("", "the owner", "POST", "/v1/connections", remote)
    await ask("", "the owner", "POST", f"/v1/connections/{REMOTE}/grants", ALLOWED)
    shows = (
        "shared: the assistant remembered two things, one for the project alpha and one without a project. "
        "A remote agent that is granted alpha sees the one, and not the other"
    )
    yield await ask(shows, "the owner", "GET", f"/v1/connections/{REMOTE}/visible")
