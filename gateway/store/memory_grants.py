"""Memory grants: what a person allows a remote connection, and the end of it."""

from __future__ import annotations

from dataclasses import asdict, replace

from gateway import limits
from gateway.errors import Conflict, NotFound
from gateway.model.grant import Grant
from gateway.model.memory import MemoryGrant, RemoteConnection
from gateway.store.canonical import canonical
from gateway.store.remote_connections import STAYS_REVOKED
from gateway.store.rows import Tx
from gateway.store.state import State

INSERT = """INSERT INTO memory_grants (id, org_id, connection_id, actions, project_id, tags, tags_match, classifications,
  provenance, expires_at, limits, template_version, created_by, created_at, revoked_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"""
REVOKE = "UPDATE memory_grants SET revoked_at = $2 WHERE id = $1"


def listed(state: State, grant: Grant[RemoteConnection]) -> list[MemoryGrant]:
    """The grants of the granted connection, those that ended included, oldest first."""
    found = state.grants_of(grant.target.org_id, grant.target.id)
    grant.note(served=len(found))
    return found


def create(tx: Tx, grant: Grant[RemoteConnection], made: MemoryGrant) -> None:
    """Allow the granted connection something, from this commit on.

    Raises:
        Conflict: the connection is revoked, or has as many live grants as it may have.
    """
    connection = tx.state.remote_connections[grant.target.org_id, grant.target.id]
    if connection.status == "revoked":
        raise Conflict(STAYS_REVOKED)
    standing = [g for g in tx.state.grants_of(made.org_id, made.connection_id) if g.live_at(grant.now)]
    if len(standing) >= limits.GRANTS_PER_CONNECTION:
        raise Conflict(f"this connection has {limits.GRANTS_PER_CONNECTION} grants, which is the most it may have: revoke one")
    tx.run(
        INSERT,
        made.id,
        made.org_id,
        made.connection_id,
        canonical(made.actions),
        made.project_id,
        canonical(made.tags),
        made.tags_match,
        canonical(made.classifications),
        made.provenance,
        made.expires_at,
        canonical(set_limits(made)),
        made.template_version,
        made.created_by,
        made.created_at,
        made.revoked_at,
    )
    tx.after_commit(lambda: tx.state.put_memory_grant(made))
    about = {"grant_id": made.id, "connection_id": made.connection_id, "actions": list(made.actions)}
    tx.append(grant.audit("grant.created", about))


def revoke(tx: Tx, grant: Grant[RemoteConnection], grant_id: str) -> None:
    """End one grant of the granted connection; one that was revoked before stays as it is.

    Raises:
        NotFound: the connection has none of this id.
    """
    found = tx.state.memory_grants.get(grant_id)
    if found is None or (found.org_id, found.connection_id) != (grant.target.org_id, grant.target.id):
        raise NotFound
    if found.revoked_at is not None:
        return
    revoked = replace(found, revoked_at=grant.now)
    tx.run(REVOKE, grant_id, grant.now)
    tx.after_commit(lambda: tx.state.put_memory_grant(revoked))
    tx.append(grant.audit("grant.revoked", {"grant_id": grant_id, "connection_id": found.connection_id}))


def set_limits(grant: MemoryGrant) -> dict[str, int]:
    """The limits of a grant that are set, by name."""
    return {name: limit for name, limit in asdict(grant.limits).items() if limit is not None}
