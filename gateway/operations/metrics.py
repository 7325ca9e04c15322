"""Metrics: the counts of the process for a monitoring system. Never content, and never an id of anybody or anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gateway.model.caller import SCRAPER
from gateway.operations.call import Call
from gateway.operations.exposition import CONTENT_TYPE, Family, Times, one, text
from gateway.operations.operation import Operation, Reply
from gateway.operations.schema import TEXT
from gateway.store import sweep
from gateway.store.entities import Installation
from gateway.store.faults import StoreBusy, StoreFailed


async def metrics(call: Call) -> Reply:
    """The counts since the process started, in the text format of Prometheus."""
    if call.session.caller is SCRAPER:
        call.access.authorize(call.session, "metrics.read", Installation())
    else:
        call.access.authorize(call.session, "metrics.read", call.org)
    page = text((*_requests(call), *_decisions(call), *_store(call), *await _derivation(call), *_policies(call)))
    return Reply(None, text=(CONTENT_TYPE, page))


def _requests(call: Call) -> Iterator[Family | Times]:
    traffic = call.services.traffic
    counted = sorted(traffic.requests.items())
    yield Family(
        "peergate_requests_total",
        "counter",
        "Requests answered, by operation and class of status; the operation of a path that there is not is none.",
        [({"operation": operation, "status": status}, count) for (operation, status), count in counted],
    )
    yield Times("peergate_request_seconds", "From the head of a request to its answer.", traffic.seconds)
    yield one("peergate_requests_under_way", "gauge", "Requests under way now, this one included.", traffic.under_way)
    yield one("peergate_errors_total", "counter", "Requests that failed for a reason of the gateway's own.", traffic.faults)
    yield _by("peergate_rate_limited_total", "Requests and tool calls over a limit, by the limit.", "limit", traffic.limited)
    yield _by("peergate_shed_total", "Requests and tool calls told to come back, by the cause.", "cause", traffic.shed)
    yield one(
        "peergate_log_lines_dropped_total",
        "counter",
        "Lines of the process's own log that nobody took in time.",
        traffic.lines_dropped(),
    )


def _decisions(call: Call) -> Iterator[Family]:
    access = call.access
    yield Family(
        "peergate_decisions_total",
        "counter",
        "Decisions recorded, by action, decision and kind of denial.",
        [
            ({"action": action, "decision": outcome, "deny_kind": kind}, count)
            for (action, outcome, kind), count in sorted(access.decided.items())
        ],
    )
    yield one(
        "peergate_shadow_mismatches_total",
        "counter",
        "Decisions that policies in the shadow would have taken otherwise.",
        access.mismatches,
    )
    yield one(
        "peergate_divergences_total",
        "counter",
        "Rows that the SQL of a plan kept and Cedar denied; each is an incident.",
        access.divergences,
    )


def _store(call: Call) -> Iterator[Family | Times]:
    database = call.services.database
    writer = database.writer
    yield one("peergate_store_up", "gauge", "Whether decisions can be recorded.", database.healthy)
    yield one("peergate_writer_queue", "gauge", "Changes and records that wait for the writer.", writer.waiting)
    yield one("peergate_reader_queue", "gauge", "Reads that wait for a thread.", database.reads_waiting)
    yield Times("peergate_commit_seconds", "A transaction of the writer, from its begin until it is published.", writer.commits)
    yield one("peergate_log_rows_total", "counter", "Rows written to the decision log.", writer.rows_logged)


async def _derivation(call: Call) -> tuple[Family, ...]:
    """What the store has to be asked for; left out when it cannot answer, so that the rest can still be read."""
    try:
        count, seconds = await call.services.database.read(lambda rows: sweep.lag(rows, call.now))
    except (StoreFailed, StoreBusy):
        return ()
    return (
        one("peergate_derive_pending", "gauge", "Buckets whose derivation failed and is owed.", count),
        one("peergate_derive_lag_seconds", "gauge", "How long the oldest of them has waited.", seconds),
    )


def _policies(call: Call) -> Iterator[Family]:
    engines = call.access.engines
    yield Family(
        "peergate_bundle_info",
        "gauge",
        "The policies of the installation that decide, by the hash that the decision log names.",
        [({"hash": engines.base.bundle.hash}, 1)],
    )
    loaded, failed = engines.loaded_at, engines.failed_at
    yield one(
        "peergate_policies_loaded_timestamp_seconds",
        "gauge",
        "When they were loaded.",
        loaded.timestamp() if loaded is not None else 0,
    )
    yield one(
        "peergate_reload_failed_timestamp_seconds",
        "gauge",
        "Since when loading others fails; 0 when nothing has failed since they were loaded.",
        failed.timestamp() if failed is not None else 0,
    )


def _by(name: str, help: str, label: str, counts: Counter[str]) -> Family:
    return Family(name, "counter", help, [({label: said}, count) for said, count in sorted(counts.items())])


METRICS = Operation(
    name="metrics",
    method="GET",
    path="/metrics",
    summary="the counts of the process, for Prometheus",
    run=metrics,
    actions=("metrics.read",),
    scraped=True,
    vital=True,
    answers={200: TEXT},
    media=CONTENT_TYPE,
)
