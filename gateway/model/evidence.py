"""One row of the log: a decision or an audit event, as it is hashed, chained and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from gateway.model.entity import EntityUid
from gateway.model.ids import new_id


@dataclass(frozen=True, slots=True)
class LogRow:
    """A decision (`outcome` allow or deny) or an audit event (`outcome` None) that is not yet in the chain.

    `details` holds ids, tiers, amounts and times, never what a person wrote. `slice_bodies` maps the hashes in `slices`
    to the entities that were decided over; bodies are stored once, outside the chain.
    """

    kind: Literal["decision", "audit"]
    id: str
    at: datetime
    org_id: str
    principal_type: str
    principal_id: str
    action: str
    resource_type: str
    resource_id: str
    outcome: Literal["allow", "deny"] | None
    deny_kind: str | None
    policies: tuple[str, ...]
    bundle: str
    data_version: int
    slices: tuple[str, ...]
    request_id: str
    details: Mapping[str, object]
    slice_bodies: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)


def audit_row(
    *,
    at: datetime,
    org_id: str,
    principal: EntityUid,
    action: str,
    resource: EntityUid,
    details: Mapping[str, object],
    request_id: str = "",
    bundle: str = "",
    data_version: int = 0,
) -> LogRow:
    """An audit event: who did what to what. `bundle` and `data_version` are those of the decision that led to it, if any."""
    return LogRow(
        kind="audit",
        id=new_id(),
        at=at,
        org_id=org_id,
        principal_type=principal.type,
        principal_id=principal.id,
        action=action,
        resource_type=resource.type,
        resource_id=resource.id,
        outcome=None,
        deny_kind=None,
        policies=(),
        bundle=bundle,
        data_version=data_version,
        slices=(),
        request_id=request_id,
        details=details,
    )
