"""The guardrails of the product: forbids without which its policies do not load, whatever else anybody writes."""

from __future__ import annotations

REQUIRED: frozenset[str] = frozenset(
    f"guardrails/{name}"
    for name in (
        "active_agent",
        "administration",
        "approval_request/agents_only",
        "approval_request/denied_by_default",
        "approval_request/denied_by_rule",
        "approval_request/platform_made",
        "archived",
        "content",
        "human_only",
        "membership",
        "observers",
        "organisation",
        "paused_reading",
        "platform/nothing_else",
        "platform/only_platforms",
        "platform/own_approvals",
        "platform/own_connections",
        "suggest_auto/above_configured_threshold",
        "suggest_auto/action_is_sensitive",
        "suggest_auto/no_matching_rule",
        "suggest_auto/person_paused",
        "suggest_auto/risk_tier_requires_step_up",
        "suggest_auto/rule_requires_approval",
    )
)
