"""Platforms, their templates and their connections to people, on the wire."""

from __future__ import annotations

from gateway.authn.emails import ADDRESS, LONGEST
from gateway.operations.schema import (
    COUNT,
    FLAG,
    ID,
    NOTHING,
    OBJECT,
    TEXT,
    TIME,
    Maybe,
    Members,
    choice,
    matching,
    members,
    or_null,
    shape,
    some,
    table,
    text,
    unset,
)
from gateway.operations.wire.agents import NAME, RULES

AGENTS_PER_TEMPLATE = 20
SLUG_CHARACTERS = 64
RETURN_CHARACTERS = 2_000
SLUG = r"[a-z0-9]+(-[a-z0-9]+)*"

NEW_APP: Members = {"name": NAME, "slug": matching(SLUG, SLUG_CHARACTERS)}
_ENTRY: Members = {"name": NAME, "action_approval_policy": unset(RULES)}
TEMPLATE_AGENT = tuple(_ENTRY)
NEW_TEMPLATE: Members = {"name": NAME, "agents": some(members(_ENTRY, closed=True), AGENTS_PER_TEMPLATE, least=1)}
UPSERTED: Members = {"email": matching(ADDRESS, LONGEST), "subject_token": Maybe(NOTHING)}
BOOTSTRAPPED: Members = {
    "template_id": unset(ID),
    "parameters": unset(OBJECT),
    "return_to": unset(text(RETURN_CHARACTERS, 0)),
}

_APP = shape("PlatformApp", id=ID, name=TEXT, slug=TEXT, created_by=ID, created_at=TIME)
APPS = shape(apps=some(_APP))
APP_WITH_KEY = shape(app=_APP, api_key=TEXT)
_TEMPLATE = shape(
    "PlatformTemplate",
    id=ID,
    name=TEXT,
    agents=some(shape(name=TEXT, action_approval_policy=Maybe(RULES))),
    created_by=ID,
    created_at=TIME,
)
TEMPLATES = shape(templates=some(_TEMPLATE))
TEMPLATE = shape(template=_TEMPLATE)
UPSERT = shape(user_handle=ID, is_new=FLAG, connection_id=ID, email=TEXT)
_CLAIM: Members = {"claim_url": TEXT, "claim_token": TEXT, "expires_in": COUNT, "connection_id": ID}
CLAIM = shape("Claim", **_CLAIM)
BOOTSTRAP = shape(
    **_CLAIM,
    summary=shape(
        vault_id=NOTHING,
        agent_id=or_null(ID),
        agent_ids=some(ID),
        policy_ids=some(TEXT),
        peer_id=ID,
        observers_not_added=some(ID),
        agent_api_key=or_null(TEXT),
        agent_api_keys=table(TEXT),
    ),
)
CONNECTION = shape(
    "PlatformConnection",
    connection_id=ID,
    app_id=ID,
    user_id=ID,
    status=TEXT,
    entitlement_status=choice("active", "inactive"),
    vault_ids=some(TEXT),
    agent_ids=some(ID),
    peer_id=or_null(ID),
    template_id=or_null(ID),
    claim=shape(status=choice("claimed", "pending")),
    created_at=TIME,
)
_CONNECTED = shape(
    "ConnectedApp",
    connection_id=ID,
    app_id=ID,
    app_name=TEXT,
    app_slug=TEXT,
    status=TEXT,
    agent_ids=some(ID),
    peer_id=or_null(ID),
    claimed_at=or_null(TIME),
    connected_at=TIME,
)
CONNECTED = shape(connected_apps=some(_CONNECTED), apps=some(_CONNECTED))
