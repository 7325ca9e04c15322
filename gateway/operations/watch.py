"""Watches over files that decide, which load them again once they are others than before."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from gateway.errors import Unavailable
from gateway.operations.call import Services
from gateway.operations.reload import reload
from gateway.operations.store_reload import reload_store


class Watch:
    """Looks at the files of a directory, and loads them again once they are others than before."""

    def __init__(self, directory: Path, load: Callable[[], Awaitable[object]]) -> None:
        self._directory = directory
        self._load = load
        self._seen = _seen(directory)

    async def look(self) -> None:
        """Load again what has changed. What does not load is not tried again before it changes once more; whatever else
        fails leaves the change to the next look."""
        seen = await asyncio.to_thread(_seen, self._directory)
        if seen != self._seen:
            with suppress(Unavailable):
                await self._load()
                self._seen = seen


def policies(services: Services) -> Watch:
    """A watch over the policies."""
    return Watch(services.policies_at, partial(reload, services))


def store(services: Services, directory: Path) -> Watch:
    """A watch over the directory of the store that is served beside our own."""
    return Watch(directory, partial(reload_store, services))


def _seen(directory: Path) -> frozenset[tuple[str, int, int]]:
    """Every file under a directory with its time and size; one that has just gone is not there."""
    found = set()
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                stat = os.stat(os.path.join(folder, name))
            except OSError:
                continue
            found.add((os.path.join(folder, name), stat.st_mtime_ns, stat.st_size))
    return frozenset(found)
