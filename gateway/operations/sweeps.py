"""Sweeps: the work that a serving process does by itself, each as often as it must be done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from gateway.operations import watch
from gateway.operations.call import Services
from gateway.store import approval_outcomes, sweep
from gateway.store.writer import Unit

EXPIRY_EVERY = timedelta(minutes=1)
#: A derivation that failed is tried again this often; it stays visible in the meantime.
OWED_EVERY = timedelta(hours=1)
RETENTION_EVERY = timedelta(days=1)
WATCH_EVERY = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Work that is done again and again while the process serves."""

    name: str
    every: timedelta
    run: Callable[[], Awaitable[object]]


def sweeps(services: Services) -> tuple[Sweep, ...]:
    """Everything that is swept."""
    database = services.database

    async def expire_approvals() -> None:
        now = services.clock()
        if await database.read(lambda rows: approval_outcomes.due(rows, now)):
            bundle = services.access.engine.bundle.hash
            await database.awrite(Unit(lambda tx: approval_outcomes.expire_due(tx, now, bundle=bundle), solo=True))

    async def derive_owed() -> None:
        await sweep.derive_all(database, services.clock(), only_owed=True)

    async def bury_old_events() -> None:
        buried = await sweep.bury_all(database, services.clock())
        if buried.events:
            await asyncio.wrap_future(database.checkpoint())

    watched: list[Sweep] = []
    if services.settings.reload != "off":
        watched.append(Sweep("policies", WATCH_EVERY, watch.policies(services).look))
    if services.settings.reload == "watch" and services.foreign is not None:
        watched.append(Sweep("store", WATCH_EVERY, watch.store(services, services.foreign.directory).look))
    return (
        Sweep("approval expiry", EXPIRY_EVERY, expire_approvals),
        Sweep("owed derivations", OWED_EVERY, derive_owed),
        Sweep("retention", RETENTION_EVERY, bury_old_events),
        *watched,
    )
