"""One row of the log: a decision or an audit event, as it is hashed, chained and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal


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
