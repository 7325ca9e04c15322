"""Evidence: recorded decisions as cases that the Cedar CLI runs, each with all the entities that it was taken over."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Literal

from gateway.model.decision import DenyKind
from gateway.model.entity import EntityUid
from gateway.model.memory import MemoryGrant
from gateway.model.recorded import Recorded, RecordedPage
from gateway.policy.bundle import Bundle
from gateway.policy.grants import HOLDER, ROW, as_text, compile_grants
from gateway.policy.laid import Laid, Laying, Lost, cedars_kind
from gateway.policy.value import canonical, uid_json
from gateway.recent import Recent

#: Bundles that are kept for the decisions that follow, and schemas, of which many bundles share one.
BUNDLES, SCHEMAS = 32, 4


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
        self._bundles: Recent[str, Bundle | None] = Recent(BUNDLES)
        self._layings: Recent[str, Laying] = Recent(SCHEMAS)
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

    def _case(self, row: Recorded, bodies: Mapping[str, str]) -> tuple[Policies, dict[str, object]] | Lost | Literal["listings"]:
        if row.planned is not None:
            return "listings"
        if row.deny_kind == DenyKind.INVALID_REQUEST:
            return "not_asked"
        bundle = self._bundle(row.bundle)
        if bundle is None:
            return "bundle_gone"
        if row.action not in bundle.action_uids:
            return "other_schema"
        laying = self._layings.of(bundle.schema_hash, lambda: Laying(bundle, self._grants))
        laid = laying.lay_out(row, bodies)
        if isinstance(laid, str):
            return laid
        policies = Policies(row.bundle)
        if (row.principal.type, row.resource.type) == (HOLDER, ROW):
            policies = Policies(row.bundle, row.principal.id, tuple([grant.id for grant in laid.grants]))
        return policies, self._written(bundle, row, laid)

    def _written(self, bundle: Bundle, row: Recorded, laid: Laid) -> dict[str, object]:
        known: dict[str, object] = {} if row.policies is None else {"reason_exact": True}
        if row.deny_kind is not None:
            known["deny_kind"] = cedars_kind(row)
        return {
            "name": row.id,
            "description": f"row {row.seq} of the chain, {row.at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
            "request": {
                "principal": _text(row.principal),
                "action": _text(EntityUid("Action", row.action)),
                "resource": _text(row.resource),
                "context": json.loads(laid.context.text),
            },
            "entities": [*json.loads(laid.slice.text), *self._action_entities(bundle, row.action)],
            "decision": "allow" if _cedar_allowed(bundle, row) else "deny",
            "reason": list(row.policies or ()),
            "num_errors": len(row.errors),
            **known,
        }

    def _action_entities(self, bundle: Bundle, action: str) -> Iterator[dict[str, object]]:
        """The asked action with its groups: without a schema Cedar knows no group, and skips what forbids one."""
        groups = bundle.types.groups
        for uid in sorted(groups[bundle.action_uids[action]]):
            parents = sorted(groups[uid] - {uid})
            yield {"uid": uid_json(uid), "attrs": {}, "parents": [uid_json(parent) for parent in parents]}

    def _bundle(self, bundle_hash: str) -> Bundle | None:
        return self._bundles.of(bundle_hash, lambda: self._bundle_of(bundle_hash))

    def _known(self, bundle_hash: str) -> Bundle:
        found = self._bundle(bundle_hash)
        if found is None:
            raise KeyError(bundle_hash)
        return found


def _cedar_allowed(bundle: Bundle, row: Recorded) -> bool:
    """Whether Cedar's own word was allow: it leaves out a policy that errs, and the gateway denies for it."""
    if not row.errors:
        return row.allowed
    effects = {bundle.policies[id_].effect if id_ in bundle.policies else "permit" for id_ in row.policies or ()}
    return effects == {"permit"}


def _text(uid: EntityUid) -> str:
    escaped = uid.id.replace("\\", "\\\\").replace('"', '\\"')
    return f'{uid.type}::"{escaped}"'
