"""Where the key set of an issuer comes from: a file, or the one address that the setting names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx

from gateway.authn.jwks import KEY_SET_BYTES, KeySetUnusable

#: For all of it: the connection, the head of the answer and its body, however slowly they come.
FETCH_SECONDS = 5.0

Load = Callable[[], bytes]


def key_source(where: str) -> Load:
    """What reads the key set at an address or in a file: it blocks, for `FETCH_SECONDS` at most.

    It raises KeySetUnusable when there is none to be had.
    """
    return partial(_fetch, where) if "://" in where else partial(_read, Path(where))


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(KEY_SET_BYTES + 1)
    except OSError as wrong:
        raise KeySetUnusable(f"{file} cannot be read: {wrong.strerror}") from wrong


def _fetch(url: str) -> bytes:
    """A loop of its own: on a thread that is not the server's, with an end that a slow answer cannot put off."""
    try:
        return asyncio.run(_get(url))
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as wrong:
        # The kind alone: a message may quote what was answered.
        raise KeySetUnusable(f"it cannot be fetched ({type(wrong).__name__})") from wrong


async def _get(url: str) -> bytes:
    # Nothing is followed: an answer that points elsewhere is none. A proxy of the environment is for https, where it sees
    # nothing; what is on this machine is asked on this machine.
    client = httpx.AsyncClient(
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        timeout=FETCH_SECONDS,
        follow_redirects=False,
        trust_env=url.startswith("https://"),
    )
    async with asyncio.timeout(FETCH_SECONDS), client, client.stream("GET", url) as answer:
        if answer.status_code != httpx.codes.OK:
            raise KeySetUnusable(f"its address answers {answer.status_code}")
        content = bytearray()
        async for chunk in answer.aiter_raw():
            content += chunk
            if len(content) > KEY_SET_BYTES:
                break
        return bytes(content)
