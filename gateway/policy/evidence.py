"""Evidence: recorded decisions as cases that the Cedar CLI runs, each with all the entities that it was taken over."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from gateway.model.decision import DenyKind
from gateway.model.entity import EntityUid
from gateway.model.memory import MemoryGrant
from gateway.model.recorded import Recorded, RecordedPage
from gateway.policy import partition
from gateway.policy.bundle import Bundle
from gateway.policy.context import Context
from gateway.policy.grants import HOLDER, ROW, as_text, compile_grants
from gateway.policy.value import canonical, uid_json

#: Denials for which Cedar was not asked, or that it did not cause.
NOT_CEDARS = frozenset({DenyKind.STALE, DenyKind.DEADLINE, DenyKind.INVALID_REQUEST})


@dataclass(frozen=True, slots=True)
class Policies:
    """What some decisions were taken by: a bundle and, for a remote agent and rows, the grants of its connection."""

    bundle: str
    connection: str | None = None
    grants: tuple[str, ...] = ()


class Cases:
    """Makes cases of recorded decisions; `left_out` counts those that cannot be one, by why.

    `grants` are all that there were, by id; `bundle_of` gives the bundle of a hash, None when it is not known.
    """

    def __init__(self, grants: Mapping[str, MemoryGrant], bundle_of: Callable[[str], Bundle | None]) -> None:
        self._grants = grants
        self._bundle_of = bundle_of
        self._bundles: dict[str, Bundle | None] = {}
        self._actions: dict[str, Mapping[EntityUid, frozenset[EntityUid]]] = {}
        self.left_out: Counter[str] = Counter()

    def of(self, page: RecordedPage) -> Iterator[tuple[Policies, dict[str, object]]]:
        """Yields the case of each decision of a page, with what it was decided by."""
        for row in page.rows:
            made = self._case(row, page.bodies)
            if isinstance(made, str):
                self.left_out[made] += 1
            else:
                yield made

    def schema(self, policies: Policies) -> str:
        """Returns the text of the schema that some decisions were taken under."""
        return self._known(policies.bundle).schema_text

    def hashed(self, policies: Policies) -> str:
        """Returns the text whose SHA-256 is the hash of the bundle: its schema and, by id, its policies, as canonical JSON."""
        bundle = self._known(policies.bundle)
        return canonical([bundle.schema_text, [[id_, info.text] for id_, info in bundle.policies.items()]])

    def text(self, policies: Policies) -> str:
        """Returns the text of everything that some decisions were taken by; each policy bears its id as `@id`."""
        texts = [info.text for _, info in sorted(self._known(policies.bundle).policies.items())]
        if policies.connection is not None:
            named = [self._grants[id_] for id_ in policies.grants]
            texts.append(as_text(compile_grants(EntityUid(HOLDER, policies.connection), named)))
        return "\n\n".join(texts) + "\n"

    def _case(self, row: Recorded, bodies: Mapping[str, str]) -> tuple[Policies, dict[str, object]] | str:
        if row.planned is not None:
            return "listings"
        context = row.context
        if row.deny_kind in NOT_CEDARS or context is None or not row.slices:
            return "not_asked_of_cedar"
        if any(hash_ not in bodies for hash_ in row.slices):
            return "erased"
        if self._bundle(row.bundle) is None:
            return "policies_unknown"
        entities = {repr(entity["uid"]): entity for hash_ in row.slices for entity in json.loads(bodies[hash_])}
        policies = Policies(row.bundle)
        if (row.principal.type, row.resource.type) == (HOLDER, ROW):
            [holder] = [entity for entity in entities.values() if entity["uid"] == uid_json(row.principal)]
            policies = Policies(row.bundle, row.principal.id, tuple(holder["attrs"]["grants"]))
            if not all(id_ in self._grants for id_ in policies.grants):
                return "grants_unknown"
        return policies, self._written(row, context, [*entities.values(), *self._action_entities(row)])

    def _written(self, row: Recorded, shown: Mapping[str, Any], entities: list[object]) -> dict[str, object]:
        context = Context.from_record(shown)
        known: dict[str, object] = {} if row.policies is None else {"reason_exact": True}
        if row.deny_kind is not None:
            # A pause is a forbid to Cedar; the record calls it by what it means.
            known["deny_kind"] = DenyKind.FORBIDDEN.value if row.deny_kind == DenyKind.PAUSED else row.deny_kind
        return {
            "name": row.id,
            "description": f"row {row.seq} of the chain, {row.at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
            "request": {
                "principal": _text(row.principal),
                "action": _text(EntityUid("Action", row.action)),
                "resource": _text(row.resource),
                "context": json.loads(context.text),
            },
            "entities": entities,
            "decision": "allow" if self._cedar_allowed(row) else "deny",
            "reason": list(row.policies or ()),
            "num_errors": len(row.errors),
            **known,
        }

    def _cedar_allowed(self, row: Recorded) -> bool:
        """Whether Cedar's own word was allow: it leaves out a policy that errs, and the gateway denies for it."""
        if not row.errors:
            return row.allowed
        policies = self._known(row.bundle).policies
        effects = {policies[id_].effect if id_ in policies else "permit" for id_ in row.policies or ()}
        return effects == {"permit"}

    def _action_entities(self, row: Recorded) -> Iterator[dict[str, object]]:
        """The asked action with its groups: without a schema Cedar knows no group, and skips what forbids one."""
        groups = self._actions.setdefault(row.bundle, partition.groups(self._known(row.bundle).schema))
        for uid in sorted(groups[self._known(row.bundle).action_uids[row.action]]):
            parents = sorted(groups[uid] - {uid})
            yield {"uid": uid_json(uid), "attrs": {}, "parents": [uid_json(parent) for parent in parents]}

    def _bundle(self, bundle_hash: str) -> Bundle | None:
        if bundle_hash not in self._bundles:
            self._bundles[bundle_hash] = self._bundle_of(bundle_hash)
        return self._bundles[bundle_hash]

    def _known(self, bundle_hash: str) -> Bundle:
        found = self._bundle(bundle_hash)
        if found is None:
            raise KeyError(bundle_hash)
        return found


def _text(uid: EntityUid) -> str:
    escaped = uid.id.replace("\\", "\\\\").replace('"', '\\"')
    return f'{uid.type}::"{escaped}"'
