"""The fixture of this room: one server for all of it, started and stopped as people do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.process import Server, init
from tests.real.world import World


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A server with one organisation; its end by SIGTERM must be a clean one."""
    data = tmp_path_factory.mktemp("real") / "data"
    owner = init(data)
    with Server.serve(data) as server:
        made = World(server.url, owner)
        yield made
        made.close()
        code = server.stop()
        assert (code, server.errors()) == (0, "")
