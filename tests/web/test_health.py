"""What `/health` says, and to whom."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
import uvicorn
from starlette.testclient import TestClient

from gateway import limits
from gateway.authn.authenticator import Authenticator
from gateway.store.faults import StoreFailed
from gateway.store.rows import Tx
from gateway.store.writer import Unit
from gateway.web.app import create_app
from gateway.web.server import _Server
from tests.builders import Gateway


def last_decision(gateway: Gateway) -> tuple[Any, ...] | None:
    return gateway.services.database.read_sync(lambda rows: rows.one("SELECT action, outcome FROM log ORDER BY seq DESC LIMIT 1"))


def test_without_a_credential_it_is_one_word(gateway: Gateway) -> None:
    made = gateway.http.get("/health")
    assert (made.status_code, made.json()) == (200, {"status": "ok"})


def test_a_derivation_that_is_owed_shows_as_degraded(gateway: Gateway) -> None:
    database, now = gateway.services.database, gateway.clock.now
    database.write(Unit(lambda tx: tx.run("INSERT INTO pending_buckets VALUES ('p', 'k', $1)", now))).result()
    assert gateway.http.get("/health").json() == {"status": "degraded"}
    assert gateway.auditor.get("/health").json()["pending_buckets"] == 1
    database.write(Unit(lambda tx: tx.run("DELETE FROM pending_buckets"))).result()
    assert gateway.http.get("/health").json() == {"status": "ok"}


def test_a_database_that_is_lost_is_failing(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data")
    database = gateway.services.database

    def vanish(_: Tx) -> None:
        database.files.database.unlink()
        database.files.wal.unlink(missing_ok=True)
        raise duckdb.FatalException("gone")

    assert isinstance(database.write(Unit(vanish)).exception(), StoreFailed)
    for _ in range(2):
        made = gateway.http.get("/health")
        assert (made.status_code, made.json()) == (503, {"status": "failing"})
    assert gateway.owner.get("/v1/audit/verify").status_code == 503
    gateway.close()


def test_a_wrong_credential_is_a_401(gateway: Gateway) -> None:
    assert gateway.http.get("/health", headers={"Authorization": "Bearer x"}).status_code == 401


@pytest.mark.parametrize("role", ["owner", "admin", "auditor"])
def test_who_may_read_audit_events_sees_what_is_behind_it(gateway: Gateway, role: str) -> None:
    services = gateway.services
    assert getattr(gateway, role).get("/health").json() == {
        "status": "ok",
        "pending_buckets": 0,
        "audit": "durable",
        "window_ms": 0,
        "bundle": services.access.engine.bundle.hash,
        "policies_loaded_at": "2026-03-04T10:00:00Z",
        "policies_waiting": None,
        "policies_failure": None,
        "data_version": services.state.version,
        "divergences": 0,
    }
    assert last_decision(gateway) == ("audit.list", "allow")


def test_everybody_else_sees_the_word_and_leaves_a_denial(gateway: Gateway) -> None:
    for client in (gateway.security, gateway.member, gateway.agent()):
        made = client.get("/health")
        assert (made.status_code, made.json()) == (200, {"status": "ok"})
        assert last_decision(gateway) == ("audit.list", "deny")


def test_whoever_shows_a_credential_is_limited_as_anywhere_and_nobody_else_is(gateway: Gateway) -> None:
    services = gateway.services
    limited = Authenticator(services.authenticator.signer, services.state, rate_limit=2)
    http = TestClient(create_app(replace(services, authenticator=limited), ()))
    member = replace(gateway.member, http=http)
    assert [member.get("/health").status_code for _ in range(3)] == [200, 200, 429]
    assert [http.get("/health").status_code for _ in range(3)] == [200, 200, 200]


def test_a_process_that_runs_is_live_whatever_its_store_does_and_asks_it_nothing(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data")
    gateway.close()
    made = gateway.http.get("/health/live")
    assert (made.status_code, made.json()) == (200, {"status": "live"})


def test_a_process_is_ready_while_it_can_record_decisions(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data")
    assert asked(gateway, "/health/ready") == (200, {"status": "ready"})
    gateway.services.database.failure = "it is opened again"
    assert asked(gateway, "/health/ready") == (503, {"status": "failing"})
    gateway.services.database.failure = None
    assert asked(gateway, "/health/ready") == (200, {"status": "ready"})
    gateway.close()
    assert asked(gateway, "/health/ready") == (503, {"status": "failing"})


def test_a_process_that_was_told_to_stop_is_live_and_not_ready(gateway: Gateway) -> None:
    server = _Server(uvicorn.Config(gateway.http.app), lambda: None, gateway.services.traffic)
    server.handle_exit(signal.SIGTERM, None)
    try:
        assert asked(gateway, "/health/ready") == (503, {"status": "draining"})
        assert asked(gateway, "/health/live") == (200, {"status": "live"})
    finally:
        gateway.services.traffic.draining = False


def test_a_process_with_too_much_to_do_is_live_and_not_ready(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("CONCURRENT_REQUESTS", "TURN_SECONDS"):
        with monkeypatch.context() as lowered:
            lowered.setattr(limits, limit, -1)
            assert asked(gateway, "/health/live")[0] == 200
            assert asked(gateway, "/health/ready")[0] == 503


def asked(gateway: Gateway, path: str) -> tuple[int, Any]:
    made = gateway.http.get(path)
    return made.status_code, made.json()
