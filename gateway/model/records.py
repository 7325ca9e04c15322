"""What the gateway knows of its people, agents and peers: the rows that decisions are compiled from.

Rows are immutable; a change is a new row. Times are aware UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from gateway.model.rules import ApprovalRules

HumanRole = Literal["owner", "admin", "security", "auditor", "member"]
ROLES: tuple[HumanRole, ...] = ("owner", "admin", "security", "auditor", "member")
PeerType = Literal["user", "platform_connection", "external"]
PEER_TYPES: tuple[PeerType, ...] = ("user", "platform_connection", "external")


@dataclass(frozen=True, slots=True)
class OrgSettings:
    """An organisation's settings; `sensitive_actions` is in addition to the built-in list."""

    guardrail_changes_require_approval: bool = False
    guardrail_changes_require_step_up: bool = False
    auto_approve: bool = False
    learn_from_posted_events: bool = True
    policy_promotions_need_two: bool = False
    sensitive_actions: tuple[str, ...] = ()
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Org:
    id: str
    name: str
    settings: OrgSettings
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Human:
    """A user. `generation` rises when every credential issued so far must end."""

    id: str
    org_id: str
    email: str
    display_name: str | None
    role: HumanRole
    password_hash: str | None = field(repr=False)
    totp_secret: str | None = field(repr=False)
    totp_confirmed: bool
    totp_last_step: int | None
    generation: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent. `created_by` is the human who registered it, to whom its approvals are addressed."""

    id: str
    org_id: str
    name: str
    description: str
    is_active: bool
    created_by: str
    parent_id: str | None
    connection_id: str | None
    rules: ApprovalRules
    token_ttl_seconds: int
    generation: int
    created_at: datetime
    attributes: Mapping[str, object] = field(default_factory=dict)

    @property
    def has_policy(self) -> bool:
        return bool(self.rules.source)


@dataclass(frozen=True, slots=True)
class Credential:
    """A long-lived key: `1ck_` of a Human, `ocv_` of an Agent, `plt_` of a Platform, `pgc_` of a remote Connection, `pgb_` of the
    Bridge to an agent. Only its hash is kept."""

    id: str
    org_id: str
    principal_type: Literal["Human", "Agent", "Platform", "Connection", "Bridge"]
    principal_id: str
    name: str
    secret_hash: str = field(repr=False)
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Pause:
    """Two switches of the person, with a common end. An end in the past means neither is on."""

    reading: bool = False
    learning: bool = False
    until: datetime | None = None

    def reading_at(self, now: datetime) -> bool:
        return self.reading and (self.until is None or now < self.until)

    def learning_at(self, now: datetime) -> bool:
        return self.learning and (self.until is None or now < self.until)


@dataclass(frozen=True, slots=True)
class Peer:
    """What the gateway holds about one person; `archived` when its connection was ended."""

    id: str
    org_id: str
    peer_type: PeerType
    peer_ref: str
    display_name: str | None
    connection_id: str | None
    archived: bool
    pause: Pause
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Observer:
    """One entry of an observer list: a lease when `expires_at` is given."""

    peer_id: str
    agent_id: str
    added_by: str
    added_at: datetime
    expires_at: datetime | None

    def live_at(self, now: datetime) -> bool:
        return self.expires_at is None or now < self.expires_at


@dataclass(frozen=True, slots=True)
class PlatformApp:
    id: str
    org_id: str
    name: str
    slug: str
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PlatformTemplate:
    """Agents that a bootstrap provisions: `{name, action_approval_policy?}` each."""

    id: str
    org_id: str
    name: str
    agents: tuple[Mapping[str, object], ...]
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PlatformConnection:
    """A platform's link to one person. `status` is pending (not bootstrapped), active or disconnected."""

    id: str
    org_id: str
    app_id: str
    user_id: str
    status: Literal["pending", "active", "disconnected"]
    template_id: str | None
    claimed_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ApprovalHeader:
    """What a decision about an approval needs of it, no content: `agent_id` requested it, or the human `asked_by` did."""

    id: str
    org_id: str
    agent_id: str | None
    asked_by: str | None
    user_id: str
    connection_id: str | None
    risk_tier: int
