"""A client of a gateway: a running one at a URL, or one started in this process on a data directory."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from gateway.cli.exits import FINDING, REFUSED, USAGE, CommandError

TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the gateway is and which key is shown to it. Without a URL, `data` is opened in this process."""

    key: str
    url: str | None
    data: Path | None


def login_file() -> Path:
    """Where `peergate login` keeps a URL and a key, readable by their owner only."""
    base = os.environ.get("PEERGATE_CONFIG") or os.path.join(os.environ.get("XDG_CONFIG_HOME") or "~/.config", "peergate")
    return Path(base).expanduser() / "login.json"


def find_connection(url: str | None, key: str | None, data: str | None) -> Connection:
    """From flags, then `PEERGATE_URL` and `PEERGATE_KEY`, then what `peergate login` stored.

    Raises:
        CommandError: no key, or neither a URL nor a data directory.
    """
    stored: dict[str, str] = {}
    if login_file().exists():
        stored = json.loads(login_file().read_text("utf-8"))
    key = key or os.environ.get("PEERGATE_KEY") or stored.get("key")
    if not key:
        raise CommandError("no key: set PEERGATE_KEY, or run `peergate login`", USAGE)
    if data:
        return Connection(key, None, Path(data))
    url = url or os.environ.get("PEERGATE_URL") or stored.get("url")
    if not url:
        raise CommandError("no gateway: set PEERGATE_URL, run `peergate login`, or name a stopped one with --data DIR", USAGE)
    return Connection(key, url.rstrip("/"), None)


def store_login(url: str, key: str) -> Path:
    """Keep a URL and a key for later commands, 0600."""
    path = login_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        json.dump({"url": url, "key": key}, file)
    return path


def call(
    connection: Connection,
    method: str,
    path: str,
    *,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Make one request and return the JSON of its answer; None for an answer without a body.

    Raises:
        CommandError: the gateway cannot be reached or said no; its sentence, and what to do next when it knows.
    """
    sent = {"Authorization": f"Bearer {connection.key}", **(headers or {})}
    shown = {name: value for name, value in (query or {}).items() if value is not None}
    if connection.data is not None:
        answer = asyncio.run(_in_process(connection.data, method, path, shown, body, sent))
    else:
        try:
            answer = httpx.request(
                method, f"{connection.url}{path}", params=shown, json=body, headers=sent, timeout=TIMEOUT_SECONDS
            )
        except httpx.HTTPError as wrong:
            raise CommandError(f"the gateway at {connection.url} does not answer: {wrong}") from wrong
    return _result(answer)


async def _in_process(
    data: Path, method: str, path: str, query: Mapping[str, Any], body: Mapping[str, Any] | None, headers: Mapping[str, str]
) -> httpx.Response:
    from gateway.config import load
    from gateway.store.faults import StoreRefused
    from gateway.web.app import create_app
    from gateway.wiring import OPERATIONS, open_services

    try:
        services = open_services(load({"data": data}, {}))
    except StoreRefused as refused:
        raise CommandError(str(refused), REFUSED) from refused
    try:
        transport = httpx.ASGITransport(create_app(services, OPERATIONS))
        async with httpx.AsyncClient(transport=transport, base_url="http://local") as client:
            return await client.request(method, path, params=query, json=body, headers=headers)
    finally:
        services.database.close()


def _result(answer: httpx.Response) -> Any:
    if answer.is_success:
        return answer.json() if answer.content else None
    try:
        problem = answer.json()
    except json.JSONDecodeError:
        problem = {}
    sentence = problem.get("detail") or f"the gateway answered {answer.status_code}"
    if problem.get("next"):
        sentence += f"\n{problem['next']}"
    if problem.get("decision_id"):
        sentence += f"\ndecision {problem['decision_id']}"
    raise CommandError(sentence, FINDING)
