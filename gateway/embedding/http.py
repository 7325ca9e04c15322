"""A model behind an OpenAI-compatible endpoint. What is sent there is the text itself: whoever runs it can read it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import httpx

from gateway.embedding.embedder import NUMBERS, UNUSABLE, Embedder
from gateway.errors import Unavailable

TIMEOUT_SECONDS = 10.0
ATTEMPTS = 3
#: Before the second attempt; each further one waits twice as long.
BACK_OFF_SECONDS = 0.2
BATCH = 64
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
NO_ANSWER = "the embedding endpoint does not answer; try again"

_log = logging.getLogger("gateway.embedding")


def http_embedder(url: str, model: str, key: str | None) -> Embedder:
    """The embedder of `model` at `url`/embeddings, shown a key when there is one."""
    return Embedder(model, _Endpoint(url, model, key).encode)


class _Endpoint:
    """Asks in batches, and remembers how many numbers the model gives: a space does not change its size."""

    def __init__(self, url: str, model: str, key: str | None) -> None:
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._tls = httpx.create_ssl_context()
        self._shorten = False
        self._size: int | None = None

    async def encode(self, texts: Sequence[str]) -> list[list[float]]:
        encoded: list[list[float]] = []
        async with httpx.AsyncClient(headers=self._headers, verify=self._tls, timeout=TIMEOUT_SECONDS) as client:
            for start in range(0, len(texts), BATCH):
                encoded += await self._batch(client, texts[start : start + BATCH])
        return encoded

    async def _batch(self, client: httpx.AsyncClient, texts: Sequence[str]) -> list[list[float]]:
        """One batch; a model with more numbers than are stored is asked once more, for as many as are."""
        found = _read(await self._ask(client, texts), len(texts))
        if not self._shorten and len(found[0]) > NUMBERS:
            self._shorten = True
            found = _read(await self._ask(client, texts), len(texts))
        size = self._size or len(found[0])
        if size > NUMBERS or any(len(numbers) != size for numbers in found):
            raise _unusable(f"gave vectors of another size than {min(size, NUMBERS)}")
        self._size = size
        return found

    async def _ask(self, client: httpx.AsyncClient, texts: Sequence[str]) -> Any:
        asked: dict[str, object] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if self._shorten:
            asked["dimensions"] = NUMBERS
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(BACK_OFF_SECONDS * 2 ** (attempt - 1))
            try:
                answer = await client.post(self._url, json=asked)
            except (httpx.HTTPError, httpx.InvalidURL) as wrong:
                # The kind alone: a message may hold an address with a key in it.
                _log.warning("the embedding endpoint cannot be reached: %s", type(wrong).__name__)
                continue
            if answer.is_success:
                return _json(answer)
            _log.warning("the embedding endpoint answers %d", answer.status_code)
            if answer.status_code not in TRY_AGAIN:
                break
        raise Unavailable(NO_ANSWER)


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError as wrong:
        raise _unusable("gave no JSON") from wrong


def _read(answer: Any, count: int) -> list[list[float]]:
    """The vectors of an answer, in the order of the texts."""
    try:
        placed = {int(item["index"]): [float(number) for number in item["embedding"]] for item in answer["data"]}
        return [placed[index] for index in range(count)]
    except (LookupError, TypeError, ValueError, OverflowError) as wrong:
        raise _unusable("gave no list of vectors") from wrong


def _unusable(what: str) -> Unavailable:
    _log.warning("the embedding endpoint %s", what)
    return Unavailable(UNUSABLE)
