"""An authorization state without a store: two organisations, their people, agents and peers, and the real door over them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from gateway.access.door import Access
from gateway.model.caller import Caller, PrincipalType
from gateway.model.entity import Entity
from gateway.model.grant import Session
from gateway.model.org_policy import Mode, OrgPolicy, PolicyVersion
from gateway.model.proposal import Proposal, read_proposal
from gateway.model.records import (
    Agent,
    ApprovalHeader,
    Human,
    HumanRole,
    Observer,
    Org,
    OrgSettings,
    Pause,
    Peer,
    PlatformApp,
    PlatformConnection,
)
from gateway.model.rules import NO_RULES, parse_rules
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines
from gateway.policy.slice import Slice
from gateway.store.state import State

ROOT = Path(__file__).parents[1]
NOW = datetime(2026, 3, 4, 10, 0, 30, 500, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
HOME, AWAY = "home", "away"
PERMIT_ALL = '@id("all") @reason("Everything.") permit (principal, action, resource);'


@cache
def shipped() -> Bundle:
    """The policies as they are shipped."""
    return Bundle.load(ROOT / "schema.cedarschema", ROOT / "policies")


def bundle_of(*policies: str) -> Bundle:
    """Other policies under the shipped schema."""
    text = (ROOT / "schema.cedarschema").read_text()
    return Bundle.from_text(text, {"other.cedar": "\n".join(policies)}, house_rules=False)


class CountingEngine(PolicyEngine):
    """The real engine, which also counts the slices that it builds."""

    built = 0

    def slice(self, *entities: Entity) -> Slice:
        self.built += 1
        return super().slice(*entities)


def a_human(human_id: str, role: HumanRole = "member", org_id: str = HOME, **changes: Any) -> Human:
    made = Human(human_id, org_id, f"{human_id}@canary.example", None, role, None, None, False, None, 1, NOW)
    return replace(made, **changes)


def an_agent(agent_id: str, org_id: str = HOME, policy: object = None, **changes: Any) -> Agent:
    rules = NO_RULES if policy is None else parse_rules(policy)
    made = Agent(agent_id, org_id, "canary name", "", True, "member", None, None, rules, 3600, 1, NOW)
    return replace(made, **changes)


def a_peer(peer_id: str, person: str = "member", org_id: str = HOME, **changes: Any) -> Peer:
    made = Peer(peer_id, org_id, "user", person, "canary name", None, False, Pause(), NOW)
    return replace(made, **changes)


def an_approval(
    approval_id: str = "approval", agent: str | None = "agent", human: str = "member", **changes: Any
) -> ApprovalHeader:
    made = ApprovalHeader(approval_id, HOME, agent, None, human, None, 1)
    return replace(made, **changes)


def a_connection(connection_id: str, user: str = "member", org_id: str = HOME, **changes: Any) -> PlatformConnection:
    made = PlatformConnection(connection_id, org_id, "app", user, "active", None, None, NOW)
    return replace(made, **changes)


def an_entry(peer: str, agent: str, until: datetime | None = None) -> Observer:
    return Observer(peer, agent, "member", NOW, until)


def an_org_policy(policy_id: str, text: str = "", org_id: str = HOME, *, mode: Mode = "enforce") -> OrgPolicy:
    version = PolicyVersion(policy_id, 1, None, text, mode, 1 if mode == "enforce" else None, "owner", NOW)
    enforced = version if mode == "enforce" else None
    return OrgPolicy(policy_id, org_id, "canary name", None, "owner", NOW, NOW, 1, version, enforced)


def a_proposal(
    action: str = "refund.create", *, rules: object = None, declared: int | None = None, known: bool = True, **payload: object
) -> Proposal:
    return read_proposal(
        action, payload, rules=parse_rules(rules), known_recipient=known, declared_tier=declared, sensitive_actions=()
    )


class World:
    """`home` has a human of each role, an agent of the member's and a peer about the member that it observes; `away` its own."""

    def __init__(self, bundle: Bundle | None = None) -> None:
        self.state = State()
        self.engine = CountingEngine(bundle or shipped(), salt=b"salt")
        self.access = Access(Engines(self.engine), self.state)
        for org in (HOME, AWAY):
            self.state.put_org(Org(org, "canary name", OrgSettings(), NOW))
        for role in ("owner", "admin", "security", "auditor", "member"):
            self.state.put_human(a_human(role, role))
        self.state.put_human(a_human("stranger", "owner", AWAY))
        self.state.put_app(PlatformApp("app", HOME, "canary name", "canary", "owner", NOW))
        self.state.put_agent(an_agent("agent"))
        self.state.put_agent(an_agent("other"))
        self.state.put_agent(an_agent("foreign", AWAY, created_by="stranger"))
        self.state.put_peer(a_peer("peer"))
        self.state.put_peer(a_peer("abroad", "stranger", AWAY))
        self.observe("agent")

    def observe(self, *agents: str, peer: str = "peer", until: datetime | None = None) -> None:
        self.state.put_observers(peer, [an_entry(peer, agent, until) for agent in agents])

    def change_peer(self, **changes: Any) -> Peer:
        self.state.put_peer(replace(self.peer, **changes))
        return self.peer

    @property
    def peer(self) -> Peer:
        return self.state.peers["peer"]

    @property
    def org(self) -> Org:
        return self.state.orgs[HOME]


def caller(principal_id: str, kind: PrincipalType = "Human", org_id: str = HOME) -> Caller:
    return Caller(kind, principal_id, org_id, "credential")


def agent_caller(agent_id: str = "agent", org_id: str = HOME) -> Caller:
    return caller(agent_id, "Agent", org_id)


def session(who: Caller, now: datetime = NOW) -> Session:
    return Session(who, "request", now)
