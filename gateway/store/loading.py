"""Reading the authorization state from the tables, once at start."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, cast

from gateway.model.memory import TEMPLATE_VERSION, GrantLimits, MemoryGrant, RemoteConnection
from gateway.model.number import parse_exactly
from gateway.model.org_policy import OrgPolicy, PolicyVersion
from gateway.model.records import (
    Agent,
    Credential,
    Human,
    Observer,
    Org,
    OrgSettings,
    Pause,
    Peer,
    PlatformApp,
    PlatformConnection,
    PlatformTemplate,
)
from gateway.model.rules import parse_rules
from gateway.store.faults import StoreRefused
from gateway.store.rows import Rows
from gateway.store.state import State

BATCH = 10_000

ORGS = "SELECT id, name, settings, created_at FROM orgs"
HUMANS = """SELECT id, org_id, email, display_name, role, password_hash, totp_secret, totp_confirmed, totp_last_step,
  generation, created_at FROM humans"""
AGENTS = """SELECT id, org_id, name, description, is_active, created_by, parent_id, connection_id, approval_policy,
  token_ttl_seconds, generation, created_at, attributes, deleted_at IS NOT NULL FROM agents"""
CREDENTIALS = """SELECT id, org_id, principal_type, principal_id, name, secret_hash, created_at, expires_at FROM credentials"""
REVOKED = "SELECT jti, expires_at FROM revoked_tokens"
APPS = "SELECT id, org_id, name, slug, created_by, created_at FROM platform_apps"
TEMPLATES = "SELECT id, org_id, name, agents, created_by, created_at FROM platform_templates"
CONNECTIONS = "SELECT id, org_id, app_id, user_id, status, template_id, claimed_at, created_at FROM platform_connections"
PEERS = """SELECT id, org_id, peer_type, peer_ref, display_name, connection_id, status, pause_reading, pause_learning,
  pause_until, created_at FROM peers"""
OBSERVERS = "SELECT peer_id, agent_id, added_by, added_at, expires_at FROM observers ORDER BY peer_id, agent_id"
REMOTE_CONNECTIONS = """SELECT id, org_id, agent_id, peer_did, name, status, replaces, created_at, generation
  FROM remote_connections"""
MEMORY_GRANTS = """SELECT id, org_id, connection_id, actions, project_id, tags, tags_match, classifications, provenance,
  expires_at, limits, template_version, created_by, created_at, revoked_at FROM memory_grants ORDER BY created_at, id"""
ORG_POLICIES = "SELECT id, org_id, name, description, created_by, created_at, updated_at, version FROM org_policies"
POLICY_VERSIONS = """SELECT policy_id, number, previous, cedar_text, mode, enforced, written_by, created_at
  FROM org_policy_versions ORDER BY policy_id, number"""
LAST_VERSION = "SELECT coalesce(max(data_version), 0) FROM log"
REMOVED = "SELECT peer_id, agent_id FROM removed_observers"


def load_state(rows: Rows, state: State) -> None:
    """Fill an empty state from the tables.

    Raises:
        StoreRefused: a grant is of a kind that this gateway does not know.
    """
    for org_id, name, settings, created_at in rows.all(ORGS):
        state.put_org(Org(org_id, name, settings_of(settings), created_at))
    for row in rows.all(HUMANS):
        state.put_human(Human(*row))
    for found in rows.all(AGENTS):
        put = state.put_former_agent if found[-1] else state.put_agent
        put(_agent(found[:-1]))
    for row in rows.all(CREDENTIALS):
        state.put_credential(Credential(*row))
    for jti, expires_at in rows.all(REVOKED):
        state.revoke_token(jti, expires_at)
    for row in rows.all(APPS):
        state.put_app(PlatformApp(*row))
    for app_id, org_id, name, agents, created_by, created_at in rows.all(TEMPLATES):
        state.put_template(PlatformTemplate(app_id, org_id, name, tuple(parse_json(agents)), created_by, created_at))
    for row in rows.all(CONNECTIONS):
        state.put_connection(PlatformConnection(*row))
    for row in _each(rows, PEERS):
        state.put_peer(_peer(row))
    _load_observers(rows, state)
    for peer_id, agent_id in rows.all(REMOVED):
        state.remember_removed(peer_id, agent_id, removed=True)
    for row in rows.all(REMOTE_CONNECTIONS):
        state.put_remote_connection(RemoteConnection(*row))
    for row in rows.all(MEMORY_GRANTS):
        state.put_memory_grant(_memory_grant(row))
    steps = {(row[0], row[1]): PolicyVersion(*row) for row in rows.all(POLICY_VERSIONS)}
    for *about, number in rows.all(ORG_POLICIES):
        current = steps[about[0], number]
        enforced = None if current.enforced is None else steps[about[0], current.enforced]
        last = max(step for policy_id, step in steps if policy_id == about[0])
        state.put_org_policy(OrgPolicy(*[*about, last, current, enforced]))
    # One more than any decision in the log carries, so that a version never stands for two states.
    state.version = rows.value(LAST_VERSION) + 1


def loaded(rows: Rows) -> State:
    """A fresh state from the tables."""
    state = State()
    load_state(rows, state)
    return state


def settings_of(text: str) -> OrgSettings:
    """An organisation's settings as they are stored."""
    stored = cast(Mapping[str, Any], json.loads(text))
    return OrgSettings(**{**stored, "sensitive_actions": tuple(stored.get("sensitive_actions", ()))})


def parse_json(text: str) -> Any:
    """A stored JSON text; numbers come back as they were written."""
    return parse_exactly(text)


def _load_observers(rows: Rows, state: State) -> None:
    current: list[Observer] = []
    for row in _each(rows, OBSERVERS):
        entry = Observer(*row)
        if current and current[0].peer_id != entry.peer_id:
            state.put_observers(current[0].peer_id, current)
            current = []
        current.append(entry)
    if current:
        state.put_observers(current[0].peer_id, current)


def _agent(row: tuple[Any, ...]) -> Agent:
    cells = list(row)
    cells[8] = parse_rules(None if row[8] is None else parse_json(row[8]))
    cells[12] = parse_json(row[12])
    return Agent(*cells)


def _memory_grant(row: tuple[Any, ...]) -> MemoryGrant:
    """A grant as it is stored.

    Raises:
        StoreRefused: another way of turning grants into policies made it, and here it could come to allow something else.
    """
    cells = list(row)
    for place in (3, 5, 7):
        cells[place] = tuple(json.loads(row[place]))
    cells[10] = GrantLimits(**json.loads(row[10]))
    grant = MemoryGrant(*cells)
    if grant.template_version != TEMPLATE_VERSION:
        raise StoreRefused(
            f"the grant {grant.id} was made by version {grant.template_version} of its template, and this gateway knows version"
            f" {TEMPLATE_VERSION}: open the data directory with the gateway that made it, and revoke or make it anew there"
        )
    return grant


def _peer(row: tuple[Any, ...]) -> Peer:
    peer_id, org_id, peer_type, peer_ref, display_name, connection_id, status, reading, learning, until, created_at = row
    pause = Pause(reading, learning, cast(datetime | None, until))
    return Peer(peer_id, org_id, peer_type, peer_ref, display_name, connection_id, status == "archived", pause, created_at)


def _each(rows: Rows, sql: str) -> Iterator[tuple[Any, ...]]:
    for batch in rows.batches(sql, size=BATCH):
        yield from batch
