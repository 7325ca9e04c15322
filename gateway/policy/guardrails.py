"""The guardrails of the product: forbids without which no policies load, word for word, whatever else anybody writes."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.policy.bundle import Bundle
from gateway.policy.finding import Finding, PolicyError

REQUIRED: frozenset[str] = frozenset(
    f"guardrails/{name}"
    for name in (
        "active_agent",
        "administration",
        "approval_request/agents_only",
        "approval_request/denied_by_default",
        "approval_request/denied_by_rule",
        "approval_request/platform_made",
        "approval_request/rules_unknown",
        "archived",
        "authority/agents",
        "authority/approvals",
        "authority/connections",
        "authority/organisation",
        "authority/peers",
        "bridge/nothing_else",
        "bridge/only_bridges",
        "bridge/own_connections",
        "connection/inactive",
        "connection/itself",
        "connection/nothing_else",
        "content",
        "human_only",
        "membership",
        "memory/connected_agent",
        "memory/expired",
        "memory/humans",
        "memory/own_rows",
        "memory/project",
        "memory/retracted",
        "memory/superseded",
        "memory/tier",
        "memory/untagged",
        "observers",
        "organisation",
        "paused_reading",
        "platform/nothing_else",
        "platform/only_platforms",
        "platform/own_approvals",
        "platform/own_connections",
        "promotion",
        "second_person",
        "suggest_auto/above_configured_threshold",
        "suggest_auto/action_is_sensitive",
        "suggest_auto/no_matching_rule",
        "suggest_auto/person_paused",
        "suggest_auto/risk_tier_requires_step_up",
        "suggest_auto/rule_requires_approval",
    )
)


def load(schema: str, policies: Mapping[str, str], shipped: Mapping[str, str]) -> Bundle:
    """Returns the bundle of policy texts by file name, with the guardrails as they were shipped; raises `PolicyError`."""
    own = Bundle.from_text(schema, policies)
    # Of what was shipped the texts are all that is asked: it decides nothing.
    same = policies == shipped
    check_guardrails(own, own if same else Bundle.from_text(schema, shipped, house_rules=False, checked=True))
    return own


def check_guardrails(own: Bundle, shipped: Bundle) -> None:
    """Raises `PolicyError` for each required guardrail that does not stand in `own` as it was shipped.

    A name alone forbids nothing: `forbid (principal, action, resource) when { false };` could bear it.
    """
    findings = []
    for id_ in sorted(REQUIRED):
        info, standing = own.policies.get(id_), shipped.policies.get(id_)
        if info is None or standing is None:
            findings.append(Finding("", 0, id_, "is required and missing"))
        elif info.text != standing.text:
            findings.append(Finding(info.file, info.line, id_, "is not the guardrail as it was shipped"))
    if findings:
        raise PolicyError(findings)
