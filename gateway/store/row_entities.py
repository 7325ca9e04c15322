"""Entities that are made of one row and nothing else: actions that are proposed, written rules, rows of memory."""

from __future__ import annotations

from datetime import datetime

from gateway.model.entity import Entity, EntityUid, Value
from gateway.model.memory import Memory
from gateway.model.proposal import Proposal
from gateway.model.rules import ApprovalRules
from gateway.store.targets import uid_of


def proposal_entity(proposal: Proposal, org_id: str, *, person_paused: bool) -> Entity:
    """A proposed action as an entity. Nothing in it comes from the history of any person."""
    org = EntityUid("Org", org_id)
    attrs: dict[str, Value] = {
        "org": org,
        "action_type": proposal.action_type,
        "risk_tier": proposal.risk_tier,
        "sensitive": proposal.sensitive,
        "platform_made": proposal.platform_made,
        "asked_always": proposal.asked_always,
        "person_paused": person_paused,
    }
    if proposal.amount.value is not None:
        attrs["amount_usd"] = proposal.amount.value
    return Entity(uid_of(proposal), attrs, (org,))


def rules_entities(agent_id: str, rules: ApprovalRules) -> tuple[Entity, ...]:
    """An agent's written rules as entities, the whole of them first, whose tags lead to the others."""
    tags: dict[str, Value] = {}
    written: list[Entity] = []
    for rule in rules.rules:
        attrs: dict[str, Value] = {"mode": rule.mode}
        if rule.threshold is not None:
            attrs["require_for_amount_above_usd"] = rule.threshold
        written.append(Entity(EntityUid("ApprovalRule", f"{agent_id}/{rule.action_type}"), attrs))
        tags[rule.action_type] = written[-1].uid
    return Entity(EntityUid("ApprovalPolicy", agent_id), {"default_mode": rules.default_mode}, (), tags), *written


def memory_entity(row: Memory, now: datetime) -> Entity:
    """A row of memory as an entity; its organisation and its agent are entities of their own."""
    org = EntityUid("Org", row.org_id)
    attrs: dict[str, Value] = {
        "org": org,
        "agent": EntityUid("Agent", row.agent_id),
        "layer": row.layer,
        "tags": row.tags,
        "classification": row.classification,
        "sources": row.sources,
        "retracted": row.retracted_at is not None,
        "superseded": row.superseded_by is not None,
        "expired": row.expired_at(now),
    }
    if row.project_id is not None:
        attrs["project"] = row.project_id
    return Entity(EntityUid("Memory", row.id), attrs, (org,))
