"""Health: one word for everybody, and what is behind it for those who may read the organisation's audit events."""

from __future__ import annotations

from gateway.model.caller import ANONYMOUS
from gateway.operations.call import Call, Services
from gateway.operations.fields import optional_stamp
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import records as wire
from gateway.policy.engines import Engines
from gateway.store import sweep
from gateway.store.entities import Installation
from gateway.store.faults import StoreBusy, StoreFailed

#: How long a decision may be answered and not yet on disk, in milliseconds.
WINDOW = {"durable": 0, "relaxed": 50}


async def health(call: Call) -> Reply:
    """The status word; `failing`, with a 503, when no decision can be recorded, and so none be given.

    A credential that is shown is looked at and counted as anywhere.
    """
    owed = await _owed(call.services)
    if owed is None:
        return Reply({"status": "failing"}, 503)
    status: dict[str, object] = {"status": "degraded" if owed else "ok"}
    if call.session.caller is ANONYMOUS:
        return Reply(status)
    shown = call.access.ask(call.session, "audit.list", call.org).allowed
    return Reply({**status, **_details(call, owed)} if shown else status)


async def live(call: Call) -> Reply:
    """Whether the process runs. It asks the store nothing: a process that is started anew for a full disk is no better."""
    return Reply({"status": "live"})


async def ready(call: Call) -> Reply:
    """Whether requests should be sent here: `draining` once it was told to stop, `failing` while the log cannot be written,
    also while the store is opened again. Before everything is loaded nothing listens."""
    if call.services.traffic.draining:
        return Reply({"status": "draining"}, 503)
    if await _owed(call.services) is None:
        return Reply({"status": "failing"}, 503)
    return Reply({"status": "ready"})


async def _owed(services: Services) -> int | None:
    """How many derivations failed and are still owed; None when the store does not serve."""
    database = services.database
    try:
        serves = database.healthy and await database.probe()
        return await database.read(sweep.owed) if serves else None
    except (StoreFailed, StoreBusy):
        return None


def _details(call: Call, owed: int) -> dict[str, object]:
    audit = call.services.settings.audit
    return {
        "pending_buckets": owed,
        "audit": audit,
        "window_ms": WINDOW[audit],
        "bundle": call.access.engines.of(call.org.id).bundle.hash,
        "policies_loaded_at": optional_stamp(call.access.engines.loaded_at),
        "policies_waiting": waiting_bundle(call.access.engines),
        "policies_failure": call.access.engines.own(call.org.id).failure or _failure(call),
        "data_version": call.state.version,
        "divergences": call.access.divergences,
        **_store(call),
    }


def _store(call: Call) -> dict[str, object]:
    """What answers AuthZEN clients in place of our own store, where something does."""
    served = call.services.foreign
    if served is None:
        return {}
    failure = served.failure
    if failure is not None and not call.access.ask(call.session, "admin.reload", Installation()).allowed:
        failure = "what lies on the disk has not been loaded"
    return {"store": served.store.hash, "store_failure": failure}


def _failure(call: Call) -> str | None:
    """Why policies of the product were not loaded, for those who may load them; that they were not, for everybody else.

    What is wrong may be in the text of another organisation, or name what lies on the disk.
    """
    engines = call.access.engines
    if engines.failure is None or call.access.ask(call.session, "admin.reload", Installation()).allowed:
        return engines.failure
    return f"policies of the product have not been loaded since {optional_stamp(engines.failed_at)}"


def waiting_bundle(engines: Engines) -> str | None:
    """The hash of the policies that wait in the shadow, by which they are promoted."""
    return None if engines.staged is None else engines.staged.engine.bundle.hash


HEALTH = Operation(
    name="health",
    method="GET",
    path="/health",
    summary="whether the gateway can answer",
    run=health,
    actions=("audit.list", "admin.reload"),
    public="load balancers ask it without a credential; without one it says one word",
    knows_callers=True,
    answers={200: wire.HEALTH, 503: wire.FAILING},
)
LIVE = Operation(
    name="health.live",
    method="GET",
    path="/health/live",
    summary="whether the process runs",
    run=live,
    public="whoever supervises the process asks it without a credential; it says one word",
    unread=True,
    vital=True,
    answers={200: wire.LIVE},
)
READY = Operation(
    name="health.ready",
    method="GET",
    path="/health/ready",
    summary="whether requests should be sent here",
    run=ready,
    public="load balancers ask it without a credential; it says one word",
    unread=True,
    answers={200: wire.READY, 503: wire.NOT_READY},
)
