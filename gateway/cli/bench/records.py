"""Records of a world to measure in: valid, and made from nothing but a number."""

from __future__ import annotations

import uuid
from datetime import datetime

from gateway.model.records import Agent, Human, HumanRole, Observer, Org, OrgSettings, Pause, Peer
from gateway.model.rules import NO_RULES, ApprovalRules, Rule

_NAMESPACE = uuid.UUID("0b0a3a9e-8c1f-5f6e-9d58-0c6a9b7a2f11")


def id_of(kind: str, number: int | str) -> str:
    """An id of the form that the gateway gives out, always the same for the same number or name."""
    return str(uuid.uuid5(_NAMESPACE, f"{kind} {number}"))


def an_org(now: datetime) -> Org:
    return Org(id_of("org", 0), "bench", OrgSettings(), now)


def a_human(number: int, org_id: str, now: datetime) -> Human:
    role: HumanRole = "owner" if number == 0 else "member"
    address = f"person-{number}@bench.example"
    return Human(id_of("human", number), org_id, address, None, role, None, None, False, None, 1, now)


def an_agent(number: int, org_id: str, created_by: str, now: datetime, rules: ApprovalRules = NO_RULES) -> Agent:
    return Agent(id_of("agent", number), org_id, f"agent {number}", "", True, created_by, None, None, rules, 3_600, 1, now)


def a_peer(number: int, org_id: str, person_id: str, now: datetime) -> Peer:
    return Peer(id_of("peer", number), org_id, "user", person_id, None, None, False, Pause(), now)


def an_observer(peer_id: str, agent_id: str, added_by: str, now: datetime) -> Observer:
    return Observer(peer_id, agent_id, added_by, now, None)


def some_rules(count: int) -> ApprovalRules:
    """Rules that allow `bench.action_0` and so on; more than a document may hold, when asked for."""
    document = {"default_mode": "approve", "rules": [{"action_type": f"bench.action_{n}", "mode": "allow"} for n in range(count)]}
    return ApprovalRules("approve", tuple(Rule(f"bench.action_{n}", "allow") for n in range(count)), document)
