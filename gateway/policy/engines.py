"""Engines: the one that everybody is decided by, and one an organisation that has policies of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gateway.model.org_policy import OrgPolicy
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.organisation import extend
from gateway.policy.shadow import Shadow, Tally, differing


@dataclass(frozen=True, slots=True)
class Own:
    """What one organisation is decided by, and what is asked beside."""

    engine: PolicyEngine
    shadow: Shadow | None = None

    def bundles(self) -> list[Bundle]:
        """Returns what decides and what is asked beside."""
        return [self.engine.bundle, *([self.shadow.engine.bundle] if self.shadow is not None else [])]


@dataclass(frozen=True, slots=True)
class Standing:
    """Every engine at one moment; `loaded_at` is when the policies of the product were read, None for before the start."""

    base: Own
    loaded_at: datetime | None = None
    own: Mapping[str, Own] = field(default_factory=dict)


class Engines:
    """What decides for whom. Engines are built aside and put in place by one assignment, in which all change together.

    They share the schema and the salt, so a slice serves any of them. `failure` says why the last attempt to load the
    policies of the product again came to nothing, and `failed_at` when that was; None when it did not.

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

    def build(self, policies: Sequence[OrgPolicy], now: datetime, *, on: PolicyEngine | None = None) -> Own:
        """Returns what one organisation's policies make of the base, or `on` another; raises `PolicyError`.

        Takes some tenths of a second: call it on a thread. What a policy in the shadow is known to change is kept.
        """
        base = on or self.base
        deciding = {p.id: p.enforced.cedar_text for p in policies if p.enforced is not None}
        engine = base.sibling(extend(base.bundle, deciding)) if deciding else base
        waiting = [policy for policy in policies if policy.in_shadow]
        if not waiting:
            return Own(engine)
        whole = {policy.id: policy.current.cedar_text for policy in policies}
        tallies = {policy.id: self._tally(policy, now) for policy in waiting}
        beside = base.sibling(extend(base.bundle, whole))
        return Own(engine, Shadow(beside, tallies, differing(engine.bundle, beside.bundle)))

    def build_all(self, policies: Iterable[OrgPolicy], now: datetime, *, on: PolicyEngine | None = None) -> dict[str, Own]:
        """Returns the same for every organisation that has any policy."""
        by_org: dict[str, list[OrgPolicy]] = defaultdict(list)
        for policy in policies:
            by_org[policy.org_id].append(policy)
        return {org_id: self.build(found, now, on=on) for org_id, found in by_org.items()}

    def put(self, org_id: str, own: Own) -> None:
        """Let an organisation be decided by what was built for it."""
        standing = self._standing
        self._standing = Standing(standing.base, standing.loaded_at, {**standing.own, org_id: own})

    def put_all(self, own: Mapping[str, Own]) -> None:
        """Let every organisation be decided by what was built for it, or by the base."""
        self._standing = Standing(self._standing.base, self._standing.loaded_at, own)

    def replace(self, base: PolicyEngine, own: Mapping[str, Own], now: datetime) -> None:
        """Let everybody be decided by a new base and by what was built on it."""
        self._standing = Standing(Own(base), now, own)
        self.failure = self.failed_at = None

    def bundles(self) -> list[Bundle]:
        """Returns what organisations are decided by, and asked beside."""
        return [bundle for own in self._standing.own.values() for bundle in own.bundles()]

    def _tally(self, policy: OrgPolicy, now: datetime) -> Tally:
        shadow = self.shadow_of(policy.org_id)
        kept = shadow.tallies.get(policy.id) if shadow is not None else None
        return kept if kept is not None and kept.number == policy.current.number else Tally(policy.current.number, now)
