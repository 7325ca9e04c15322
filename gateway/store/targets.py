"""Targets: what a decision can be about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gateway.model.entity import EntityUid
from gateway.model.memory import Memory, RemoteConnection
from gateway.model.org_policy import OrgPolicy
from gateway.model.proposal import Proposal
from gateway.model.records import Agent, ApprovalHeader, Credential, Human, Org, Peer, PlatformApp, PlatformConnection


@dataclass(frozen=True, slots=True)
class Installation:
    """The data directory as a whole, as the resource of administration."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One decision of the log, as the resource of reading it."""

    id: str
    org_id: str


#: What an id can fail to find.
MissingType = Literal[
    "Human",
    "Agent",
    "Peer",
    "Approval",
    "Platform",
    "PlatformConnection",
    "Credential",
    "Decision",
    "Connection",
    "Memory",
    "Policy",
]


@dataclass(frozen=True, slots=True)
class Missing:
    """A resource that does not exist for the caller: an unknown id, or another organisation's. The two are the same."""

    type: MissingType
    id: str


Target = (
    Org
    | Human
    | Agent
    | Peer
    | ApprovalHeader
    | PlatformApp
    | PlatformConnection
    | Credential
    | LogEntry
    | Installation
    | RemoteConnection
    | Memory
    | OrgPolicy
    | Missing
)


def uid_of(target: Target | Proposal) -> EntityUid:
    """The Cedar identifier under which a target is decided and recorded."""
    match target:
        case Org():
            return EntityUid("Org", target.id)
        case Human():
            return EntityUid("Human", target.id)
        case Agent():
            return EntityUid("Agent", target.id)
        case Peer():
            return EntityUid("Peer", target.id)
        case ApprovalHeader():
            return EntityUid("Approval", target.id)
        case PlatformApp():
            return EntityUid("Platform", target.id)
        case PlatformConnection():
            return EntityUid("PlatformConnection", target.id)
        case Credential():
            return EntityUid("Credential", target.id)
        case LogEntry():
            return EntityUid("Decision", target.id)
        case Installation():
            return EntityUid("Installation", "local")
        case RemoteConnection():
            return EntityUid("Connection", target.id)
        case Memory():
            return EntityUid("Memory", target.id)
        case OrgPolicy():
            return EntityUid("Policy", target.id)
        case Missing():
            return EntityUid(target.type, target.id)
        case Proposal():
            return EntityUid("ProposedAction", target.action_type)
