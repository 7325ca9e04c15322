"""Policy sets as they are asked: those of one kind of question, with what the grants of a connection compile to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import cedarpy
from cedarpy import pst

from gateway.model.entity import EntityUid
from gateway.model.memory import MemoryGrant
from gateway.policy import grants as granted
from gateway.policy import partition
from gateway.policy.bundle import Bundle

#: Sets that are kept for the connections asked about last; one is some tens of kilobytes.
KEPT = 1_024
#: Policies in all the sets that are kept of kinds, and once more of connections; one takes some four kilobytes in each.
HELD = 50_000
Kind = tuple[tuple[str, ...], str, str]


class PolicySets:
    """The policies that could match a kind of question: some actions, between two types. A few kinds are asked."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._by_kind: dict[Kind, cedarpy.PolicySet] = {}
        self._held_by_kind = self._held_by_holder = 0
        self._by_holder: OrderedDict[tuple[Kind, str, tuple[str, ...]], cedarpy.PolicySet] = OrderedDict()
        self._has_grants = granted.GROUP in bundle.action_uids

    def of(
        self, actions: tuple[str, ...], principal: EntityUid, resource: str, grants: Sequence[MemoryGrant]
    ) -> cedarpy.PolicySet:
        """Returns the policies for a principal; a connection's are told apart by the ids of its grants, which never change."""
        kind = (actions, principal.type, resource)
        if not self.granted(principal.type, resource):
            return self._plain(kind)
        key = (kind, principal.id, tuple([grant.id for grant in grants]))
        made = self._by_holder.get(key)
        if made is not None:
            self._by_holder.move_to_end(key)
            return made
        made = self._by_holder[key] = self._with(self._plain(kind), principal, grants)
        self._held_by_holder += len(made)
        while len(self._by_holder) > KEPT or (self._held_by_holder > HELD and len(self._by_holder) > 1):
            self._held_by_holder -= len(self._by_holder.popitem(last=False)[1])
        return made

    def granted(self, principal: str, resource: str) -> bool:
        """Whether what a principal of this type may do on a resource of that type takes a grant."""
        return self._has_grants and (principal, resource) == (granted.HOLDER, granted.ROW)

    def guardrails(self, action: str, principal: EntityUid, resource: str, grants: Sequence[MemoryGrant]) -> cedarpy.PolicySet:
        """Returns what grants compile to among the guardrails alone, whatever else permits or forbids."""
        ids = tuple([id_ for id_ in self._bundle.members[action] if id_.startswith("guardrails/")])
        members = {action: ids}
        base = partition.between(self._bundle.trees, members, (action,), principal.type, resource)
        return self._with(base, principal, grants)

    def _plain(self, kind: Kind) -> cedarpy.PolicySet:
        made = self._by_kind.get(kind)
        if made is None:
            made = partition.between(self._bundle.trees, self._bundle.members, *kind)
            self._held_by_kind += len(made)
            if self._held_by_kind > HELD:
                self._by_kind.clear()
                self._held_by_kind = len(made)
            self._by_kind[kind] = made
        return made

    def _with(self, base: cedarpy.PolicySet, principal: EntityUid, grants: Sequence[MemoryGrant]) -> cedarpy.PolicySet:
        authored = base.to_pst().static_policies
        compiled = granted.compile_grants(principal, grants)
        if taken := authored.keys() & compiled.keys():
            raise ValueError(f"an authored policy is called as one of a grant: {sorted(taken)}")
        return cedarpy.PolicySet.from_pst(pst.PolicySet({}, {**authored, **compiled}, ()), release_gil=True)
