"""An agent of the gateway of one test, and what is connected to it; and a gateway that embeds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import Client, Gateway
from tests.operations.connecting import connect
from tests.operations.memory_acts import allow_all


@pytest.fixture
def agent(gateway: Gateway) -> Client:
    return gateway.agent()


@pytest.fixture
def remote(gateway: Gateway, agent: Client) -> Client:
    """A connection that is granted nothing yet."""
    return connect(gateway, agent, "conn-1")


@pytest.fixture
def connection(gateway: Gateway, agent: Client) -> Client:
    """A connection that may do everything to what is in alpha, up to internal."""
    made = connect(gateway, agent)
    allow_all(gateway, made)
    return made


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway without an embedding model."""
    made = Gateway(tmp_path / "plain", embedding="off")
    yield made
    made.close()
