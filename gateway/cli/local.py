"""Local commands: they open a data directory themselves, as the operator, and are refused while a server holds it."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from gateway import wiring
from gateway.authn.keyfile import KeyFileError
from gateway.cli import bench, client, doctor
from gateway.cli.exits import DONE, FINDING, REFUSED, USAGE, CommandError
from gateway.cli.output import bold, print_fields, print_json, progress
from gateway.cli.sample import ORG, OTHER_ORG, Person, Sample, make_sample
from gateway.config import ConfigError, Settings, load
from gateway.errors import GatewayError
from gateway.operations import administration
from gateway.operations.call import Services
from gateway.policy.finding import PolicyError
from gateway.store.faults import StoreRefused
from gateway.web.app import create_app
from gateway.web.server import ServeError, serve
from gateway.web.sweeps import sweeps

DEMO_RATE_LIMIT = 6000


def add_commands(commands: Any) -> None:
    """The commands without a verb."""
    init = _command(commands, "init", _init, "make a data directory with an organisation and its owner; prints each credential once")
    init.add_argument("--org", default="My organisation", help="the organisation's name")
    init.add_argument("--email", default="owner@localhost", help="the owner's address")
    server = _command(commands, "serve", _serve, "serve a data directory until SIGTERM or Ctrl-C")
    _server_arguments(server)
    demo = _command(commands, "demo", _demo, "make sample data and serve it; without --data in a temporary directory", data=False)
    demo.add_argument("--data", metavar="DIR", help="keep the demo here (default: a temporary directory, removed at the end)")
    demo.add_argument("--port", type=int, default=8787, help="0 picks a free one")
    derive = _command(commands, "derive", _derive, "derive every fact again and bury what is 90 days old")
    derive.add_argument("--as-of", metavar="T", help="as of this RFC 3339 time (default: now)")
    derive.add_argument("--expire-early", action="store_true", help="allow a time in the future, which ends events early")
    derive.add_argument("--dry-run", action="store_true", help="report what would change, change nothing")
    backup = _command(commands, "backup", _backup, "write a snapshot of the store into a new file")
    backup.add_argument("target", metavar="FILE", help="the new file; an existing one is refused")
    erase = _command(commands, "erase", _erase, "rewrite the store so that deleted bytes are gone from the disk")
    erase.add_argument("--peer", metavar="ID", help="delete this peer first, with everything held about the person")
    login = commands.add_parser("login", help="store a gateway's address and a key for later commands, readable by you only")
    login.add_argument("url", help="the gateway's address")
    login.set_defaults(run=_login)
    doctor.add_command(commands)
    bench.add_command(commands)


def add_verbs(nouns: dict[str, Any]) -> None:
    """Local verbs under the nouns of client commands."""
    verify = _command(nouns["audit"], "verify", _verify, "walk the log's hash chain and name the first broken row")
    verify.add_argument("--accept-missing-mark", action="store_true", help="the side file with the last sequence was lost: go on without")
    recover = _command(nouns["key"], "recover", _recover, "make a new key for a member who lost theirs")
    recover.add_argument("--email", required=True, help="the member's address")


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], int], help: str, *, data: bool = True) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help.capitalize() + ".")
    if data:
        parser.add_argument("--data", metavar="DIR", required=name != "serve", help="the data directory")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def _server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (8787); 0 picks a free one and prints it")
    parser.add_argument("--policies", metavar="DIR", help="decide by the policies in this directory instead of the shipped ones")
    parser.add_argument("--audit", choices=("durable", "relaxed"), help="durable: every decision is on disk before its answer")
    parser.add_argument("--rate-limit", dest="rate_limit", type=int, help="requests a minute and credential (6000); 0 is none")
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--config", metavar="FILE", type=Path, help="a TOML file with settings")


# -- commands


def _init(given: argparse.Namespace) -> int:
    with _opened(_settings(data=given.data), create=True) as services:
        made = wiring.set_up_org(services, name=given.org, email=given.email)
    shown = {"email": made.email, "password": made.password, "api_key": made.api_key}
    if given.json:
        print_json({"data": str(given.data), "org_id": made.org_id, "credentials": {"owner": shown}})
        return DONE
    print(f"{bold('made')} {given.data}; these credentials are shown once and kept nowhere:")
    print_fields(shown)
    print(f"next: peergate serve --data {given.data}")
    return DONE


def _serve(given: argparse.Namespace) -> int:
    flags = {name: getattr(given, name) for name in ("data", "host", "port", "policies", "audit", "rate_limit", "workers")}
    with _refusals():
        settings = load(flags, os.environ, given.config)
    with _opened(settings) as services:
        _run_server(services, lambda url: _say_serving(url, settings, as_json=given.json))
    return DONE


def _say_serving(url: str, settings: Settings, *, as_json: bool) -> None:
    line = json.dumps({"url": url}) if as_json else f"{bold('serving')} {settings.data} on {url} (audit {settings.audit}); Ctrl-C stops"
    print(line, flush=True)


def _demo(given: argparse.Namespace) -> int:
    with _demo_directory(given.data) as data:
        settings = _settings(data=data, port=given.port)
        with _opened(settings, create=True) as services:
            owner, other = (
                wiring.set_up_org(services, name=name, email=email)
                for name, email in ((ORG, "owner@sample.example"), (OTHER_ORG, "owner@other.example"))
            )
            sample = asyncio.run(_fill(services, owner, other))
            _run_server(services, lambda url: _say_demo(url, sample, temporary=given.data is None, data=data, as_json=given.json))
    return DONE


async def _fill(services: Services, owner: wiring.NewOrg, other: wiring.NewOrg) -> Sample:
    people = [Person(org.email, org.password, org.api_key) for org in (owner, other)]
    transport = httpx.ASGITransport(create_app(services, wiring.OPERATIONS))
    async with httpx.AsyncClient(transport=transport, base_url="http://demo") as http:
        return await make_sample(http, *people)


def _say_demo(url: str, sample: Sample, *, temporary: bool, data: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"url": url, "credentials": sample.credentials, "peer_id": sample.peer_id}), flush=True)
        return
    people = sample.credentials
    print(f"{bold('Peergate demo')} on {url}, sample data in {data}{' (temporary: gone when this ends)' if temporary else ''}\n")
    print("one credential for each role, shown once:")
    keys = {role: people[role]["api_key"] for role in ("owner", "admin", "security", "auditor", "member", "platform")}
    keys |= {f"agent {agent['name']}": agent["api_key"] for agent in people["agents"]}
    keys |= {"owner of the other organisation": people["other_org"]["owner"]["api_key"]}
    print_fields(keys)
    assistant, stranger = people["agents"]
    peer = f"{url}/v1/peers/{sample.peer_id}"
    predict = json.dumps(
        {"action_type": "refund.create", "effective_risk_tier": 1, "payload": {"amount_usd": "8.50", "recipient": "customer-17@example.com"}}
    )
    print("\nan allowed read: the assistant observes this person")
    print(f"  curl -s -H 'Authorization: Bearer {assistant['api_key']}' {peer}/context")
    print("a denied read, with its reason: this agent is not on the list")
    print(f"  curl -s -H 'Authorization: Bearer {stranger['api_key']}' {peer}/context")
    print("a prediction that is confident and still not permitted: the written rule says ask")
    print(
        f"  curl -s -H 'Authorization: Bearer {assistant['api_key']}' -H 'Content-Type: application/json' -d '{predict}' {peer}/predict-approval"
    )
    print("\nCtrl-C stops.", flush=True)


def _derive(given: argparse.Namespace) -> int:
    as_of = None
    if given.as_of is not None:
        as_of = _time(given.as_of)
    with _opened(_settings(data=given.data)) as services, progress("deriving") as shown:
        if as_of is not None and as_of > services.clock() and not given.expire_early:
            raise CommandError("`--as-of` is in the future, which ends events early; say --expire-early if you mean it", USAGE)
        done = asyncio.run(administration.derive(services, as_of=as_of, dry_run=given.dry_run, progress=shown))
    return _show(done, as_json=given.json)


def _backup(given: argparse.Namespace) -> int:
    with _opened(_settings(data=given.data)) as services, progress("copying") as shown:
        done = asyncio.run(administration.backup(services, Path(given.target), progress=shown))
    return _show(done, as_json=given.json)


def _erase(given: argparse.Namespace) -> int:
    with _opened(_settings(data=given.data)) as services, progress("rewriting") as shown:
        done = asyncio.run(administration.erase(services, peer_id=given.peer, progress=shown))
    return _show(done, as_json=given.json)


def _verify(given: argparse.Namespace) -> int:
    with _opened(_settings(data=given.data), accept_missing_mark=given.accept_missing_mark) as services:
        report = asyncio.run(administration.verify(services))
    _show(report, as_json=given.json)
    return DONE if report["chain_valid"] else FINDING


def _recover(given: argparse.Namespace) -> int:
    with _opened(_settings(data=given.data)) as services:
        done = asyncio.run(administration.recover_key(services, email=given.email))
    return _show(done, as_json=given.json)


def _login(given: argparse.Namespace) -> int:
    key = os.environ.get("PEERGATE_KEY") or getpass.getpass("key: ")
    path = client.store_login(given.url.rstrip("/"), key)
    print(f"stored in {path}, readable by you only")
    return DONE


# -- opening


def _settings(**flags: object) -> Settings:
    with _refusals():
        return load(flags, {})


@contextmanager
def _opened(settings: Settings, *, create: bool = False, accept_missing_mark: bool = False) -> Iterator[Services]:
    """The services of a data directory, closed with everything acknowledged on disk."""
    with _refusals():
        if create:
            wiring.create_data(settings.data)
        services = wiring.open_services(settings, accept_missing_mark=accept_missing_mark)
        try:
            yield services
        finally:
            services.database.close()


@contextmanager
def _refusals() -> Iterator[None]:
    """What a command is refused with, as its exit code."""
    try:
        yield
    except ConfigError as wrong:
        raise CommandError(str(wrong), USAGE) from wrong
    except (StoreRefused, KeyFileError) as refused:
        raise CommandError(str(refused), REFUSED) from refused
    except PolicyError as wrong:
        raise CommandError(f"the policies do not load:\n{wrong}", REFUSED) from wrong
    except ServeError as wrong:
        raise CommandError(str(wrong), FINDING) from wrong
    except GatewayError as wrong:
        raise CommandError(wrong.detail, FINDING) from wrong


@contextmanager
def _demo_directory(data: str | None) -> Iterator[Path]:
    if data is not None:
        yield Path(data)
        return
    with tempfile.TemporaryDirectory(prefix="peergate-demo-") as made:
        yield Path(made) / "data"


def _run_server(services: Services, ready: Callable[[str], None]) -> None:
    serve(create_app(services, wiring.OPERATIONS), services, ready=ready, sweeps=sweeps(services))


def _time(text: str) -> datetime:
    from gateway.operations.fields import Fields

    return Fields({"as_of": text}).timestamp("as_of")


def _show(done: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        print_json(done)
    else:
        print_fields(done)
    sys.stdout.flush()
    return DONE
