"""Limits of grants: the strictest of those that cover a request hold for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from gateway.model.coverage import covers
from gateway.model.memory import NO_LIMITS, GrantLimits, Memory, MemoryGrant
from gateway.operations.call import Call

MINUTE = timedelta(minutes=1)


def strictest(grants: Iterable[MemoryGrant]) -> GrantLimits:
    """The smallest of each limit."""
    limits = [grant.limits for grant in grants] or [NO_LIMITS]

    def least(of: Callable[[GrantLimits], int | None]) -> int | None:
        return min((most for each in limits if (most := of(each)) is not None), default=None)

    return GrantLimits(
        max_results=least(lambda each: each.max_results),
        max_chars=least(lambda each: each.max_chars),
        requests_per_minute=least(lambda each: each.requests_per_minute),
        max_tokens=least(lambda each: each.max_tokens),
        max_per_day=least(lambda each: each.max_per_day),
    )


def covering(grants: Sequence[MemoryGrant], project_id: str | None) -> list[MemoryGrant]:
    """The grants that a request is about: those on the project it names, or all when it names none or another."""
    return [grant for grant in grants if grant.project_id == project_id] or [*grants]


def writable(call: Call, connection_id: str, row: Memory) -> list[MemoryGrant]:
    """The live grants of a connection that cover a row as it would be stored."""
    connection = call.state.remote_connections.get((row.org_id, connection_id))
    if connection is None:
        return []
    granted = [grant for grant in call.state.live_grants(connection, call.now) if "remember" in grant.actions]
    return [grant for grant in granted if covers(grant, connection, row, call.now)]


def take(call: Call, connection_id: str, limits: GrantLimits) -> None:
    """Count one request of a connection, whatever the surface, against what its grants allow a minute.

    A request that is run again counts once. Nothing is kept about a connection that no grant limits.

    Raises:
        TooManyRequests: over it.
    """
    session, org_id = call.session, call.session.caller.org_id
    once = ("request of a connection", connection_id)
    if once in session.confirmed or all(each.limits.requests_per_minute is None for each in _live(call, connection_id)):
        return
    call.services.requests.take((org_id, connection_id), limits.requests_per_minute, MINUTE, call.now)
    session.confirmed[once] = True


def _live(call: Call, connection_id: str) -> list[MemoryGrant]:
    connection = call.state.remote_connections.get((call.session.caller.org_id, connection_id))
    return call.state.live_grants(connection, call.now) if connection is not None else []
