"""A gateway that runs while commands are asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real.process import Server
from tests.real.world import World


@contextmanager
def gateway(data: Path, owner: dict[str, str], embedding: str = "off") -> Iterator[World]:
    """A server of a data directory; its end by SIGTERM must be a clean one."""
    arguments = ("serve", "--data", data, "--port", "0", "--json")
    with Server(*arguments, environment={"PEERGATE_EMBEDDING": embedding}) as server:
        made = World(server.url, owner)
        yield made
        made.close()
        assert server.stop() == 0
