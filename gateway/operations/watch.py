"""A watch over the files of the policies, which loads them again once they are others than before."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from gateway.errors import Unavailable
from gateway.operations.call import Services
from gateway.operations.reload import reload


class Watch:
    """Looks at the files of the policies, and loads them again once they are others than before."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._seen = _seen(services.policies_at)

    async def look(self) -> None:
        """Load again what has changed. What does not load is not tried again before it changes once more; whatever else
        fails leaves the change to the next look."""
        seen = await asyncio.to_thread(_seen, self._services.policies_at)
        if seen != self._seen:
            with suppress(Unavailable):
                await reload(self._services)
                self._seen = seen


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
