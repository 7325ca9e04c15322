"""Remembering beside a model: what will be refused is not embedded, and it is the transaction that decides."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gateway.embedding.embedder import Embedder
from gateway.web.app import create_app
from gateway.wiring import OPERATIONS
from tests.builders import Client, Gateway, done
from tests.operations.connecting import allow, connect
from tests.operations.memory_acts import shared


def with_model(made: Gateway, before: Callable[[], object] = lambda: None) -> list[str]:
    """Put a model into a gateway that waits for `before` and keeps what it is asked."""
    asked: list[str] = []

    async def encode(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        await asyncio.to_thread(before)
        return [[1.0]] * len(texts)

    made.services = replace(made.services, embedder=Embedder("a model", encode))
    made.http = TestClient(create_app(made.services, OPERATIONS))
    made.owner = replace(made.owner, http=made.http)
    return asked


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path / "data", embedding="off")
    yield made
    made.close()


def writer(gateway: Gateway, max_per_day: int) -> Client:
    """A remote agent that may write so many rows a day."""
    remote = connect(gateway, gateway.agent(), "conn-1")
    allow(gateway, remote, actions=["remember"], limits={"max_per_day": max_per_day})
    return remote


def write(who: Client, text: str, **changes: object) -> int:
    return who.post("/v1/memories", {"text": text, "project_id": "alpha", **changes}).status_code


def test_a_write_over_the_quota_is_not_embedded(gateway: Gateway) -> None:
    asked = with_model(gateway)
    remote = writer(gateway, 1)
    assert [write(remote, text) for text in ("first", "second")] == [201, 429]
    assert asked == ["first"]


def test_a_write_over_what_was_forgotten_is_not_embedded(gateway: Gateway) -> None:
    asked = with_model(gateway)
    remote = writer(gateway, 9)
    done(gateway.owner.delete("/v1/connections/conn-1/memories"), 200)
    assert write(remote, "again") == 409
    assert asked == []


def test_what_was_superseded_or_retracted_gives_nothing_to_embed(gateway: Gateway) -> None:
    asked = with_model(gateway)
    agent = gateway.agent()
    old, gone = shared(agent, "old"), shared(agent, "gone")
    assert write(agent, "new", supersedes=old["id"]) == 201
    done(agent.post(f"/v1/memories/{gone['id']}/retract"), 200)
    assert write(agent, "newer", supersedes=old["id"]) == write(agent, "derived", derived_from=[gone["id"]]) == 409
    assert asked == ["old", "gone", "new"]


def test_of_two_that_are_embedded_at_once_the_quota_lets_one_through(gateway: Gateway) -> None:
    asked = with_model(gateway, threading.Barrier(2).wait)
    remote = writer(gateway, 1)
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lambda text: write(remote, text), ("one", "two"))) == [201, 429]
    assert sorted(asked) == ["one", "two"]
