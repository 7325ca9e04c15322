"""Keys, ended sessions and claims: what a principal may show to be let in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from gateway.model.entity import EntityUid
from gateway.model.evidence import LogRow, audit_row
from gateway.model.grant import Grant, Session
from gateway.model.records import Credential, Human, Org
from gateway.store.rows import Rows, Tx
from gateway.store.state import State

INSERT = """INSERT INTO credentials (id, org_id, principal_type, principal_id, name, secret_hash, created_at, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"""
DELETE = "DELETE FROM credentials WHERE id = $1"
DELETE_ALL = "DELETE FROM credentials WHERE principal_type = $1 AND principal_id = $2"
REVOKE = "INSERT INTO revoked_tokens (jti, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING"
#: A token past its end is refused for that; nothing needs to remember it.
FORGET_ENDED = "DELETE FROM revoked_tokens WHERE expires_at <= $1"
CLAIM = "SELECT connection_id FROM claims WHERE token_hash = $1 AND expires_at > $2"
DELETE_CLAIM = "DELETE FROM claims WHERE token_hash = $1"
DELETE_CLAIMS_OF_USER = "DELETE FROM claims WHERE connection_id IN (SELECT id FROM platform_connections WHERE user_id = $1)"
MARK_CLAIMED = "UPDATE platform_connections SET claimed_at = $2 WHERE id = $1"
SET_PASSWORD = "UPDATE humans SET password_hash = $2 WHERE id = $1"  # noqa: S105  # a statement, not a password


@dataclass(frozen=True, slots=True)
class Claim:
    """A live claim: whose account it opens, through which connection."""

    connection_id: str
    human: Human


# -- keys


def insert_credential(tx: Tx, credential: Credential) -> None:
    """Add a key; part of a larger change, which has its grant."""
    c = credential
    tx.run(INSERT, c.id, c.org_id, c.principal_type, c.principal_id, c.name, c.secret_hash, c.created_at, c.expires_at)
    tx.after_commit(lambda: tx.state.put_credential(credential))


def recover_key(tx: Tx, grant: Grant[Org], key: Credential) -> None:
    """Add a key that the operator made for a human; the human's organisation finds the audit row."""
    insert_credential(tx, key)
    made = grant.audit("key.recovered", {"key_id": key.id, "holder_id": key.principal_id})
    tx.append(replace(made, org_id=key.org_id))


def end_credentials(tx: Tx, principal_type: str, principal_id: str) -> None:
    """End every key of a principal, and with them the tokens exchanged from them; part of a larger change.

    Tokens that came from a password end with the principal's generation, which the caller raises.
    """
    tx.run(DELETE_ALL, principal_type, principal_id)

    def publish() -> None:
        for credential in tx.state.credentials_of(principal_type, principal_id):
            tx.state.drop_credential(credential.id)

    tx.after_commit(publish)


def create_key(tx: Tx, grant: Grant[Org], credential: Credential, *, generation: int) -> bool:
    """Add a human's own key; False when the human's keys were all ended since the grant."""
    holder = tx.state.humans.get(credential.principal_id)
    if holder is None or holder.generation != generation:
        return False
    insert_credential(tx, credential)
    tx.append(grant.audit("key.created", {"key_id": credential.id}))
    return True


def revoke_key(tx: Tx, grant: Grant[Credential]) -> None:
    """End one key and the tokens exchanged from it."""
    key_id = grant.target.id
    tx.run(DELETE, key_id)
    tx.after_commit(lambda: tx.state.drop_credential(key_id))
    tx.append(grant.audit("key.revoked", {"key_id": key_id}))


# -- sessions


def end_session(tx: Tx, grant: Grant[Org], token_id: str, expires_at: datetime) -> None:
    """Revoke one token for the rest of its life."""
    now = grant.now
    tx.run(FORGET_ENDED, now)
    tx.run(REVOKE, token_id, expires_at)

    def publish() -> None:
        revoked = tx.state.revoked_tokens
        for jti in [jti for jti, end in revoked.items() if end <= now]:
            del revoked[jti]
        tx.state.revoke_token(token_id, expires_at)

    tx.after_commit(publish)


# -- claims. Nobody is signed in yet, so there is no decision and no grant: the token itself is what allows it.


def claimed_by(rows: Rows, state: State, token_hash: str, now: datetime) -> Claim | None:
    """What a claim token opens, or None when it is unknown, used or past its end, or its connection was ended.

    INVARIANT: a first password is set only through the application that brought the person, and only while they are
    nothing but a member: a platform hands out claims itself, and must not get an account that others made more of.
    """
    connection_id = rows.value(CLAIM, token_hash, now)
    connection = state.connections.get(connection_id) if connection_id is not None else None
    if connection is None or connection.status == "disconnected":
        return None
    human = state.humans.get(connection.user_id)
    if human is None or human.org_id != connection.org_id:
        return None
    first = human.password_hash is None
    if first and (human.role != "member" or brought_by(state, human.id) != connection.app_id):
        return None
    return Claim(connection.id, human)


def brought_by(state: State, user_id: str) -> str | None:
    """The application that connected a person before any other did; without a password, the one that brought them."""
    links = [link for link in list(state.connections.values()) if link.user_id == user_id]
    return min(links, key=lambda link: (link.created_at, link.id)).app_id if links else None


def redeem_claim(tx: Tx, session: Session, token_hash: str, *, password_hash: str | None) -> Human | None:
    """Use a claim up: the person's first password is set, or (None) they have shown the one they have.

    None when the claim is gone, or when the account got a password in the meantime.
    """
    claim = claimed_by(tx, tx.state, token_hash, session.now)
    if claim is None or (claim.human.password_hash is None) != (password_hash is not None):
        return None
    connection = replace(tx.state.connections[claim.connection_id], claimed_at=session.now)
    tx.run(DELETE_CLAIM, token_hash)
    tx.run(MARK_CLAIMED, connection.id, session.now)
    tx.after_commit(lambda: tx.state.put_connection(connection))
    human = claim.human
    if password_hash is not None:
        human = replace(human, password_hash=password_hash)
        tx.run(SET_PASSWORD, human.id, password_hash)
        tx.after_commit(lambda: tx.state.put_human(human))
    tx.append(_claim_redeemed(session, human, connection.id, tx.state.version))
    return human


def end_claims(tx: Tx, user_id: str) -> None:
    """End every claim on a person's account; part of a larger change."""
    tx.run(DELETE_CLAIMS_OF_USER, user_id)


def _claim_redeemed(session: Session, human: Human, connection_id: str, version: int) -> LogRow:
    return audit_row(
        at=session.now,
        org_id=human.org_id,
        principal=EntityUid("Human", human.id),
        action="claim.redeemed",
        resource=EntityUid("PlatformConnection", connection_id),
        details={"request_id": session.request_id},
        request_id=session.request_id,
        data_version=version,
    )
