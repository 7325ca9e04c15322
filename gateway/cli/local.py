"""Local commands: they open a data directory themselves, as the operator, and are refused while a server holds it."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import json
import os
from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from gateway import limits, wiring
from gateway.authn.emails import normal_email
from gateway.cli import bench, client, demo, doctor, mcp, tour
from gateway.cli.exits import DONE, FINDING, USAGE, CommandError
from gateway.cli.opening import find_settings, opened, refusals
from gateway.cli.output import bold, print_fields, print_json, progress
from gateway.cli.stopped import stopped
from gateway.cli.surfaces import whole_app
from gateway.config import SECRETS, Settings
from gateway.operations import administration, openapi
from gateway.operations.fields import Fields
from gateway.operations.registry import OPERATIONS, OWN
from gateway.operations.sweeps import sweeps
from gateway.web.server import serve

#: The settings of `serve` that are a flag with a text or a number, and what each says; the others are below, but for secrets.
SERVE_TEXTS = {
    "public_url": "the https address by which others reach this gateway",
    "embedding": "what search by meaning uses: off, local or http",
    "embedding_url": "with http: the address of an OpenAI-compatible service, without `/embeddings`",
    "embedding_model": "with http: the model's name there",
    "embedding_key_file": "with http: a file that holds the key for it",
    "oidc_issuer": "take access tokens of this issuer too",
    "oidc_audience": "what `aud` says of a token for this gateway",
    "oidc_jwks": "the address of the issuer's key set, or a file that holds it",
    "oidc_algorithms": "how its tokens may be signed (RS256, PS256, ES256, EdDSA)",
    "oidc_clock_skew": "seconds by which its clock may differ (30)",
    "oidc_email_claim": "the claim that names a member by e-mail address (email)",
    "oidc_org_claim": "the claim that holds the organisation's id",
    "oidc_role_claim": "a claim that has to name the role that the member has here",
    "oidc_agent_claim": "the claim that holds an agent's id",
}
LONGEST_OVERLAP_HOURS = limits.TOKEN_SECONDS_RANGE[1] // 3_600  # no token lives longer


def add_commands(commands: Any) -> None:
    """The commands without a verb."""
    init = _command(
        commands, "init", _init, "make a data directory with an organisation and its owner; prints each credential once"
    )
    init.add_argument("--org", default="My organisation", help="the organisation's name (My organisation)")
    init.add_argument("--email", default="owner@localhost", help="the owner's address (owner@localhost)")
    _server_arguments(_command(commands, "serve", _serve, "serve a data directory until SIGTERM or Ctrl-C"))
    demo.add_command(commands)
    tour.add_command(commands)
    derive = _command(commands, "derive", _derive, "derive every fact again and bury what is 90 days old")
    derive.add_argument("--as-of", metavar="T", help="as of this RFC 3339 time (default: now)")
    derive.add_argument("--expire-early", action="store_true", help="allow a time in the future, which ends events early")
    derive.add_argument("--dry-run", action="store_true", help="report what would change, change nothing")
    backup = _command(commands, "backup", _backup, "copy the data directory, signing keys included, into a new one")
    backup.add_argument("target", metavar="DIR", help="the new directory; an existing one is refused")
    erase = _command(commands, "erase", _erase, "rewrite the store so that deleted bytes are gone from the disk")
    erase.add_argument("--peer", metavar="ID", help="delete this peer first, with everything held about the person")
    login = commands.add_parser(
        "login",
        help="store a gateway's address and a key for later commands, readable by you only",
        description="Check a key against a gateway and store both. The key is asked for, or taken from PEERGATE_KEY.",
    )
    login.add_argument("url", help="the gateway's address")
    login.set_defaults(run=_login)
    says = "print the description of the HTTP API, in OpenAPI 3.1"
    commands.add_parser("openapi", help=says, description=f"{says[0].upper()}{says[1:]}.").set_defaults(run=_openapi)
    mcp.add_command(commands)
    doctor.add_command(commands)
    bench.add_command(commands)


def add_verbs(nouns: dict[str, Any]) -> None:
    """Local verbs under the nouns of client commands."""
    verify = _command(nouns["audit"], "verify", _verify, "walk the log's hash chain and name the first broken row")
    verify.add_argument(
        "--accept-missing-mark", action="store_true", help="the side file with the last sequence was lost: go on without"
    )
    recover = _command(nouns["key"], "recover", _recover, "make a new key for a member who lost theirs")
    recover.add_argument("--email", required=True, help="the member's address")
    rotate = _command(nouns["key"], "rotate-signing", _rotate, "sign tokens with a new key from now on")
    rotate.add_argument(
        "--overlap-hours",
        type=int,
        default=LONGEST_OVERLAP_HOURS,
        help="hours in which tokens of the old key are still good (24, the life of the longest token); 0 ends them all at once",
    )


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], int], help: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
    parser.add_argument("--data", metavar="DIR", help="the data directory (default: PEERGATE_DATA)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def _server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (8787); 0 picks a free one and prints it")
    parser.add_argument("--policies", metavar="DIR", help="decide by the policies in this directory instead of the shipped ones")
    parser.add_argument("--store", metavar="DIR", help="a directory of Cedar policies, schema and entities for AuthZEN clients")
    parser.add_argument("--audit", choices=("durable", "relaxed"), help="durable: every decision is on disk before its answer")
    parser.add_argument("--rate-limit", dest="rate_limit", type=int, help="requests a minute and credential (6000); 0 is none")
    parser.add_argument("--log", choices=("json", "text", "off"), help="a line a request on stderr (json, text on a terminal)")
    parser.add_argument(
        "--address-limit", dest="address_limit", type=int, help="those of one address without a good key (6000); 0 is none"
    )
    parser.add_argument("--deadline", type=int, help="seconds that an answer may take (5); 0 is no end")
    parser.add_argument("--traces", choices=("off", "otel"), help="otel: requests are traced as the variables OTEL_* say (off)")
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    reload = "watch: policies that change on the disk are loaded; shadow: they wait to be promoted (off)"
    parser.add_argument("--reload", choices=("off", "watch", "shadow"), help=reload)
    for name, says in SERVE_TEXTS.items():
        parser.add_argument("--" + name.replace("_", "-"), metavar="TEXT", help=says)
    parser.add_argument("--config", metavar="FILE", type=Path, help="a TOML file with settings")


def _init(given: argparse.Namespace) -> int:
    with refusals():
        org = Fields({"--org": given.org}).text("--org", longest=limits.NAME_CHARACTERS)
    email = normal_email(given.email)
    if email is None:
        raise CommandError(f"`--email` must be an address, got `{given.email}`", USAGE)
    settings = find_settings({"data": given.data})
    with opened(settings, create=True) as services:
        made = wiring.set_up_org(services, name=org, email=email)
    shown = {"email": made.email, "password": made.password, "api_key": made.api_key}
    if given.json:
        print_json({"credentials": {"owner": shown}})
        return DONE
    print(f"{bold('made')} {settings.data}; these credentials are shown once and kept nowhere:")
    print_fields(shown)
    print(f"next: peergate serve --data {settings.data}")
    return DONE


def _serve(given: argparse.Namespace) -> int:
    flags = [field.name for field in fields(Settings) if field.name not in SECRETS]
    settings = find_settings({name: getattr(given, name) for name in flags}, given.config)
    with opened(settings) as services:

        def ready(url: str) -> None:
            sentence = f"{bold('serving')} {settings.data} on {url} (audit {settings.audit}); Ctrl-C stops"
            print(json.dumps({"url": url}) if given.json else sentence, flush=True)

        serve(whole_app(services), services, ready=ready, sweeps=sweeps(services))
    return DONE


def _derive(given: argparse.Namespace) -> int:
    with refusals():
        as_of = Fields({"--as-of": given.as_of}).optional_timestamp("--as-of")
    with stopped(given.data, "admin derive") as services, progress("deriving") as shown:
        if as_of is not None and as_of > services.clock() and not given.expire_early:
            raise CommandError("`--as-of` is in the future, which ends events early; say --expire-early if you mean it", USAGE)
        done = asyncio.run(administration.derive(services, as_of=as_of, dry_run=given.dry_run, progress=shown))
    _show(done, as_json=given.json)
    return DONE if done["failed"] == 0 else FINDING


def _backup(given: argparse.Namespace) -> int:
    with stopped(given.data, "admin backup") as services, progress("copying") as shown:
        done = asyncio.run(administration.backup(services, Path(given.target), progress=shown))
    tables = done["tables"]
    return _show(done if given.json else {**done, "tables": len(tables), "rows": sum(tables.values())}, as_json=given.json)


def _erase(given: argparse.Namespace) -> int:
    with stopped(given.data, "admin erase") as services, progress("rewriting") as shown:
        done = asyncio.run(administration.erase(services, peer_id=given.peer, progress=shown))
    return _show(done, as_json=given.json)


def _verify(given: argparse.Namespace) -> int:
    with stopped(given.data, "admin verify", accept_missing_mark=given.accept_missing_mark) as services:
        report = asyncio.run(administration.verify(services))
    _show(report, as_json=given.json)
    return DONE if report["chain_valid"] else FINDING


def _recover(given: argparse.Namespace) -> int:
    with opened(find_settings({"data": given.data})) as services:
        done = asyncio.run(administration.recover_key(services, email=given.email))
    return _show(done, as_json=given.json)


def _rotate(given: argparse.Namespace) -> int:
    if not 0 <= given.overlap_hours <= LONGEST_OVERLAP_HOURS:
        raise CommandError(f"`--overlap-hours` must be from 0 to {LONGEST_OVERLAP_HOURS}, got `{given.overlap_hours}`", USAGE)
    with opened(find_settings({"data": given.data})) as services:
        done = asyncio.run(administration.rotate_signing_keys(services, timedelta(hours=given.overlap_hours)))
    return _show(done, as_json=given.json)


def _openapi(_: argparse.Namespace) -> int:
    print(openapi.render((*OWN, *OPERATIONS)), end="")
    return DONE


def _login(given: argparse.Namespace) -> int:
    url = client.checked_url(given.url)
    try:
        key = (os.environ.get("PEERGATE_KEY") or getpass.getpass("key: ")).strip()
    except EOFError as nothing:
        raise CommandError("no key: type it, or set PEERGATE_KEY", USAGE) from nothing
    who = client.call(client.Connection(key, url, None), "GET", client.who_path(key))
    path = client.store_login(url, key)
    print(f"signed in to {url} as {who.get('email') or who.get('name')}; stored in {path}, readable by you only")
    return DONE


def _show(done: dict[str, Any], *, as_json: bool) -> int:
    (print_json if as_json else print_fields)(done)
    return DONE
