"""Reload: the policies on the disk are read again, checked as at the start and by their cases, and decide from then on."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gateway.config import ConfigError
from gateway.errors import Conflict, Stale, Unavailable
from gateway.model.grant import Grant
from gateway.model.org_policy import OrgPolicy
from gateway.operations.call import Call, Services
from gateway.operations.operation import Operation, Reply
from gateway.operations.operator import as_operator
from gateway.policy.bundle import SCHEMA, Bundle
from gateway.policy.cases import CaseError, run_cases
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines, Own, Staged
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.slice import SliceError
from gateway.store.entities import Installation
from gateway.store.installation import keep_bundle, keep_deciding
from gateway.store.rows import Tx
from gateway.store.writer import Unit

#: How often it is tried again when an organisation changes its policies meanwhile.
ATTEMPTS = 5
BUSY = f"what decides was changed by others during each of {ATTEMPTS} attempts"
#: A bundle is named by its SHA-256 in hex.
HASH_CHARACTERS = 64
#: What is told of what is wrong.
FINDINGS = 50

_log = logging.getLogger("gateway.operations")


@dataclass(frozen=True, slots=True)
class Ready:
    """What was built aside, from what stood before; `cases` is how many hold.

    With `base` it decides; else `staged` waits in the shadow of what decides, or nothing does when that is what it is.
    """

    bundle: Bundle
    base: PolicyEngine | None
    staged: Staged | None
    own: dict[str, Own]
    cases: int
    before: PolicyEngine
    staged_before: Staged | None
    policies: Sequence[OrgPolicy]


async def reload_now(call: Call) -> Reply:
    """Load the policies again; what does not load, or fails a case, changes nothing.

    With `reload = shadow` they wait in the shadow, and `promote` with the hash of their bundle lets exactly those decide.
    """
    promote = call.body.optional_text("promote", longest=HASH_CHARACTERS)
    grant = call.access.authorize(call.session, "admin.reload", Installation())
    try:
        build = partial(_prepare, call.services) if promote is None else partial(_waiting, call.services, promote=promote)
        ready = await call.services.reloads.run(build)
    except PolicyError as refused:
        return _refusal(refused)
    await call.write_alone(_put, grant, ready, call.access.engines)
    return Reply(_shape(ready))


async def reload(services: Services) -> dict[str, Any] | None:
    """As the operator; what does not load is logged and kept for `/health`, and None is returned.

    Raises:
        Stale: organisations change their policies faster than they are laid over these; `/health` says so, and what lies on
            the disk still has to be loaded.
        Unavailable: too many reloads are under way.
    """
    async with as_operator(services) as session:
        grant = services.access.authorize(session, "admin.reload", Installation())
        for _ in range(ATTEMPTS):
            try:
                ready = await services.reloads.run(partial(_prepare, services))
                rows = tuple(session.rows)
                put = partial(_put, grant=grant, ready=ready, engines=services.access.engines)
                await services.database.awrite(Unit(put, log=rows, solo=True))
            except PolicyError:
                return None
            except Stale:
                continue
            session.written(rows)
            return _shape(ready)
    services.access.engines.failure = BUSY
    _log.error("the policies were not loaded again, and those before decide on: %s", BUSY)
    raise Stale


def note_deciding(services: Services) -> None:
    """Note what a server decides by from its start on, so that with `reload = shadow` the next start goes on with it."""
    bundle = services.access.engines.base.bundle
    services.database.write(Unit(lambda tx: keep_deciding(tx, bundle.hash))).result()


class Watch:
    """Looks at the files of the policies, and loads them again once they are others than before."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._seen = _seen(services.policies_at)

    async def look(self) -> None:
        """Load again what has changed. What does not load is not tried again before it changes once more; whatever else
        fails leaves the change to the next look."""
        seen = await asyncio.to_thread(_seen, self._services.policies_at)
        if seen != self._seen:
            with suppress(Unavailable):
                await reload(self._services)
                self._seen = seen


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
    before, staged_before, now = engines.base, engines.staged, services.clock()
    try:
        bundle, cases = services.load_policies()
        # INVARIANT: slices that were built before are asked about by what is loaded now, which only one schema can bear.
        if bundle.schema_hash != before.bundle.schema_hash:
            raise PolicyError([Finding(SCHEMA, 0, "", "is another one than that of the policies that decide: start anew")])
        results = run_cases(bundle, cases)
        failing = [Finding(r.case.file, 0, "", f"`{r.case.name}` {why}") for r in results for why in r.failures]
        if failing:
            raise PolicyError(failing)
        made = before.sibling(bundle)
        waits = services.settings.reload == "shadow"
        base = None if waits else made
        # What decides already waits for nothing.
        staged = Staged(made, now) if waits and bundle.hash != before.bundle.hash else None
        own = engines.build_all(policies, now, on=base, beside=staged, orgs=list(services.state.orgs))
        return Ready(bundle, base, staged, own, len(results), before, staged_before, policies)
    except PolicyError as refused:
        return _keep(engines, refused)
    except (ConfigError, CaseError, SliceError) as wrong:
        return _keep(engines, PolicyError([Finding("", 0, "", str(wrong))]))


def _waiting(services: Services, *, promote: str) -> Ready:
    """Build everything on what waits in the shadow.

    Raises:
        Conflict: what waits is not what is to be promoted.
    """
    engines, policies = services.access.engines, list(services.state.org_policies.values())
    before, staged = engines.base, engines.staged
    if staged is None or staged.engine.bundle.hash != promote:
        waits = "nothing waits" if staged is None else f"`{staged.engine.bundle.hash}` waits"
        raise Conflict(f"`promote` names policies that do not wait in the shadow: {waits}")
    own = engines.build_all(policies, services.clock(), on=staged.engine)
    return Ready(staged.engine.bundle, staged.engine, None, own, 0, before, staged, policies)


def _keep(engines: Engines, refused: PolicyError) -> Ready:
    """Leave the last good policies in force, and say so."""
    engines.failure = str(refused.findings[0]) if refused.findings else "nothing was found"
    found = len(refused.findings)
    told = "\n".join(map(str, refused.findings[:FINDINGS]))
    _log.error("the policies were not loaded again, and those before decide on; %d findings:\n%s", found, told)
    raise refused


def _put(tx: Tx, grant: Grant[Installation], ready: Ready, engines: Engines) -> None:
    stood = engines.base is ready.before and engines.staged is ready.staged_before
    if not stood or list(tx.state.org_policies.values()) != ready.policies:
        raise Stale
    for bundle in (ready.bundle, *(bundle for own in ready.own.values() for bundle in own.bundles())):
        keep_bundle(tx, bundle.hash, bundle.body(), grant.now)
    details = {"bundle": ready.bundle.hash, "previous": ready.before.bundle.hash}
    base = ready.base
    if base is not None:
        keep_deciding(tx, ready.bundle.hash)
        tx.after_commit(lambda: engines.replace(base, ready.own, grant.now))
        tx.append(grant.audit("admin.policies_reloaded", details))
    else:
        tx.after_commit(lambda: engines.stage(ready.staged, ready.own))
        tx.append(grant.audit("admin.policies_staged", details))


def _shape(ready: Ready) -> dict[str, Any]:
    """`bundle` is what was loaded; it decides, unless it waits in the shadow."""
    return {
        "bundle": ready.bundle.hash,
        "previous": ready.before.bundle.hash,
        "policies": len(ready.bundle.policies),
        "cases": ready.cases,
        "in_shadow": ready.staged is not None,
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
        "Load the policies on the disk again, or promote those that wait in the shadow.",
        reload_now,
        actions=("admin.reload",),
        fields=("promote",),
        strict=True,
    ),
)
