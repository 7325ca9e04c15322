"""What `/metrics` says, to whom, and that nothing in it grows with what is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.errors import LimitedBy, ShedFor
from gateway.model.decision import DenyKind
from gateway.operations.registry import OPERATIONS
from gateway.operations.traffic import CLASSES, NO_OPERATION, Traffic
from gateway.store.writer import Unit
from gateway.web.app import OWN, create_app
from tests.builders import Client, Gateway, done

TOKEN = "m" * 32


def scraped(client: Client) -> dict[tuple[str, ...], float]:
    """Every sample: its name and the values of its labels in their order."""
    made = client.get("/metrics")
    assert (made.status_code, made.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = text_string_to_metric_families(made.text)
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def grown(before: dict[tuple[str, ...], float], after: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    return {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)}


def last_row(gateway: Gateway) -> Any:
    asked = "SELECT principal_type, principal_id, action, resource_type, outcome FROM log ORDER BY seq DESC LIMIT 1"
    return gateway.services.database.read_sync(lambda rows: rows.one(asked))


@pytest.fixture
def watched(gateway: Gateway) -> Gateway:
    gateway.services.traffic.requests.clear()
    return gateway


def test_who_runs_or_audits_the_organisation_reads_them_and_nobody_else_does(gateway: Gateway) -> None:
    for role in ("owner", "admin", "security", "auditor"):
        scraped(getattr(gateway, role))
        assert last_row(gateway)[2:] == ("metrics.read", "Org", "allow")
    for client in (gateway.member, gateway.agent()):
        assert client.get("/metrics").status_code == 403
        assert last_row(gateway)[2:] == ("metrics.read", "Org", "deny")
    assert gateway.http.get("/metrics").status_code == 401


def test_the_token_of_the_setting_reads_them_and_is_good_for_nothing_else(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", metrics_token=TOKEN)
    scraper = Client(gateway.http, "", TOKEN)
    assert scraped(scraper)[("peergate_store_up",)] == 1
    assert last_row(gateway) == ("Operator", "metrics", "metrics.read", "Installation", "allow")
    for operation in (*OWN, *OPERATIONS):
        if operation.name != "metrics" and (operation.public is None or operation.knows_callers):
            assert scraper.request(operation.method, operation.path, {}).status_code == 401, operation.name
    for wrong in (TOKEN[:-1], TOKEN + "m", TOKEN.upper()):
        assert Client(gateway.http, "", wrong).get("/metrics").status_code == 401
    gateway.close()


def test_without_the_setting_no_token_is_one(gateway: Gateway) -> None:
    assert Client(gateway.http, "", TOKEN).get("/metrics").status_code == 401


def test_requests_and_decisions_are_counted_by_names_of_ours(watched: Gateway) -> None:
    agent = watched.agent()
    peer = watched.peer(observers=[agent])
    before = scraped(watched.auditor)
    done(agent.get(f"/v1/peers/{peer['id']}/context"), 200)
    done(watched.agent().get(f"/v1/peers/{peer['id']}/context"), 403)
    for path in ("/v1/nothing-there", "/v1/nothing-else", f"/v1/peer/{peer['id']}"):
        done(agent.get(path), 404)
    done(agent.request("BREW", "/v1/peers"), 405)
    made = grown(before, scraped(watched.auditor))
    assert made["peergate_requests_total", "peer.read_context", "2xx"] == 1
    assert made["peergate_requests_total", "peer.read_context", "4xx"] == 1
    assert made["peergate_requests_total", NO_OPERATION, "4xx"] == 4
    assert made["peergate_decisions_total", "peer.read_context", "allow", ""] == 1
    assert made["peergate_decisions_total", "peer.read_context", "deny", "forbidden"] == 1
    assert made["peergate_decisions_total", "agent.create", "allow", ""] == 1
    assert made["peergate_request_seconds_count",] == 8
    assert made["peergate_log_rows_total",] >= 5
    assert made["peergate_commit_seconds_count",] >= 4


def test_every_label_is_one_of_a_list_that_no_request_adds_to(gateway: Gateway) -> None:
    gateway.agent().get("/v1/peers/canary%20path?canary=1")
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(gateway.auditor.get("/metrics").text):
        for sample in family.samples:
            for name, value in sample.labels.items():
                labels.setdefault(name, set()).add(value)
    engine = gateway.services.access.engine
    assert labels["operation"] <= {NO_OPERATION, *(operation.name for operation in (*OWN, *OPERATIONS))}
    assert labels["status"] <= set(CLASSES)
    assert labels["action"] <= set(engine.bundle.action_uids)
    assert labels["decision"] <= {"allow", "deny"}
    assert labels["deny_kind"] <= {"", *DenyKind}
    assert (labels["limit"], labels["cause"]) == (set(get_args(LimitedBy)), set(get_args(ShedFor)))
    assert labels["hash"] == {engine.bundle.hash}
    assert labels.keys() == {"operation", "status", "action", "decision", "deny_kind", "limit", "cause", "hash", "le"}


def test_a_fault_of_ours_is_counted(gateway: Gateway) -> None:
    async def broken(_: Any) -> Any:
        raise ValueError

    operation = replace(OWN[1], name="broken", path="/t/broken", run=broken)
    http = replace(gateway.auditor, http=type(gateway.http)(create_app(gateway.services, (operation,))))
    before = scraped(http)
    assert http.get("/t/broken").status_code == 500
    assert grown(before, scraped(http))["peergate_errors_total",] == 1


def test_what_is_limited_and_what_is_shed_is_counted_by_its_cause(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    before = scraped(gateway.auditor)
    monkeypatch.setattr("gateway.limits.CONCURRENT_REQUESTS", 0)
    assert gateway.owner.get("/v1/peers").status_code == 503
    made = grown(before, scraped(gateway.auditor))
    assert {name: value for name, value in made.items() if name[0] == "peergate_shed_total"} == {
        ("peergate_shed_total", "requests"): 1
    }
    assert made["peergate_requests_total", "peer.list", "5xx"] == 1


def test_a_derivation_that_is_owed_shows_how_long_it_has_been(gateway: Gateway) -> None:
    database, since = gateway.services.database, gateway.clock.now
    before = scraped(gateway.auditor)
    assert (before["peergate_derive_pending",], before["peergate_derive_lag_seconds",]) == (0, 0)
    owing = "INSERT INTO pending_buckets VALUES ('p', 'k', $1), ('p', 'l', $1::TIMESTAMP + INTERVAL 1 MINUTE)"
    database.write(Unit(lambda tx: tx.run(owing, since))).result()
    later = replace(gateway.services, clock=lambda: since.replace(minute=since.minute + 5))
    http = replace(gateway.auditor, http=type(gateway.http)(create_app(later, OPERATIONS)))
    shown = scraped(http)
    database.write(Unit(lambda tx: tx.run("DELETE FROM pending_buckets"))).result()
    assert (shown["peergate_derive_pending",], shown["peergate_derive_lag_seconds",]) == (2, 300)


def test_a_reload_that_failed_shows_when(gateway: Gateway) -> None:
    engines = gateway.services.access.engines
    shown = scraped(gateway.auditor)
    assert shown["peergate_reload_failed_timestamp_seconds",] == 0
    assert shown["peergate_policies_loaded_timestamp_seconds",] == gateway.clock.now.timestamp()
    engines.failed_at = gateway.clock.now
    assert scraped(gateway.auditor)["peergate_reload_failed_timestamp_seconds",] == gateway.clock.now.timestamp()
    engines.failed_at = None


def test_classes_are_those_of_every_status() -> None:
    traffic = Traffic()
    for status in (100, 204, 304, 404, 599):
        traffic.count("x", status, 0.0)
    assert dict(traffic.requests) == {("x", name): 1 for name in CLASSES}
