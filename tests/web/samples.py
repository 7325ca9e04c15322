"""A body for each operation that reads one: every field it declares, each with a value it takes."""

from __future__ import annotations

from gateway.operations.operation import Operation

SOME_ID = "00000000-0000-4000-8000-000000000000"
FACT_KEY = "approval_tendency:refund.create|10-50|new|a@b.example"
RULES = {"default_mode": "approve", "rules": [{"action_type": "refund.create", "mode": "allow"}]}
PAYLOAD = {"amount_usd": "12.50", "recipient": "a@b.example"}
CEDAR = "forbid (principal, action, resource) when { false };"
REQUEST = {
    "action": "refund.create",
    "target_type": "order",
    "target_id": "1",
    "summary": {"title": "t", "body": "b", "fields": []},
    "payload": PAYLOAD,
    "reason": "because",
    "declared_risk_tier": 2,
    "risk_tier": 2,
}
AGENT = {
    "name": "n",
    "description": "d",
    "action_approval_policy": RULES,
    "token_ttl_seconds": 600,
    "auth_method": "api_key",
    "intents_api_enabled": False,
    "shroud_enabled": False,
    "scopes": ["a"],
    "vault_ids": ["a"],
    "memory_namespace_allowlist": ["a"],
    "api_key_expires_at": "2030-01-31T12:00:00Z",
}
CHILD = {name: AGENT[name] for name in AGENT if name in "name description scopes vault_ids memory_namespace_allowlist".split()}
#: What the network's bridge sends of every request.
BRIDGED = {
    "connection_id": "conn-1",
    "source_did": "did:web:peer.example",
    "obligations": [],
    "text": "t",
    "collection_id": "alpha",
    "kb_id": "alpha",
    "project_id": "alpha",
    "query": "q",
    "tags": ["a"],
    "limit": 5,
    "max_tokens": 100,
    "resource": "Project:alpha",
    "context": {},
}

SEARCH: dict[str, object] = {
    "query": "q",
    "mode": "keyword",
    "project_id": "alpha",
    "tags": ["t"],
    "tags_match": "all",
    "layers": ["fact"],
    "classifications": ["internal"],
    "agent_id": SOME_ID,
}

#: What AuthZEN clients send.
ASKED: dict[str, object] = {
    "subject": {"type": "Agent", "id": SOME_ID},
    "action": {"name": "peer.read_context"},
    "resource": {"type": "Peer", "id": SOME_ID},
    "context": {},
}

BODIES: dict[str, dict[str, object]] = {
    "session.sign_in": {"email": "a@b.example", "password": "a wrong password"},
    "session.exchange_human_key": {"api_key": "1ck_none"},
    "session.exchange_agent_key": {"api_key": "ocv_none", "agent_id": SOME_ID},
    "session.claim": {"claim_token": "ct_none", "password": "a new long password"},
    "key.create": {"name": "n", "expires_at": "2030-01-31T12:00:00Z"},
    "me.reauth_begin": {"method": "password", "purpose": "peer.export"},
    "me.reauth_complete": {"method": "password", "purpose": "peer.export", "password": "a wrong password", "code": "000000"},
    "me.totp_enrol": {"code": "000000"},
    "me.totp_remove": {"code": "000000"},
    "me.change_password": {"current_password": "a wrong password", "new_password": "a new long password"},
    "member.add": {"email": "new@b.example", "role": "member", "display_name": "n"},
    "member.update": {"role": "member"},
    "settings.update": {
        "guardrail_changes_require_approval": "false",
        "guardrail_changes_require_step_up": "false",
        "auto_approve": "false",
        "learn_from_posted_events": "true",
        "policy_promotions_need_two": "false",
        "sensitive_actions": ["a.b"],
        "time_zone": "UTC",
    },
    "agent.create": AGENT,
    "agent.update": {**AGENT, "is_active": True},
    "agent.rotate_key": {"api_key_expires_at": "2030-01-31T12:00:00Z"},
    "agent.create_child": {
        **CHILD,
        "action_approval_policy": RULES,
        "expires_at": "2030-01-31T12:00:00Z",
        "approval_id": SOME_ID,
    },
    "approval.request": REQUEST,
    "approval.request_alias": REQUEST,
    "approval.decide": {"decision": "approve", "reason": "because"},
    "approval.approve": {"reason": "because"},
    "approval.deny": {"reason": "because"},
    "approval.cancel": {"reason": "because"},
    "peer.create": {
        "peer_type": "external",
        "peer_ref": "r",
        "display_name": "n",
        "platform_connection_id": None,
        "observer_agent_ids": [],
    },
    "peer.set_observers": {"observers": []},
    "peer.record_event": {
        "event_type": "approval",
        "content": {"action": "refund.create", "decision": "approved", "payload": PAYLOAD},
        "event_id": "e",
    },
    "peer.edit_fact": {"fact_key": FACT_KEY, "fact_value": {"text": "likes tea"}},
    "peer.dispute_fact": {"reason": "because"},
    "peer.predict": {
        "action_type": "refund.create",
        "effective_risk_tier": 1,
        "payload": PAYLOAD,
        "agent_id": SOME_ID,
    },
    "peer.ask_me": {"agent_id": SOME_ID},
    "peer.set_pause": {"reading": True, "learning": False, "until": "2030-01-31T12:00:00Z"},
    "platform_app.create": {"name": "n", "slug": "s"},
    "platform_template.create": {"name": "n", "agents": [{"name": "a"}]},
    "platform.upsert_user": {"email": "user@b.example", "subject_token": None},
    "platform.bootstrap": {"template_id": SOME_ID, "parameters": {}, "return_to": "https://a.example/"},
    "policy.create": {"name": "n", "description": "d", "cedar_text": CEDAR, "mode": "shadow"},
    "policy.update": {"name": "n", "description": "d", "cedar_text": CEDAR},
    "policy.promote": {"version": 1},
    "policy.rollback": {"version": 1},
    "policy.test": {
        "principal": f'Agent::"{SOME_ID}"',
        "action": "peer.read",
        "resource": f'Peer::"{SOME_ID}"',
        "context": {},
        "vault_id": SOME_ID,
        "cedar_text": CEDAR,
    },
    "policy.replay": {"cedar_text": CEDAR, "since": "2030-01-31T12:00:00Z", "limit": 10},
    "agent.simulate_policy": {
        "action_approval_policy": RULES,
        "action_type": "refund.create",
        "payload": PAYLOAD,
        "declared_risk_tier": 1,
    },
    "admin.derive": {"dry_run": True},
    "admin.reload": {"promote": "0" * 64},
    "memory.remember": {
        "text": "t",
        "layer": "session",
        "project_id": "alpha",
        "tags": ["t"],
        "classification": "internal",
        "expires_at": "2030-01-31T12:00:00Z",
        "agent_id": SOME_ID,
        "channel": "c",
        "started_at": "2026-01-31T12:00:00Z",
        "ended_at": "2026-01-31T13:00:00Z",
        "supersedes": SOME_ID,
        "derived_from": [SOME_ID],
        "connection_id": SOME_ID,
        "source_did": "did:web:a.example",
        "created_at": "2026-01-31T12:00:00Z",
    },
    "memory.search": {**SEARCH, "limit": 10},
    "memory.query": {**SEARCH, "max_tokens": 1000},
    "memory.retag": {"project_id": "alpha", "tags": ["t"], "classification": "internal"},
    "memory.index": {"agent_id": SOME_ID},
    "memory.forget": {"id": SOME_ID, "depth": "hide", "dry_run": True, "agent_id": SOME_ID},
    "remote_connection.create": {
        "agent_id": SOME_ID,
        "peer_did": "did:web:peer.example",
        "id": "conn-1",
        "name": "n",
        "replaces": "conn-0",
    },
    "remote_connection.converse": {"ttl_seconds": 600},
    "grant.create": {
        "actions": ["search", "read"],
        "project_id": "alpha",
        "tags": ["a"],
        "tags_match": "any",
        "classifications": ["public"],
        "provenance": "any",
        "expires_at": "2030-01-31T12:00:00Z",
        "limits": {"max_results": 5},
    },
    "authzen.evaluate": ASKED,
    "authzen.evaluate_all": {**ASKED, "evaluations": [{}], "options": {"evaluations_semantic": "execute_all"}},
    "authzen.search_subjects": {**ASKED, "page": {"limit": 1}},
    "authzen.search_resources": {**ASKED, "page": {"limit": 1}},
    "authzen.search_actions": {**{name: ASKED[name] for name in ("subject", "resource", "context")}, "page": {"limit": 1}},
    "arp.search_notes": {**BRIDGED, "action": "notes.search"},
    "arp.read_note": {**BRIDGED, "action": "notes.read", "source_path": SOME_ID, "id": SOME_ID},
    "arp.query_knowledge": {**BRIDGED, "action": "knowledge.query"},
}

#: Fields of another way of asking than the sample's: one setting by its name, a change that an approval let through, the
#: fields of another layer, the next page.
OTHERWISE = {
    "policy.create": {"policy_text"},
    "policy.update": {"policy_text"},
    "policy.test": {"policy_text", "principal_type", "principal_id", "resource_path"},
    "policy.replay": {"policy_text"},
    "settings.update": {"key", "value"},
    "agent.update": {"approval_id"},
    "agent.create_child": {"approval_id"},
    "memory.remember": {"title", "occurred_at"},
    "memory.search": {"cursor"},
    "memory.forget": {"connection_id", "source_did", "project_id"},
    "grant.create": {"scope"},
}


def body_of(operation: Operation) -> dict[str, object] | None:
    """A body with every declared field, or None for an operation that reads none."""
    return dict(BODIES[operation.name]) if operation.fields else None
