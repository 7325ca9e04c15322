"""Platforms: their applications and templates, the people they connect, and the claims those sign in with first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from gateway import limits
from gateway.errors import Conflict, Invalid, NotFound
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.records import Credential, Human, Org, PlatformApp, PlatformConnection, PlatformTemplate
from gateway.model.rules import NO_RULES, ApprovalRules
from gateway.store.agents import refuse_wider
from gateway.store.canonical import canonical
from gateway.store.credentials import brought_by, end_credentials, insert_credential
from gateway.store.humans import insert_human
from gateway.store.peers import put_peer
from gateway.store.rows import Tx
from gateway.store.state import State

INSERT_APP = "INSERT INTO platform_apps (id, org_id, name, slug, created_by, created_at) VALUES ($1, $2, $3, $4, $5, $6)"
DELETE_APP = "DELETE FROM platform_apps WHERE id = $1"
INSERT_TEMPLATE = """INSERT INTO platform_templates (id, org_id, name, agents, created_by, created_at)
  VALUES ($1, $2, $3, $4, $5, $6)"""
INSERT_CONNECTION = """INSERT INTO platform_connections (id, org_id, app_id, user_id, status, template_id, claimed_at, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"""
UPDATE_CONNECTION = "UPDATE platform_connections SET status = $2, template_id = $3 WHERE id = $1"
INSERT_CLAIM = "INSERT INTO claims (token_hash, org_id, connection_id, expires_at) VALUES ($1, $2, $3, $4)"
DELETE_CLAIMS = "DELETE FROM claims WHERE connection_id = $1 OR expires_at <= $2"


@dataclass(frozen=True, slots=True)
class Connected:
    """A person of the platform's organisation and the platform's link to them."""

    human: Human
    connection: PlatformConnection
    is_new: bool


def add_app(tx: Tx, grant: Grant[Org], app: PlatformApp, key: Credential) -> None:
    """Register an application and its key.

    Raises:
        Conflict: another application of the organisation has its slug.
    """
    if any(other.org_id == app.org_id and other.slug == app.slug for other in tx.state.apps.values()):
        raise Conflict(f"`slug` `{app.slug}` is taken by another application of this organisation")
    tx.run(INSERT_APP, app.id, app.org_id, app.name, app.slug, app.created_by, app.created_at)
    tx.after_commit(lambda: tx.state.put_app(app))
    insert_credential(tx, key)
    tx.append(grant.audit("platform.app_created", {"app_id": app.id}, resource=EntityUid("Platform", app.id)))


def rotate_key(tx: Tx, grant: Grant[PlatformApp], key: Credential) -> None:
    """Replace the key of an application; the one before it is refused from now on."""
    app = _present(tx, grant)
    end_credentials(tx, "Platform", app.id)
    insert_credential(tx, key)
    tx.append(grant.audit("platform.key_rotated", {"app_id": app.id}))


def remove_app(tx: Tx, grant: Grant[PlatformApp]) -> None:
    """Remove an application with its key, and end every connection that it made."""
    app = _present(tx, grant)
    end_credentials(tx, "Platform", app.id)
    tx.run(DELETE_APP, app.id)
    tx.after_commit(lambda: tx.state.drop_app(app.id))
    tx.append(grant.audit("platform.app_removed", {"app_id": app.id}))
    for connection in [link for link in tx.state.connections.values() if link.app_id == app.id]:
        _end(tx, grant, connection)


def _present(tx: Tx, grant: Grant[PlatformApp]) -> PlatformApp:
    app = tx.state.apps.get(grant.target.id)
    if app is None:
        raise NotFound
    return app


def add_template(tx: Tx, grant: Grant[Org], template: PlatformTemplate, policies: Sequence[ApprovalRules]) -> None:
    """Keep a template that bootstraps provision agents from; `policies` are those of its agents.

    Raises:
        Conflict: one of them waits for a second person.
    """
    for rules in policies:
        refuse_wider(tx, template.org_id, NO_RULES, rules)
    agents = canonical(template.agents)
    tx.run(INSERT_TEMPLATE, template.id, template.org_id, template.name, agents, template.created_by, template.created_at)
    tx.after_commit(lambda: tx.state.put_template(template))
    tx.append(grant.audit("platform.template_created", {"template_id": template.id}))


def connect(tx: Tx, grant: Grant[Org], newcomer: Human, wanted: PlatformConnection) -> Connected | None:
    """Link the calling application to the person with the newcomer's address: a member, or a new one without a password.

    None when the address belongs to somebody outside the organisation, of whom nothing is told; or to somebody whom
    another application brought and who has not claimed the account yet, since whoever claims it chooses its password.
    """
    human = tx.state.human_with_email(newcomer.email)
    if human is not None and human.org_id != grant.target.id:
        return None
    if human is not None and human.password_hash is None and brought_by(tx.state, human.id) != wanted.app_id:
        return None
    if human is None:
        insert_human(tx, newcomer)
        about = {"user_id": newcomer.id, "app_id": wanted.app_id}
        tx.append(grant.audit("platform.user_created", about, resource=EntityUid("Human", newcomer.id)))
    person = human or newcomer
    live = live_connection(tx.state, wanted.app_id, person.id)
    connection = live or replace(wanted, user_id=person.id)
    if live is None:
        c = connection
        tx.run(INSERT_CONNECTION, c.id, c.org_id, c.app_id, c.user_id, c.status, c.template_id, c.claimed_at, c.created_at)
        tx.after_commit(lambda: tx.state.put_connection(connection))
        about = {"connection_id": connection.id, "user_id": person.id, "app_id": connection.app_id}
        tx.append(grant.audit("platform.connected", about, resource=EntityUid("PlatformConnection", connection.id)))
    return Connected(person, connection, is_new=human is None)


def live_connection(state: State, app_id: str, user_id: str) -> PlatformConnection | None:
    """The application's link to a person that was not ended, if there is one."""
    links = (c for c in list(state.connections.values()) if (c.app_id, c.user_id) == (app_id, user_id))
    return next((link for link in links if link.status != "disconnected"), None)


def current(tx: Tx, grant: Grant[PlatformConnection]) -> PlatformConnection:
    """The granted connection as it is inside the transaction.

    Raises:
        NotFound: it was ended since the decision.
    """
    connection = tx.state.connections[grant.target.id]
    if connection.status == "disconnected":
        raise NotFound
    return connection


def save(tx: Tx, connection: PlatformConnection) -> None:
    """Write a connection as it is now, and publish it after the commit."""
    tx.run(UPDATE_CONNECTION, connection.id, connection.status, connection.template_id)
    tx.after_commit(lambda: tx.state.put_connection(connection))


def reissue_claim(tx: Tx, grant: Grant[PlatformConnection], token_hash: str) -> None:
    """Replace the claim of a connection that was bootstrapped.

    Raises:
        Invalid: it was not.
    """
    connection = current(tx, grant)
    if connection.status != "active":
        raise Invalid("this connection was not bootstrapped yet: there is nothing to claim")
    put_claim(tx, grant, connection, token_hash)
    tx.append(grant.audit("platform.claim_reissued", {"connection_id": connection.id}))


def put_claim(tx: Tx, grant: Grant[PlatformConnection], connection: PlatformConnection, token_hash: str) -> None:
    """Keep the hash of a claim for its short life; a connection has one at a time."""
    tx.run(DELETE_CLAIMS, connection.id, grant.now)
    tx.run(INSERT_CLAIM, token_hash, connection.org_id, connection.id, grant.now + timedelta(seconds=limits.CLAIM_SECONDS))


def disconnect(tx: Tx, grant: Grant[PlatformConnection]) -> None:
    """End a connection: its claim is void and its peer archived, out of reach of agents. Once ended, it stays so."""
    _end(tx, grant, tx.state.connections[grant.target.id])


def _end(tx: Tx, grant: Grant[Any], connection: PlatformConnection) -> None:
    if connection.status == "disconnected":
        return
    save(tx, replace(connection, status="disconnected"))
    tx.run(DELETE_CLAIMS, connection.id, grant.now)
    about = {"connection_id": connection.id}
    tx.append(grant.audit("platform.disconnected", about, resource=EntityUid("PlatformConnection", connection.id)))
    peer = tx.state.peer_of_connection(connection.id)
    if peer is not None and not peer.archived:
        put_peer(tx, replace(peer, archived=True))
        about = {"peer_id": peer.id, "connection_id": connection.id}
        tx.append(grant.audit("peer.archived", about, resource=EntityUid("Peer", peer.id)))
