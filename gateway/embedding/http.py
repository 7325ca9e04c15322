"""A model behind an OpenAI-compatible endpoint. What is sent there is the text itself: whoever runs it can read it."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from gateway.embedding.embedder import NUMBERS, UNUSABLE, Embedder
from gateway.errors import Unavailable

#: For one step of an attempt, such as connecting or the next bytes.
TIMEOUT_SECONDS = 10.0
#: For one batch, whatever its attempts and however slowly they answer.
BATCH_SECONDS = 20.0
ATTEMPTS = 3
#: Before the second attempt; each further one waits twice as long.
BACK_OFF_SECONDS = 0.2
BATCH = 64
#: Bytes of an answer to each text of it, and once more for what is around them; 4,096 numbers take a third of it.
TEXT_BYTES = 256 * 1024
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
NO_ANSWER = "the embedding endpoint does not answer; try again"

_log = logging.getLogger("gateway.embedding")


def http_embedder(url: str, model: str, key: str | None) -> Embedder:
    """The embedder of `model` at `url`/embeddings, shown a key when there is one."""
    return Embedder(model, _Endpoint(url, model, key).encode)


@dataclass(frozen=True, slots=True)
class _Space:
    """How many numbers the model gives, and whether it has to be asked for as many: its own are more than are stored."""

    size: int
    shorten: bool


class _Endpoint:
    """Asks in batches, and remembers the space of the model, whose vectors are all of one size.

    INVARIANT: one answer alone is never believed: two of one size are, until there is one of another.
    """

    def __init__(self, url: str, model: str, key: str | None) -> None:
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        # Bytes as they are: a small packed answer could be any number of them.
        self._headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._tls = httpx.create_ssl_context()
        self._space: _Space | None = None

    async def encode(self, texts: Sequence[str]) -> list[list[float]]:
        encoded: list[list[float]] = []
        async with httpx.AsyncClient(headers=self._headers, verify=self._tls, timeout=TIMEOUT_SECONDS) as client:
            for start in range(0, len(texts), BATCH):
                try:
                    async with asyncio.timeout(BATCH_SECONDS):
                        encoded += await self._batch(client, texts[start : start + BATCH])
                except TimeoutError as wrong:
                    _log.warning("the embedding endpoint takes longer than %d seconds", BATCH_SECONDS)
                    raise Unavailable(NO_ANSWER) from wrong
        return encoded

    async def _batch(self, client: httpx.AsyncClient, texts: Sequence[str]) -> list[list[float]]:
        """One batch. The first text of the first is asked for alone before it, to see what the model gives."""
        space = self._space or await self._look(client, texts[0])
        found = await self._ask(client, texts, shorten=space.shorten)
        if any(len(numbers) != space.size for numbers in found):
            # Nothing says which of them was wrong.
            self._space = None
            raise _unusable(f"gave vectors of another size than {space.size}")
        self._space = space
        return found

    async def _look(self, client: httpx.AsyncClient, text: str) -> _Space:
        [numbers] = await self._ask(client, [text], shorten=False)
        return _Space(min(len(numbers), NUMBERS), shorten=len(numbers) > NUMBERS)

    async def _ask(self, client: httpx.AsyncClient, texts: Sequence[str], *, shorten: bool) -> list[list[float]]:
        asked: dict[str, object] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if shorten:
            asked["dimensions"] = NUMBERS
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(BACK_OFF_SECONDS * 2 ** (attempt - 1))
            try:
                async with client.stream("POST", self._url, json=asked) as answer:
                    content = await _content(answer, len(texts)) if answer.is_success else b""
            except (httpx.HTTPError, httpx.InvalidURL) as wrong:
                # The kind alone: a message may hold an address with a key in it.
                _log.warning("the embedding endpoint cannot be reached: %s", type(wrong).__name__)
                continue
            if answer.is_success:
                return _read(_json(content), len(texts))
            _log.warning("the embedding endpoint answers %d", answer.status_code)
            if answer.status_code not in TRY_AGAIN:
                break
        raise Unavailable(NO_ANSWER)


async def _content(answer: httpx.Response, texts: int) -> bytes:
    """The bytes of an answer, as they were sent, and not one chunk more than an answer to so many texts may have."""
    content = bytearray()
    async for chunk in answer.aiter_raw():
        content += chunk
        if len(content) > TEXT_BYTES * (texts + 1):
            raise _unusable("gives more than an answer may have")
    return bytes(content)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as wrong:
        raise _unusable("gave no JSON") from wrong


def _read(answer: Any, count: int) -> list[list[float]]:
    """The vectors of an answer, in the order of the texts: exactly as many."""
    try:
        placed = {int(item["index"]): _numbers(item["embedding"]) for item in answer["data"]}
        found = [placed[index] for index in range(count)]
        whole = len(answer["data"]) == count and all(0 < math.hypot(*numbers) < math.inf for numbers in found)
    except (LookupError, TypeError, ValueError, OverflowError) as wrong:
        raise _unusable("gave no list of vectors") from wrong
    if not whole:
        raise _unusable("gave vectors without a direction, or another number of them than it was asked for")
    return found


def _numbers(given: Any) -> list[float]:
    """The numbers of a list; texts of digits and truth values are none."""
    if type(given) is not list or any(type(number) not in (int, float) for number in given):
        raise TypeError
    return [float(number) for number in given]


def _unusable(what: str) -> Unavailable:
    _log.warning("the embedding endpoint %s", what)
    return Unavailable(UNUSABLE)
