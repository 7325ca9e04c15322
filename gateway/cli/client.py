"""A client of a gateway: a running one at a URL, or one started in this process on a data directory."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from gateway.cli.exits import FINDING, USAGE, CommandError
from gateway.cli.opening import find_settings, opened
from gateway.web.app import create_app
from gateway.wiring import OPERATIONS

TIMEOUT_SECONDS = 60.0
PRIVATE_DIRECTORY, PRIVATE_FILE, OTHERS = 0o700, 0o600, 0o077
#: Answers that say the request itself is wrong, as a command line can be.
BAD_REQUEST = (400, 413)


#: What the gateway calls the refusal of somebody who may, once they confirm who they are.
STEP_UP = "step-up required"


class NotConfirmed(CommandError):
    """The same request with a confirmation may be allowed."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the gateway is and which key is shown to it. Without a URL, `data` is opened in this process."""

    key: str = field(repr=False)
    url: str | None
    data: Path | None


def login_file() -> Path:
    """Where `peergate login` keeps a URL and a key, readable by their owner only."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "peergate" / "login.json"


def find_connection(url: str | None, key: str | None, data: str | None) -> Connection:
    """From flags, then `PEERGATE_URL` and `PEERGATE_KEY`, then what `peergate login` stored.

    INVARIANT: a stored key is shown to no other address than the one it was stored with.

    Raises:
        CommandError: no key, or neither a URL nor a data directory.
    """
    stored = _stored_login()
    address = None if data else checked_url(find_url(url) or "")
    key = key or os.environ.get("PEERGATE_KEY") or (stored.get("key") if data or address == stored.get("url") else None)
    if not key:
        raise CommandError(f"no key for {address or data}: set PEERGATE_KEY, or run `peergate login`", USAGE)
    return Connection(key, address, Path(data) if data else None)


def find_url(url: str | None) -> str | None:
    """The gateway's address from a flag, then `PEERGATE_URL`, then what `peergate login` stored."""
    named = url or os.environ.get("PEERGATE_URL") or _stored_login().get("url")
    return checked_url(named) if named else None


def checked_url(url: str) -> str:
    """An address without the slash at its end.

    Raises:
        CommandError: there is none, or it is not an http or https address.
    """
    if not url:
        raise CommandError("no gateway: set PEERGATE_URL, run `peergate login`, or name a stopped one with --data DIR", USAGE)
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"a gateway's address starts with http:// or https://, got `{url}`", USAGE)
    return url.rstrip("/")


def who_path(key: str) -> str:
    """Where the holder of a key reads about themselves."""
    return "/v1/agents/me" if key.startswith("ocv_") else "/v1/auth/me"


def store_login(url: str, key: str) -> Path:
    """Keep a URL and a key for later commands, 0600."""
    path = login_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), PRIVATE_FILE)
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
        NotConfirmed: the caller has to confirm who they are first.
        CommandError: the gateway cannot be reached or said no; its sentence, and what to do next when it knows.
    """
    try:
        sent = {"Authorization": f"Bearer {connection.key}", **(headers or {})}
        if connection.data is not None:
            return _result(_in_process(connection.data, method, path, query, body, sent))
        url = f"{connection.url}{path}"
        return _result(httpx.request(method, url, params=query, json=body, headers=sent, timeout=TIMEOUT_SECONDS))
    except UnicodeEncodeError as wrong:
        told = "a key and a confirmation are of ASCII characters" if wrong.encoding == "ascii" else "what is given must be UTF-8"
        raise CommandError(told, USAGE) from wrong
    except (httpx.HTTPError, httpx.InvalidURL) as wrong:
        raise CommandError(f"the gateway at {connection.url} does not answer: {wrong}") from wrong


def _in_process(
    data: Path,
    method: str,
    path: str,
    query: Mapping[str, Any] | None,
    body: Mapping[str, Any] | None,
    headers: Mapping[str, str],
) -> httpx.Response:
    with opened(find_settings({"data": data})) as services:

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(create_app(services, OPERATIONS))
            async with httpx.AsyncClient(transport=transport, base_url="http://local") as client:
                return await client.request(method, path, params=query, json=body, headers=headers)

        return asyncio.run(ask())


def _result(answer: httpx.Response) -> Any:
    try:
        content = answer.json() if answer.content else None
    except ValueError as wrong:
        raise CommandError(f"what answers there is no gateway: status {answer.status_code}, and no JSON") from wrong
    if answer.is_success:
        return content
    problem = content if isinstance(content, dict) else {}
    sentence = str(problem.get("detail") or f"the gateway answered {answer.status_code}")
    if problem.get("next"):
        sentence += f"\n{problem['next']}"
    if problem.get("decision_id"):
        sentence += f"\ndecision {problem['decision_id']}"
    if problem.get("title") == STEP_UP:
        raise NotConfirmed(sentence, problem=problem)
    raise CommandError(sentence, USAGE if answer.status_code in BAD_REQUEST else FINDING, problem)


def _stored_login() -> dict[str, str]:
    path = login_file()
    if not path.exists():
        return {}
    if path.stat().st_mode & OTHERS:
        raise CommandError(f"{path} can be read by other users of this machine: chmod 600 {path}", USAGE)
    try:
        stored = json.loads(path.read_text("utf-8"))
        return {"url": str(stored["url"]), "key": str(stored["key"])}
    except (ValueError, KeyError, TypeError) as wrong:
        raise CommandError(f"{path} is not what `peergate login` wrote: run it again", USAGE) from wrong
