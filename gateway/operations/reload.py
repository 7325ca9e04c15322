"""Reload: the policies on the disk are read again, checked as at the start and by their cases, and decide from then on."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gateway.config import ConfigError
from gateway.errors import Stale
from gateway.model.grant import Grant
from gateway.model.org_policy import OrgPolicy
from gateway.operations.call import Call, Services
from gateway.operations.operation import Operation, Reply
from gateway.operations.operator import as_operator
from gateway.policy.cases import CaseError, run_cases
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines, Own
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.slice import SliceError
from gateway.store.entities import Installation
from gateway.store.installation import keep_bundle
from gateway.store.rows import Tx
from gateway.store.writer import Unit

#: How often it is tried again when an organisation changes its policies meanwhile.
ATTEMPTS = 5
#: What is told of what is wrong.
FINDINGS = 50

_log = logging.getLogger("gateway.operations")


@dataclass(frozen=True, slots=True)
class Ready:
    """What was built aside, from what stood before; `cases` is how many hold."""

    base: PolicyEngine
    own: dict[str, Own]
    cases: int
    before: PolicyEngine
    policies: Sequence[OrgPolicy]


async def reload_now(call: Call) -> Reply:
    """Load the policies again; what does not load, or fails a case, changes nothing."""
    grant = call.access.authorize(call.session, "admin.reload", Installation())
    try:
        ready = await asyncio.to_thread(_prepare, call.services)
    except PolicyError as refused:
        return _refusal(refused)
    await call.write_alone(_put, grant, ready, call.access.engines)
    return Reply(_shape(ready))


async def reload(services: Services) -> dict[str, Any] | None:
    """As the operator; what does not load is logged and kept for `/health`, and None is returned."""
    async with as_operator(services) as session:
        grant = services.access.authorize(session, "admin.reload", Installation())
        for _ in range(ATTEMPTS):
            try:
                ready = await asyncio.to_thread(_prepare, services)
                rows = tuple(session.rows)
                put = partial(_put, grant=grant, ready=ready, engines=services.access.engines)
                await services.database.awrite(Unit(put, log=rows, solo=True))
            except PolicyError:
                return None
            except Stale:
                continue
            session.written(rows)
            return _shape(ready)
    return None


class Watch:
    """Looks at the files of the policies, and loads them again once they are others than before."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._seen = _seen(services.policies_at)

    async def look(self) -> None:
        """Load again what has changed. What failed is not tried again before it changes once more."""
        seen = await asyncio.to_thread(_seen, self._services.policies_at)
        if seen != self._seen:
            self._seen = seen
            await reload(self._services)


def _seen(directory: Path) -> frozenset[tuple[str, int, int]]:
    """Every file under a directory with its time and size; one that has just gone is not there."""
    found = set()
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                stat = os.stat(os.path.join(folder, name))
            except OSError:
                continue
            found.add((os.path.join(folder, name), stat.st_mtime_ns, stat.st_size))
    return frozenset(found)


def _prepare(services: Services) -> Ready:
    """Read, check and build everything aside.

    Raises:
        PolicyError: what is on the disk must not decide; with everything that is wrong, which `/health` shows too.
    """
    engines, policies = services.access.engines, list(services.state.org_policies.values())
    before = engines.base
    try:
        bundle, cases = services.load_policies()
        results = run_cases(bundle, cases)
        failing = [Finding(r.case.file, 0, "", f"`{r.case.name}` {why}") for r in results for why in r.failures]
        if failing:
            raise PolicyError(failing)
        base = before.sibling(bundle)
        return Ready(base, engines.build_all(policies, services.clock(), on=base), len(results), before, policies)
    except PolicyError as refused:
        return _keep(services, refused)
    except (ConfigError, CaseError, SliceError) as wrong:
        return _keep(services, PolicyError([Finding("", 0, "", str(wrong))]))


def _keep(services: Services, refused: PolicyError) -> Ready:
    """Leave the last good policies in force, and say so."""
    engines = services.access.engines
    engines.failed_at = services.clock()
    engines.failure = str(refused.findings[0]) if refused.findings else "nothing was found"
    _log.error("the policies were not loaded again, and those before decide on: %s", refused)
    raise refused


def _put(tx: Tx, grant: Grant[Installation], ready: Ready, engines: Engines) -> None:
    if engines.base is not ready.before or list(tx.state.org_policies.values()) != ready.policies:
        raise Stale
    for bundle in (ready.base.bundle, *(bundle for own in ready.own.values() for bundle in own.bundles())):
        keep_bundle(tx, bundle.hash, bundle.body(), grant.now)
    tx.after_commit(lambda: engines.replace(ready.base, ready.own, grant.now))
    details = {"bundle": ready.base.bundle.hash, "previous": ready.before.bundle.hash}
    tx.append(grant.audit("admin.policies_reloaded", details))


def _shape(ready: Ready) -> dict[str, Any]:
    bundle = ready.base.bundle
    return {
        "bundle": bundle.hash,
        "previous": ready.before.bundle.hash,
        "policies": len(bundle.policies),
        "cases": ready.cases,
    }


def _refusal(refused: PolicyError) -> Reply:
    found = refused.findings
    detail = f"the policies were not loaded, and those before decide on: {len(found)} findings, the first: {found[0]}"
    problem = {"type": "urn:peergate:problem:conflict", "title": "conflict", "status": 409, "detail": detail}
    return Reply({**problem, "findings": [asdict(finding) for finding in found[:FINDINGS]]}, 409)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "admin.reload",
        "POST",
        "/v1/admin/reload",
        "Load the policies on the disk again.",
        reload_now,
        actions=("admin.reload",),
        strict=True,
        unhurried=True,
    ),
)
