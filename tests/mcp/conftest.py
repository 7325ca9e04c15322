"""One served gateway for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.builders import Client
from tests.mcp.acts import learn
from tests.mcp.served import Served


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("mcp") / "data")
    yield made
    made.close()


@pytest.fixture(scope="module")
def agent(gateway: Served) -> Client:
    """An agent whose person is the member."""
    return gateway.agent("assistant", by=gateway.member)


@pytest.fixture(scope="module")
def peer(gateway: Served, agent: Client) -> dict[str, Any]:
    """That person, of whom it is known that they approve small refunds."""
    made = gateway.peer(observers=[agent])
    learn(agent, made["id"])
    return made


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that others reach by a name."""
    made = Served(tmp_path_factory.mktemp("public") / "data", public_url="https://gateway.example/peers")
    yield made
    made.close()


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that answers a credential ten times a minute, and an address without a good one three times."""
    made = Served(tmp_path_factory.mktemp("limited") / "data", rate_limit=10, address_limit=3)
    yield made
    made.close()
