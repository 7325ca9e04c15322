"""A request whose time is over: it is answered, nothing of it happens afterwards, and its decision says so in the log."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gateway import limits
from gateway.operations import dispatch
from gateway.operations.registry import OPERATIONS
from gateway.store.rows import Tx
from gateway.web.app import create_app
from tests.builders import Client, Gateway, done
from tests.operations.test_stale import block_readers
from tests.store.samples import busy_writer

LATE = {
    "type": "urn:peergate:problem:unavailable",
    "title": "unavailable",
    "status": 503,
    "detail": "there was no answer within 1 s; try again",
}
READ, LISTED = "/v1/decisions", "decision.list"


@pytest.fixture(params=["durable", "relaxed"])
def hurried(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Gateway]:
    """A gateway whose answers may take a second."""
    gateway = Gateway(tmp_path / "data", deadline=1, audit=request.param)
    yield gateway
    gateway.close()


@contextmanager
def readers_busy(gateway: Gateway) -> Iterator[None]:
    release, threads = block_readers(gateway)
    try:
        yield
    finally:
        release.set()
        for thread in threads:
            thread.join()


def logged(gateway: Gateway, request_id: str) -> list[tuple[Any, ...]]:
    gateway.services.database.exclusive(lambda _: None).result()  # what is queued is written by then
    asked = "SELECT id, kind, action, outcome, deny_kind FROM log WHERE request_id = $1 ORDER BY seq"
    return gateway.services.database.read_sync(lambda rows: rows.all(asked, request_id))


def test_a_read_that_waits_too_long_is_a_503_whose_decision_came_to_nothing(hurried: Gateway) -> None:
    with readers_busy(hurried):
        made = hurried.owner.request("GET", READ, headers={"X-Request-Id": "r"})
    allowed, late = logged(hurried, "r")
    assert (allowed[1:], late[1:]) == (
        ("decision", LISTED, "allow", None),
        ("decision", LISTED, "deny", "deadline"),
    )
    assert made.json() == {**LATE, "decision_id": allowed[0]}
    assert made.headers["retry-after"] == "1"
    assert hurried.services.traffic.shed["deadline"] == 1
    assert hurried.services.access.decided[LISTED, "deny", "deadline"] == 1
    done(hurried.owner.get(READ), 200)


def test_a_change_that_waits_too_long_never_happens(hurried: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "LATE_SECONDS", 0.1)
    before = len(hurried.services.state.agents)
    with busy_writer(hurried.services.database):
        made = hurried.owner.request("POST", "/v1/agents", {"name": "late"}, {"X-Request-Id": "r"})
    allowed, late = logged(hurried, "r")
    assert (made.status_code, made.json()["decision_id"]) == (503, allowed[0])
    assert [row[2:] for row in (allowed, late)] == [("agent.create", "allow", None), ("agent.create", "deny", "deadline")]
    assert len(hurried.services.state.agents) == before


def test_a_change_that_happened_in_the_last_moment_is_recorded_once_and_as_it_was(
    hurried: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "LATE_SECONDS", 0.1)
    began, release = threading.Event(), threading.Event()
    inner = Tx.flush

    def slow(tx: Tx) -> None:
        began.set()
        release.wait()
        inner(tx)

    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(Tx, "flush", slow)
        sent = pool.submit(hurried.owner.request, "POST", "/v1/agents", {"name": "just"}, {"X-Request-Id": "r"})
        began.wait()
        assert sent.result().status_code == 503  # the deadline came while the commit was under way
        release.set()
    rows = logged(hurried, "r")
    assert [row[1:] for row in rows] == [
        ("decision", "agent.create", "allow", None),
        ("audit", "agent.created", None, None),
    ]
    assert "just" in {agent.name for agent in hurried.services.state.agents.values()}


def test_a_denial_is_recorded_also_when_its_record_waits_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "LATE_SECONDS", 0.1)
    gateway = Gateway(tmp_path / "data", deadline=1)
    agent = gateway.agent()
    with busy_writer(gateway.services.database):
        made = agent.request("GET", READ, headers={"X-Request-Id": "r"})
    [denied] = logged(gateway, "r")
    assert denied[1:] == ("decision", LISTED, "deny", "forbidden")
    assert made.json() == {**LATE, "decision_id": denied[0]}
    gateway.close()


def test_where_the_queue_is_full_a_late_request_is_refused_for_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway(tmp_path / "data", deadline=1)
    with readers_busy(gateway), busy_writer(gateway.services.database):
        monkeypatch.setattr(limits, "WRITER_QUEUE", 0)
        made = gateway.owner.get(READ)
    assert (made.status_code, made.json()["detail"]) == (503, dispatch.NOT_RECORDED)
    assert (gateway.services.traffic.shed["store"], gateway.services.traffic.shed["deadline"]) == (1, 0)
    gateway.close()


def unhurried(gateway: Gateway, name: str) -> Client:
    operations = [replace(operation, unhurried=operation.name == name or operation.unhurried) for operation in OPERATIONS]
    return replace(gateway.owner, http=TestClient(create_app(gateway.services, operations)))


def test_work_that_takes_what_it_takes_and_a_setting_of_none_have_no_deadline(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", deadline=1)
    forever = replace(gateway.services, settings=replace(gateway.services.settings, deadline=0))
    without = replace(gateway.owner, http=TestClient(create_app(forever, OPERATIONS)))
    with ThreadPoolExecutor(3) as pool, readers_busy(gateway):
        waiting = [pool.submit(who.get, READ) for who in (without, unhurried(gateway, "decision.list"))]
        assert gateway.owner.get(READ).status_code == 503
        assert [each.done() for each in waiting] == [False, False]
    assert [each.result().status_code for each in waiting] == [200, 200]
    gateway.close()


def test_what_copies_or_builds_a_whole_directory_is_unhurried() -> None:
    named = {operation.name for operation in OPERATIONS if operation.unhurried}
    assert named == {
        *("admin.backup", "admin.erase", "admin.derive", "admin.verify", "admin.reload"),
        *("policy.create", "policy.update", "policy.delete", "policy.promote", "policy.rollback", "policy.test", "policy.replay"),
        *("memory.index", "memory.forget", "memory.forget_connection", "agent.simulate_policy"),
    }
