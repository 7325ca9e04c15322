"""A shadow: policies that are asked beside those that decide, and what they would have answered otherwise."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeVar

from gateway.model.decision import DenyKind, Verdict
from gateway.model.entity import EntityUid
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.organisation import stored_id
from gateway.policy.plan import Plan

T = TypeVar("T")
Direction = Literal["gain", "lose"]
#: Who is to blame in the place of a stored policy: the policies of the product, where others of them wait to be promoted.
DIRECTORY = "directory"
#: Decisions of which the ids are kept, the last ones, and principals that are counted one by one, the first ones.
SAMPLES, PRINCIPALS = 20, 200

_log = logging.getLogger("gateway.policy")


def differing(one: Bundle, other: Bundle) -> frozenset[str]:
    """Returns the actions, of two bundles under one schema, about which their policies are not the same, word for word."""
    changed = {id_ for id_ in one.policies.keys() | other.policies.keys() if _text(one, id_) != _text(other, id_)}
    return frozenset(a for a in one.members if not changed.isdisjoint((*one.members[a], *other.members[a])))


def added(one: Bundle, other: Bundle) -> Bundle | None:
    """Returns the forbids that another bundle of the schema has beside all policies of one; None where it is more, or less.

    What `one` denies the other denies too, and what it allows the other denies where one of these forbids or errs.
    """
    if any(_text(other, id_) != info.text for id_, info in one.policies.items()):
        return None
    more = other.without(*one.policies)
    return more if all(info.effect == "forbid" for info in more.policies.values()) else None


def _text(bundle: Bundle, policy_id: str) -> str | None:
    info = bundle.policies.get(policy_id)
    return info.text if info is not None else None


@dataclass(slots=True)
class Side:
    """Who would gain, or who would lose: how many decisions, of whom, and the ids of the last ones."""

    count: int = 0
    principals: Counter[EntityUid] = field(default_factory=Counter)
    decisions: deque[str] = field(default_factory=lambda: deque(maxlen=SAMPLES))

    def add(self, principal: EntityUid, decision_id: str) -> None:
        self.count += 1
        self.decisions.append(decision_id)
        if principal in self.principals or len(self.principals) < PRINCIPALS:
            self.principals[principal] += 1


@dataclass(slots=True)
class Tally:
    """What one version of one policy would have changed since it has been in the shadow; `listings` are plans of rows.

    That of `DIRECTORY` has the number 0.
    """

    number: int
    since: datetime
    gain: Side = field(default_factory=Side)
    lose: Side = field(default_factory=Side)
    listings: int = 0


@dataclass(slots=True)
class Shadow:
    """What an organisation would be decided by if every policy in the shadow were promoted; a tally for each, by stored id,
    and for the policies of the product, as `DIRECTORY`, where others of them wait.

    `actions` are those that anything could be otherwise for: about every other the same policies would be asked again.
    `added` has the forbids alone, where the shadow is what decides and they: it is asked in the place of all, and about what
    is allowed. `asked` counts the questions that were compared, `failures` those that came to nothing. It is written to on
    the event loop only.
    """

    engine: PolicyEngine
    tallies: Mapping[str, Tally]
    actions: frozenset[str]
    added: PolicyEngine | None = None
    asked: int = 0
    failures: int = 0

    def compare(
        self, verdict: Verdict, ask: Callable[[PolicyEngine], Verdict], principal: EntityUid, decision_id: str
    ) -> Mapping[str, object] | None:
        """Asks the same question and returns what would be otherwise, to be recorded; None when nothing would."""
        self.asked += 1
        if self.added is not None and not verdict.allowed:
            return None
        other = self._ask(ask, self.added or self.engine)
        if other is None or self._permits(other) == verdict.allowed:
            return None
        direction: Direction = "lose" if verdict.allowed else "gain"
        causes = self._causes(verdict, other)
        for policy_id in causes:
            tally = self.tallies[policy_id]
            (tally.gain if direction == "gain" else tally.lose).add(principal, decision_id)
        return self._shown("deny" if verdict.allowed else "allow", causes)

    def compare_plan(self, plan: Plan, ask: Callable[[PolicyEngine], Plan]) -> Mapping[str, object] | None:
        """As `compare`, of which rows a principal may have; that there would be others is all that is counted."""
        self.asked += 1
        other = self._ask(ask, self.engine)
        if other is None or (other.verdict.allowed, other.condition) == (plan.verdict.allowed, plan.condition):
            return None
        causes = self._causes(plan.verdict, other.verdict) or sorted(self.tallies)
        for policy_id in causes:
            self.tallies[policy_id].listings += 1
        return self._shown("other rows", causes)

    def _permits(self, other: Verdict) -> bool:
        """Whether an answer leaves a yes as it is; of forbids alone that is the one that no policy gave."""
        return other.allowed or (self.added is not None and other.deny_kind is DenyKind.NOT_PERMITTED)

    def _ask(self, ask: Callable[[PolicyEngine], T], engine: PolicyEngine) -> T | None:
        try:
            return ask(engine)
        except Exception as fault:  # whatever fails in a shadow, the request that stands in it is answered as without it
            self.failures += 1
            _log.error("a question in the shadow failed with %s", type(fault).__name__)
            return None

    def _causes(self, verdict: Verdict, other: Verdict) -> list[str]:
        """The policies in the shadow that decide one of two answers; where none of the organisation's does, those of the
        product that wait."""
        named = (*verdict.policies, *other.policies, *other.errors)
        found = {stored_id(id_) for id_ in named}
        own = sorted(id_ for id_ in self.tallies if id_ in found)
        return own or [id_ for id_ in self.tallies if id_ == DIRECTORY]

    def _shown(self, decision: str, causes: list[str]) -> Mapping[str, object]:
        return {"decision": decision, "policies": causes, "bundle": self.engine.bundle.hash}
