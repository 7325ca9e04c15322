"""Health: one word for everybody, and what is behind it for those who may read the organisation's audit events."""

from __future__ import annotations

from typing import Literal

from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.store.faults import StoreBusy, StoreFailed
from gateway.web.request import bearer

#: How long a decision may be answered and not yet on disk, in milliseconds.
WINDOW = {"durable": 0, "relaxed": 50}

Word = Literal["ok", "degraded", "failing"]


async def health(call: Call) -> Reply:
    """The status word; 503 when nothing can be answered. A credential that is not good is a 401 here as anywhere."""
    word, fault = await _probe(call)
    status = 503 if word == "failing" else 200
    if "authorization" not in call.headers or word == "failing":
        return Reply({"status": word}, status)
    call.session.caller = call.services.authenticator.authenticate(bearer(call.headers), call.now)
    if not call.access.ask(call.session, "audit.list", call.org).allowed:
        return Reply({"status": word}, status)
    return Reply({"status": word, **_details(call, fault)}, status)


async def _probe(call: Call) -> tuple[Word, str | None]:
    """The word and the store's own fault: `failing` when it cannot answer, `degraded` when it answers after one."""
    database = call.services.database
    try:
        await database.probe()
    except StoreBusy:
        return "degraded", database.failure
    except StoreFailed as failure:
        return "failing", str(failure)
    return ("degraded" if database.failure is not None else "ok"), database.failure


def _details(call: Call, fault: str | None) -> dict[str, object]:
    audit = call.services.settings.audit
    return {
        "audit": audit,
        "window_ms": WINDOW[audit],
        "bundle": call.access.engine.bundle.hash,
        "data_version": call.state.version,
        "store_failure": fault,
    }


HEALTH = Operation(
    name="health",
    method="GET",
    path="/health",
    summary="whether the gateway can answer",
    run=health,
    actions=("audit.list",),
    public="load balancers ask it without a credential; without one it says one word",
)
