"""`peergate demo`: sample data, served, with three requests to paste."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from gateway import wiring
from gateway.cli.exits import DONE, REFUSED, CommandError
from gateway.cli.opening import find_settings, opened, refusals
from gateway.cli.output import bold, print_fields
from gateway.cli.sample import ORG, OTHER_ORG, REFUND, Person, Sample, make_sample
from gateway.cli.surfaces import whole_app
from gateway.operations.call import Services
from gateway.operations.sweeps import sweeps
from gateway.store.files import Files
from gateway.web.app import create_app
from gateway.web.server import listen, serve

PEOPLE = ("owner", "admin", "security", "auditor", "member")
OWNERS = ((ORG, "owner@sample.example"), (OTHER_ORG, "owner@other.example"))


def add_command(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="make sample data and serve it; without --data in a temporary directory",
        description="Make two sample organisations and serve them until SIGTERM or Ctrl-C.",
    )
    parser.add_argument("--data", metavar="DIR", help="keep the demo here (default: a temporary directory, removed at the end)")
    parser.add_argument("--port", type=int, help="port to listen on (8787); 0 picks a free one and prints it")
    parser.add_argument("--json", action="store_true", help="print the address and every credential as one line of JSON")
    parser.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    with _directory(given.data) as data:
        settings = find_settings({"data": data, "port": given.port})
        if Files(settings.data).database.exists() and not (settings.data / wiring.UNFINISHED).exists():
            raise CommandError(f"{data} is there already: serve it with peergate serve --data {data}", REFUSED)
        with refusals():  # before anything is made: the credentials are said once it is served, and never again
            listen(settings.host, settings.port).close()
        with opened(settings, create=True) as services:
            owner, other = (wiring.set_up_org(services, name=name, email=email) for name, email in OWNERS)
            sample = asyncio.run(fill(services, owner, other))

            def ready(url: str) -> None:
                if given.json:
                    print(json.dumps({"url": url, "credentials": sample.credentials}), flush=True)
                else:
                    _explain(url, sample, f"{data}{'' if given.data else ' (temporary: gone when this ends)'}")

            serve(whole_app(services), services, ready=ready, sweeps=sweeps(services))
    return DONE


@contextmanager
def _directory(data: str | None) -> Iterator[Path]:
    if data is not None:
        yield Path(data)
        return
    with tempfile.TemporaryDirectory(prefix="peergate-demo-") as made:
        yield Path(made) / "data"


async def fill(services: Services, owner: wiring.NewOrg, other: wiring.NewOrg) -> Sample:
    people = [Person(org.email, org.password, org.api_key) for org in (owner, other)]
    transport = httpx.ASGITransport(create_app(services, wiring.OPERATIONS))
    async with httpx.AsyncClient(transport=transport, base_url="http://demo") as http:
        return await make_sample(http, *people)


def _explain(url: str, sample: Sample, where: str) -> None:
    people = sample.credentials
    print(f"{bold('Peergate demo')} on {url}, sample data in {where}\n")
    print("one credential for each role, shown once:")
    keys = {role: people[role]["api_key"] for role in (*PEOPLE, "platform")}
    keys |= {f"agent {agent['name']}": agent["api_key"] for agent in people["agents"]}
    keys |= {"owner of the other organisation": people["other_org"]["owner"]["api_key"]}
    print_fields(keys)
    print("\ntheir passwords, for what asks who you are (a prompt, or PEERGATE_CONFIRM):")
    print_fields({people[role]["email"]: people[role]["password"] for role in PEOPLE})
    print("\nthe agents by id, as `--agent` takes them:")
    print_fields({agent["name"]: agent["id"] for agent in people["agents"]})
    assistant, stranger = (f"-H 'Authorization: Bearer {agent['api_key']}'" for agent in people["agents"])
    peer = f"{url}/v1/peers/{sample.peer_id}"
    refund = json.dumps({"action_type": "refund.create", "effective_risk_tier": 1, "payload": REFUND})
    print("\nan allowed read: the assistant observes this person")
    print(f"  curl -s {assistant} {peer}/context")
    print("a denied read, with its reason: this agent is not on the list")
    print(f"  curl -s {stranger} {peer}/context")
    print("a prediction that is confident and still not permitted: the written rule says ask")
    print(f"  curl -s {assistant} -H 'Content-Type: application/json' -d '{refund}' {peer}/predict-approval")
    print("\nCtrl-C stops.", flush=True)
