"""What a serving process does by itself."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gateway.operations.sweeps import sweeps
from gateway.store.rows import Tx
from gateway.store.writer import Unit
from tests.builders import Gateway, done
from tests.operations.asking import actions, ask, stored
from tests.operations.peer_acts import KEY, facts, learn


def sweep(gateway: Gateway) -> None:
    for each in sweeps(gateway.services):
        asyncio.run(each.run())


def test_an_approval_that_nobody_decided_ends_and_that_is_on_record_once(gateway: Gateway) -> None:
    asked = ask(gateway.agent())
    gateway.clock.advance(timedelta(days=7, microseconds=-1))
    sweep(gateway)
    assert stored(gateway, "SELECT status FROM approvals") == [("pending",)]
    gateway.clock.advance(timedelta(microseconds=1))
    sweep(gateway)
    sweep(gateway)
    assert stored(gateway, "SELECT id, status FROM approvals") == [(asked["id"], "expired")]
    assert actions(gateway, action="approval.expired") == ["approval.expired"]


def test_an_event_of_ninety_days_is_buried(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)
    gateway.clock.advance(timedelta(days=90, microseconds=-1))
    sweep(gateway)
    assert stored(gateway, "SELECT count(*) FROM events") == [(3,)]
    gateway.clock.advance(timedelta(microseconds=1))
    sweep(gateway)
    assert stored(gateway, "SELECT count(*) FROM events") == [(0,)]
    assert stored(gateway, "SELECT kind, count(*) FROM provenance GROUP BY kind") == [("tombstone", 3)]


def test_what_was_buried_is_not_left_in_the_write_ahead_log(gateway: Gateway) -> None:
    agent = gateway.agent()
    learn(agent, gateway.peer(observers=[agent]), 3)
    gateway.clock.advance(timedelta(days=90))
    wal = gateway.services.database.files.wal
    assert wal.stat().st_size > 0
    sweep(gateway)
    assert not wal.exists()


def test_writers_get_their_turn_during_a_large_burial(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.sweep.BURIED_CHUNK", 1)
    agent = gateway.agent()
    for person in (gateway.member, gateway.owner):
        learn(agent, gateway.peer(person, observers=[agent]), 3)
    gateway.clock.advance(timedelta(days=90))
    database = gateway.services.database
    left: list[int] = []

    async def write_meanwhile() -> None:
        sweeping = asyncio.gather(*(each.run() for each in sweeps(gateway.services)))
        while not sweeping.done():
            left.append(await database.awrite(Unit(lambda tx: tx.value("SELECT count(*) FROM events"))))

    asyncio.run(write_meanwhile())
    assert 3 in left


def test_a_derivation_that_is_owed_is_done(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    learn(agent, peer, 3)

    def owe(tx: Tx) -> None:
        tx.run("DELETE FROM facts")
        tx.run("INSERT INTO pending_buckets (peer_id, fact_key, since) VALUES ($1, $2, $3)", peer["id"], KEY, gateway.clock())

    gateway.services.database.write(Unit(owe, solo=True)).result()
    sweep(gateway)
    assert stored(gateway, "SELECT count(*) FROM pending_buckets") == [(0,)]
    assert [fact["fact_key"] for fact in facts(agent, peer)] == [KEY]


def test_when_there_is_nothing_to_do_nothing_is_written(gateway: Gateway) -> None:
    before = stored(gateway, "SELECT max(seq) FROM log")
    sweep(gateway)
    assert stored(gateway, "SELECT max(seq) FROM log") == before
    assert done(gateway.http.get("/health"), 200) == {"status": "ok"}
