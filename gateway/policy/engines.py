"""Engines: the one that everybody is decided by, and one an organisation that has policies of its own."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from gateway.model.org_policy import OrgPolicy
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.finding import PolicyError
from gateway.policy.organisation import extend
from gateway.policy.shadow import DIRECTORY, Shadow, Tally, added, differing

#: What decides for an organisation whose policies in force do not load, beside the policies of the product.
CLOSED = '@reason("The policies of the organisation do not load; nothing is allowed until they are mended.") ' + (
    "forbid (principal, action, resource);"
)

_log = logging.getLogger("gateway.policy")


@dataclass(frozen=True, slots=True)
class Own:
    """What one organisation is decided by, and what is asked beside.

    `failure` says why that is not what its policies say; None when it is.
    """

    engine: PolicyEngine
    shadow: Shadow | None = None
    failure: str | None = None

    def bundles(self) -> list[Bundle]:
        """Returns what decides and what is asked beside."""
        return [self.engine.bundle, *([self.shadow.engine.bundle] if self.shadow is not None else [])]


@dataclass(frozen=True, slots=True)
class Staged:
    """Policies of the product that wait in the shadow since a time: asked beside for everybody, and deciding nothing."""

    engine: PolicyEngine
    since: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """Every engine at one moment; `loaded_at` is when the policies of the product were read, None for before the start."""

    base: Own
    loaded_at: datetime | None = None
    own: Mapping[str, Own] = field(default_factory=dict)
    staged: Staged | None = None


class Engines:
    """What decides for whom. Engines are built aside and put in place by one assignment, in which all change together.

    They share the schema and the salt, so a slice serves any of them. `failure` says why the last attempt to load the
    policies of the product again came to nothing, and `failed_at` since when that is so; None when it did not.

    INVARIANT: only the store's writer puts engines in place, right after the commit of what they are made of.
    """

    failure: str | None = None
    failed_at: datetime | None = None

    def __init__(self, base: PolicyEngine, *, loaded_at: datetime | None = None) -> None:
        self._standing = Standing(Own(base), loaded_at)

    @property
    def base(self) -> PolicyEngine:
        """The engine of the policies of the product."""
        return self._standing.base.engine

    @property
    def loaded_at(self) -> datetime | None:
        """When its policies were read."""
        return self._standing.loaded_at

    @property
    def staged(self) -> Staged | None:
        """The policies of the product that wait to be promoted; None when none do."""
        return self._standing.staged

    def own(self, org_id: str) -> Own:
        """Returns what an organisation is decided by now, with its shadow, both of one moment."""
        standing = self._standing
        return standing.own.get(org_id, standing.base)

    def of(self, org_id: str) -> PolicyEngine:
        """Returns the engine that decides for an organisation now."""
        return self.own(org_id).engine

    def shadow_of(self, org_id: str) -> Shadow | None:
        """Returns what is asked beside for an organisation; None when none of its policies is in the shadow."""
        return self.own(org_id).shadow

    def build(
        self,
        policies: Sequence[OrgPolicy],
        now: datetime,
        *,
        on: PolicyEngine | None = None,
        beside: Staged | None = None,
        org_id: str = "",
    ) -> Own:
        """Returns what one organisation's policies make of the base, or `on` another; raises `PolicyError`.

        With `beside`, they are laid over what waits too, which is asked in the shadow; `org_id` says for whom that is counted.
        Takes some tenths of a second: call it on a thread. What a policy in the shadow is known to change is kept.
        """
        base = on or self.base
        deciding = {p.id: p.enforced.cedar_text for p in policies if p.enforced is not None}
        engine = base.sibling(extend(base.bundle, deciding)) if deciding else base
        waiting = [policy for policy in policies if policy.in_shadow]
        if not waiting and beside is None:
            return Own(engine)
        under = base if beside is None else beside.engine
        whole = {policy.id: policy.current.cedar_text for policy in policies}
        tallies = {policy.id: self._tally(policy, now) for policy in waiting}
        if beside is not None:
            tallies[DIRECTORY] = self._tally_of(org_id, beside)
        other = under.sibling(extend(under.bundle, whole)) if whole else under
        more = added(engine.bundle, other.bundle)
        alone = under.sibling(more) if more is not None else None
        return Own(engine, Shadow(other, tallies, differing(engine.bundle, other.bundle), alone))

    def build_all(
        self,
        policies: Iterable[OrgPolicy],
        now: datetime,
        *,
        on: PolicyEngine | None = None,
        beside: Staged | None = None,
        orgs: Iterable[str] = (),
    ) -> dict[str, Own]:
        """Returns the same for every organisation that has any policy; with `beside`, for all `orgs`, each of which counts
        for itself what would be otherwise.

        Policies of an organisation that load no more, under other policies of the product say, fail it alone: what is asked
        beside is left out then, and where what is in force does not load, nothing is allowed there but to mend it.
        """
        by_org: dict[str, list[OrgPolicy]] = defaultdict(list)
        for policy in policies:
            by_org[policy.org_id].append(policy)
        if beside is None:
            return {org_id: self._build_or_close(found, now, on, None, org_id) for org_id, found in by_org.items()}
        return {org_id: self._build_or_close(by_org[org_id], now, on, beside, org_id) for org_id in {*orgs, *by_org}}

    def _build_or_close(
        self, policies: Sequence[OrgPolicy], now: datetime, on: PolicyEngine | None, beside: Staged | None, org_id: str
    ) -> Own:
        deciding = [replace(policy, current=policy.enforced) for policy in policies if policy.enforced is not None]
        failure: str | None = None
        for tried, more in ((policies, beside), (deciding, None)):
            try:
                return replace(self.build(tried, now, on=on, beside=more, org_id=org_id), failure=failure)
            except PolicyError as refused:
                failure = failure or f"policies of the organisation do not load: {refused.findings[0]}"
                _log.error("policies of the organisation %s do not load: %s", org_id, refused.findings[0])
        base = on or self.base
        return Own(base.sibling(extend(base.bundle, {"closed": CLOSED})), failure=failure)

    def fail(self, refused: PolicyError, now: datetime) -> None:
        """Note that policies of the product were not loaded; what decides stays as it is."""
        self.failure = str(refused.findings[0]) if refused.findings else "nothing was found"
        self.failed_at = self.failed_at or now

    def put(self, org_id: str, own: Own) -> None:
        """Let an organisation be decided by what was built for it."""
        standing = self._standing
        self._standing = replace(standing, own={**standing.own, org_id: own})

    def put_all(self, own: Mapping[str, Own]) -> None:
        """Let every organisation be decided by what was built for it, or by the base."""
        self._standing = replace(self._standing, own=own)

    def replace(self, base: PolicyEngine, own: Mapping[str, Own], now: datetime) -> None:
        """Let everybody be decided by a new base and by what was built on it; nothing waits any more."""
        self._standing = Standing(Own(base), now, own)
        self.failure = self.failed_at = None

    def stage(self, staged: Staged | None, own: Mapping[str, Own]) -> None:
        """Let others wait in the shadow of the base, as what was built beside them, or nothing; nothing decides otherwise."""
        self._standing = replace(self._standing, staged=staged, own=own)
        self.failure = self.failed_at = None

    def bundles(self) -> list[Bundle]:
        """Returns what organisations are decided by, and asked beside."""
        return [bundle for own in self._standing.own.values() for bundle in own.bundles()]

    def _tally(self, policy: OrgPolicy, now: datetime) -> Tally:
        shadow = self.shadow_of(policy.org_id)
        kept = shadow.tallies.get(policy.id) if shadow is not None else None
        return kept if kept is not None and kept.number == policy.current.number else Tally(policy.current.number, now)

    def _tally_of(self, org_id: str, beside: Staged) -> Tally:
        shadow = self.shadow_of(org_id) if beside is self.staged else None
        kept = shadow.tallies.get(DIRECTORY) if shadow is not None else None
        return kept if kept is not None else Tally(0, beside.since)
