"""Decisions, audit events, the data directory and the process, on the wire."""

from __future__ import annotations

from gateway import limits
from gateway.operations.schema import (
    COUNT,
    FLAG,
    ID,
    OBJECT,
    TEXT,
    TIME,
    Maybe,
    Members,
    Schema,
    choice,
    only,
    or_null,
    shape,
    some,
    text,
    unset,
    whole,
)
from gateway.operations.wire.pages import STRETCH, page

DENY_KINDS = ("forbidden", "not_permitted", "evaluation_error", "invalid_request", "stale", "deadline", "paused")
#: A bundle is named by its SHA-256 in hex.
HASH_CHARACTERS = 64

_REF = Maybe(text(limits.REF_CHARACTERS, 0))
DECISIONS_ASKED: Members = {
    "principal": _REF,
    "action": _REF,
    "resource": _REF,
    "decision": Maybe(choice("allow", "deny")),
    "deny_kind": Maybe(choice(*DENY_KINDS)),
    "policy": _REF,
    **STRETCH,
    **page(),
}
EVENTS_ASKED: Members = {"resource_id": _REF, "actor_id": _REF, "action": _REF, **STRETCH, **page(limits.AUDIT_PAGE)}
VERIFIED: Members = {**STRETCH, "limit": Maybe(whole(1, limits.AUDIT_VERIFY))}
DERIVED: Members = {"dry_run": unset(FLAG)}
PROMOTED: Members = {"promote": unset(text(HASH_CHARACTERS, 0))}

_ENTITY = shape(type=TEXT, id=TEXT)
_DECISION: Members = {
    "id": ID,
    "seq": COUNT,
    "at": TIME,
    "principal": _ENTITY,
    "action": TEXT,
    "resource": _ENTITY,
    "decision": choice("allow", "deny"),
    "deny_kind": or_null(TEXT),
    "policies": some(TEXT),
    "bundle": TEXT,
    "data_version": COUNT,
    "slices": some(TEXT),
    "request_id": TEXT,
    "details": OBJECT,
}
DECISIONS = shape(decisions=some(shape("LoggedDecision", **_DECISION)), total=COUNT)
_CITED = shape(
    "CitedPolicy",
    policy_id=TEXT,
    effect=or_null(TEXT),
    reason=or_null(TEXT),
    reason_code=or_null(TEXT),
    precedence=or_null(COUNT),
    origin=choice("organisation", "grant", "guardrail", "policy"),
    organisation_policy=or_null(shape("OrganisationPolicy", id=ID, name=or_null(TEXT))),
    file=or_null(TEXT),
    line=or_null(COUNT),
)
_EXPLANATION = shape(
    "Explanation",
    deny_kind=or_null(TEXT),
    reasons=some(_CITED),
    errors=some(_CITED),
    nearest=or_null(OBJECT),
    note=or_null(TEXT),
    missing=or_null(TEXT),
)
DECISION = shape(decision=shape("ExplainedDecision", **_DECISION, explanation=_EXPLANATION))
EVENTS = shape(
    events=some(
        shape(
            "AuditEvent",
            id=ID,
            action=TEXT,
            actor_id=TEXT,
            actor_type=TEXT,
            resource_type=TEXT,
            resource_id=TEXT,
            org_id=ID,
            details=OBJECT,
            metadata=OBJECT,
            created_at=TIME,
            timestamp=TIME,
            seq=COUNT,
            hash=TEXT,
        )
    ),
    count=COUNT,
    total=COUNT,
)
VERIFICATION = shape(
    chain_valid=FLAG,
    events_verified=COUNT,
    events_checked=COUNT,
    broken_at_event_id=or_null(TEXT),
    scheme=shape(algorithm=TEXT, chain_structure=TEXT, hash_field=TEXT, link_field=TEXT, documentation=TEXT),
)
BACKUP = shape(backup=TEXT)
ERASURE = shape(receipt=shape(bytes_verified=COUNT, backups_not_covered=COUNT))
DERIVATION = shape(
    as_of=TIME,
    dry_run=FLAG,
    **dict.fromkeys(
        (
            "peers",
            "buckets",
            "facts_made",
            "facts_changed",
            "facts_retired",
            "events_expired",
            "tombstones",
            "failed",
        ),
        COUNT,
    ),
)
CHAIN = shape(chain_valid=FLAG, rows_verified=COUNT, broken_at=or_null(TEXT))
LOADED = shape(bundle=TEXT, previous=TEXT, policies=COUNT, cases=COUNT, in_shadow=FLAG)

FAILING = shape(status=only("failing"))
HEALTH = shape(
    "Health",
    status=choice("ok", "degraded"),
    pending_buckets=Maybe(COUNT),
    audit=Maybe(choice("durable", "relaxed")),
    window_ms=Maybe(COUNT),
    bundle=Maybe(TEXT),
    policies_loaded_at=Maybe(or_null(TIME)),
    policies_waiting=Maybe(or_null(TEXT)),
    policies_failure=Maybe(or_null(TEXT)),
    data_version=Maybe(COUNT),
    divergences=Maybe(COUNT),
    store=Maybe(TEXT),
    store_failure=Maybe(or_null(TEXT)),
)
LIVE = shape(status=only("live"))
READY = shape(status=only("ready"))
NOT_READY = shape(status=choice("draining", "failing"))
RESOURCE = shape(resource=TEXT, authorization_servers=some(TEXT), bearer_methods_supported=some(TEXT), resource_name=TEXT)
DESCRIPTION: Schema = shape(openapi=TEXT, info=OBJECT, tags=some(OBJECT), paths=OBJECT, components=OBJECT)
