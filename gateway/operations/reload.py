"""Reload: the policies on the disk are read again, checked as at the start and by their cases, and decide from then on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any, NoReturn

from gateway.config import ConfigError
from gateway.errors import Conflict, Stale
from gateway.model.org_policy import OrgPolicy
from gateway.operations.call import Call, Services
from gateway.operations.operation import Operation, Reply
from gateway.operations.operator import as_operator
from gateway.operations.wire import records as wire
from gateway.operations.wire.problems import NOT_LOADED
from gateway.policy.bundle import SCHEMA, Bundle
from gateway.policy.cases import CaseError, run_cases
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines, Own, Staged
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.slice import SliceError
from gateway.store import swap as swaps
from gateway.store.entities import Installation
from gateway.store.installation import keep_deciding
from gateway.store.state import State
from gateway.store.swap import Swap
from gateway.store.writer import Unit

#: How often it is tried again when an organisation changes its policies meanwhile.
ATTEMPTS = 5
BUSY = f"what decides was changed by others during each of {ATTEMPTS} attempts"
#: What is told of what is wrong.
FINDINGS = 50

_log = logging.getLogger("gateway.operations")


@dataclass(frozen=True, slots=True)
class Ready:
    """What was built aside from what stood before, of which `previous` is the hash; `cases` is how many hold."""

    swap: Swap
    bundle: Bundle
    previous: str
    cases: int
    in_shadow: bool


async def reload_now(call: Call) -> Reply:
    """Load the policies again; what does not load, or fails a case, changes nothing.

    With `reload = shadow` they wait in the shadow, and `promote` with the hash of their bundle lets exactly those decide.
    """
    promote = call.body.optional_text("promote", longest=wire.HASH_CHARACTERS)
    grant = call.access.authorize(call.session, "admin.reload", Installation())
    try:
        build = partial(_prepare, call.services) if promote is None else partial(_waiting, call.services, promote=promote)
        ready = await call.services.reloads.run(build)
    except PolicyError as refused:
        return _refusal(refused)
    await call.write_alone(swaps.load, grant, ready.swap, loaded=ready.bundle.hash, previous=ready.previous)
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
                put = partial(swaps.load, grant=grant, swap=ready.swap, loaded=ready.bundle.hash, previous=ready.previous)
                await services.database.awrite(Unit(put, log=rows, solo=True))
            except PolicyError:
                return None
            except Stale:
                continue
            session.written(rows)
            _log.info("the policies were loaded again%s: %s", ", into the shadow" if ready.in_shadow else "", ready.bundle.hash)
            return _shape(ready)
    services.access.engines.fail(PolicyError([Finding("", 0, "", BUSY)]), services.clock())
    _log.error("the policies were not loaded again, and those before decide on: %s", BUSY)
    raise Stale


def note_deciding(services: Services) -> None:
    """Note what a server decides by from its start on, so that with `reload = shadow` the next start goes on with it."""
    bundle = services.access.engines.base.bundle
    services.database.write(Unit(lambda tx: keep_deciding(tx, bundle.hash))).result()


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
        if services.settings.reload != "shadow":
            swap = _deciding(engines, policies, made, before, staged_before, now)
            return Ready(swap, bundle, before.bundle.hash, len(results), in_shadow=False)
        # What decides already waits for nothing.
        staged = None if bundle.hash == before.bundle.hash else Staged(made, now)
        own = engines.build_all(policies, now, beside=staged, orgs=list(services.state.orgs))
        fits = _fits(engines, policies, before, staged_before)
        swap = Swap(fits, _bodies(bundle, own), lambda: engines.stage(staged, own))
        return Ready(swap, bundle, before.bundle.hash, len(results), in_shadow=staged is not None)
    except PolicyError as refused:
        _keep(engines, refused, now)
    except (ConfigError, CaseError, SliceError) as wrong:
        _keep(engines, PolicyError([Finding("", 0, "", str(wrong))]), now)


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
    swap = _deciding(engines, policies, staged.engine, before, staged, services.clock())
    return Ready(swap, staged.engine.bundle, before.bundle.hash, 0, in_shadow=False)


def _deciding(
    engines: Engines, policies: list[OrgPolicy], base: PolicyEngine, before: PolicyEngine, staged: Staged | None, now: datetime
) -> Swap:
    """A swap by which everybody is decided by another base, built from what stood `before` and what waited then."""
    own = engines.build_all(policies, now, on=base)
    fits, bundle = _fits(engines, policies, before, staged), base.bundle
    return Swap(fits, _bodies(bundle, own), lambda: engines.replace(base, own, now), deciding=bundle.hash)


def _fits(engines: Engines, policies: list[OrgPolicy], before: PolicyEngine, staged: Staged | None) -> Callable[[State], bool]:
    def fits(state: State) -> bool:
        stood = engines.base is before and engines.staged is staged
        return stood and list(state.org_policies.values()) == policies

    return fits


def _bodies(bundle: Bundle, own: Mapping[str, Own]) -> list[tuple[str, str]]:
    return [(each.hash, each.body()) for each in (bundle, *(bundle for found in own.values() for bundle in found.bundles()))]


def _keep(engines: Engines, refused: PolicyError, now: datetime) -> NoReturn:
    """Leave the last good policies in force, and say so."""
    engines.fail(refused, now)
    found = len(refused.findings)
    told = "\n".join(map(str, refused.findings[:FINDINGS]))
    _log.error("the policies were not loaded again, and those before decide on; %d findings:\n%s", found, told)
    raise refused


def _shape(ready: Ready) -> dict[str, Any]:
    """`bundle` is what was loaded; it decides, unless it waits in the shadow."""
    return {
        "bundle": ready.bundle.hash,
        "previous": ready.previous,
        "policies": len(ready.bundle.policies),
        "cases": ready.cases,
        "in_shadow": ready.in_shadow,
    }


def _refusal(refused: PolicyError) -> Reply:
    found = refused.findings
    findings = "1 finding" if len(found) == 1 else f"{len(found)} findings"
    detail = f"the policies were not loaded, and those before decide on: {findings}, the first: {found[0]}"
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
        fields=wire.PROMOTED,
        strict=True,
        unhurried=True,
        answers={200: wire.LOADED, 409: NOT_LOADED},
    ),
)
