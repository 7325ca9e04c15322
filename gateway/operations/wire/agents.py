"""Agents and the rules that are written for them, on the wire."""

from __future__ import annotations

from derive.amounts import GRAMMAR
from derive.buckets import ACTION_LENGTH, ACTION_PATTERN
from gateway import limits
from gateway.model.proposal import ACCESS_REQUESTS, PLATFORM_MADE
from gateway.model.rules import MAX_RULES, MAX_TEMPLATE, MODES
from gateway.operations.rehearsal import OUTCOMES
from gateway.operations.schema import (
    COUNT,
    FLAG,
    FUTURE,
    ID,
    NUMBER,
    OBJECT,
    TEXT,
    TIME,
    Maybe,
    Members,
    Schema,
    choice,
    either,
    matching,
    members,
    only,
    or_null,
    shape,
    some,
    table,
    text,
    unset,
    whole,
)

FLAGS = ("intents_api_enabled", "shroud_enabled")
LISTS = ("scopes", "vault_ids", "memory_namespace_allowlist")

ACTION = matching(ACTION_PATTERN.pattern.strip("^$"), ACTION_LENGTH)
#: What may be asked about: an action, or one of the words that are none.
ASKABLE = either(ACTION, choice(*sorted(ACCESS_REQUESTS | PLATFORM_MADE)))
AMOUNT: Schema = either(matching(GRAMMAR), {**NUMBER, "minimum": 0})
_MODE = choice(*MODES)
_RULE = members(
    {
        "action_type": ACTION,
        "mode": _MODE,
        "require_for_amount_above_usd": unset(AMOUNT),
        "summary_template": unset(text(MAX_TEMPLATE, 0)),
    },
    closed=True,
)
RULES: Schema = {
    "title": "ApprovalRules",
    **members({"default_mode": Maybe(_MODE), "rules": Maybe(some(_RULE, MAX_RULES))}, closed=True),
}
NAME = text(limits.NAME_CHARACTERS)
LIFETIME = whole(*limits.TOKEN_SECONDS_RANGE)
_DESCRIPTION = unset(text(limits.TEXT_CHARACTERS, 0))
_FLAGS: Members = {name: unset(FLAG) for name in FLAGS}
_LISTS: Members = {name: unset(some(text(limits.REF_CHARACTERS), limits.PAGE)) for name in LISTS}
_REST: Members = {
    "description": _DESCRIPTION,
    "action_approval_policy": unset(RULES),
    "token_ttl_seconds": unset(LIFETIME),
    "auth_method": unset(NAME),
    **_FLAGS,
    **_LISTS,
    "api_key_expires_at": unset(FUTURE),
}
REGISTERED: Members = {"name": NAME, **_REST}
CHANGED: Members = {"name": unset(NAME), **_REST, "is_active": unset(FLAG), "approval_id": unset(ID)}
REKEYED: Members = {"api_key_expires_at": unset(FUTURE)}
CHILD: Members = {
    "name": NAME,
    "description": _DESCRIPTION,
    "vault_ids": _LISTS["vault_ids"],
    "scopes": _LISTS["scopes"],
    "memory_namespace_allowlist": _LISTS["memory_namespace_allowlist"],
    "action_approval_policy": unset(RULES),
    "expires_at": unset(FUTURE),
    "approval_id": unset(ID),
}

_AGENT: Members = {
    "id": ID,
    "org_id": ID,
    "name": TEXT,
    "description": TEXT,
    "auth_method": TEXT,
    "is_active": FLAG,
    **dict.fromkeys(FLAGS, FLAG),
    **dict.fromkeys(LISTS, some(TEXT)),
    "token_ttl_seconds": COUNT,
    "api_key_expires_at": or_null(TIME),
    "parent_id": or_null(ID),
    "connection_id": or_null(ID),
    "action_approval_policy": or_null(RULES),
    "created_by": ID,
    "created_at": TIME,
}
AGENT = shape("Agent", **_AGENT)
AGENTS = shape(agents=some(AGENT))
CREATED = shape("CreatedAgent", agent=AGENT, api_key=TEXT, **_AGENT)
NEW_KEY = shape(id=ID, name=TEXT, api_key=TEXT)
AWAITING = shape(
    "AwaitingApproval",
    status=only("awaiting_approval"),
    approval_id=ID,
    pending_approval_id=ID,
    revision_id=TEXT,
    message=TEXT,
)
BRIDGE_TOKEN = shape(token=TEXT, agent_id=ID)

TIER = whole(1, 3)
UNDERSTOOD_MEMBERS: Members = {
    "action_type": TEXT,
    "amount_usd": or_null(TEXT),
    "amount_band": TEXT,
    "currency": or_null(TEXT),
    "recipient": or_null(TEXT),
    "recipient_kind": TEXT,
    "risk_tier": TIER,
    "tier_reasons": some(TEXT),
}
UNDERSTOOD = shape("Understood", **UNDERSTOOD_MEMBERS)
SIMULATED: Members = {
    "action_approval_policy": unset(RULES),
    "action_type": unset(ASKABLE),
    "payload": unset(OBJECT),
    "declared_risk_tier": unset(TIER),
}
_TALLY = shape("Tally", **dict.fromkeys(OUTCOMES, COUNT))
_SHOWN_RULE = or_null(shape("ShownRule", action_type=TEXT, mode=_MODE, require_for_amount_above_usd=Maybe(TEXT)))
SIMULATION = shape(
    "Simulation",
    agent_id=ID,
    simulated=COUNT,
    current=_TALLY,
    proposed=_TALLY,
    reasons=table(COUNT),
    newly_automatic=COUNT,
    rejected_and_automatic=COUNT,
    rejections=some(shape(approval_id=ID, action=TEXT, amount_usd=or_null(TEXT), decided_at=or_null(TIME))),
    auto_approve=FLAG,
    what_would_change_it=Maybe(
        shape(
            suggest_auto=FLAG,
            understood=UNDERSTOOD,
            blocked_reason=Maybe(or_null(TEXT)),
            rule=Maybe(_SHOWN_RULE),
            instead_of=Maybe(_SHOWN_RULE),
            because=Maybe(TEXT),
            tier_reasons=Maybe(some(TEXT)),
        )
    ),
)
