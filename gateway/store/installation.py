"""The data directory itself: its salt, the bundles that have decided, and how an organisation begins."""

from __future__ import annotations

import secrets
from datetime import datetime

from gateway.model.caller import OPERATOR
from gateway.model.entity import EntityUid
from gateway.model.evidence import audit_row
from gateway.model.records import Credential, Human, Org
from gateway.store.credentials import insert_credential
from gateway.store.db import Database
from gateway.store.humans import insert_human
from gateway.store.orgs import settings_text
from gateway.store.rows import Rows, Tx

SALT_BYTES = 16
READ_SALT = "SELECT value FROM meta WHERE key = 'slice_salt'"
KEEP_SALT = "INSERT INTO meta (key, value) VALUES ('slice_salt', $1) ON CONFLICT DO NOTHING"
KEEP_BUNDLE = "INSERT INTO bundles (hash, body, loaded_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
READ_DECIDING = "SELECT hash, body FROM bundles WHERE hash = (SELECT value FROM meta WHERE key = 'deciding_bundle')"
KEEP_DECIDING = """INSERT INTO meta (key, value) VALUES ('deciding_bundle', $1)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
INSERT_ORG = "INSERT INTO orgs (id, name, settings, created_at) VALUES ($1, $2, $3, $4)"


def read_salt(database: Database) -> tuple[bytes, str | None]:
    """The salt of this data directory's slice hashes; a new one, and its text to keep, when there is none yet."""
    found = database.read_sync(lambda rows: rows.value(READ_SALT))
    made = None if found is not None else secrets.token_hex(SALT_BYTES)
    return bytes.fromhex(found or made or ""), made


def keep_salt(tx: Tx, salt: str) -> None:
    """Keep the salt of this data directory."""
    tx.run(KEEP_SALT, salt)


def keep_bundle(tx: Tx, bundle_hash: str, body: str, now: datetime) -> None:
    """Keep the text of a bundle, by hash: what is needed to decide again."""
    tx.run(KEEP_BUNDLE, bundle_hash, body, now)


def keep_deciding(tx: Tx, bundle_hash: str) -> None:
    """Note which bundle everybody is decided by: where others wait to be promoted, a start goes on with it."""
    tx.run(KEEP_DECIDING, bundle_hash)


def last_deciding(rows: Rows) -> tuple[str, str] | None:
    """The hash and the body of the bundle that a server decided by last; None when none is noted."""
    found = rows.one(READ_DECIDING)
    return None if found is None else (found[0], found[1])


def add_org(tx: Tx, org: Org, owner: Human, key: Credential) -> None:
    """Begin an organisation with its owner and the owner's first key.

    There is nobody yet who could be asked, so no decision precedes it; the record names the operator.
    """
    tx.run(INSERT_ORG, org.id, org.name, settings_text(org.settings), org.created_at)
    tx.after_commit(lambda: tx.state.put_org(org))
    insert_human(tx, owner)
    insert_credential(tx, key)
    tx.append(
        audit_row(
            at=org.created_at,
            org_id=org.id,
            principal=OPERATOR.uid,
            action="org.created",
            resource=EntityUid("Org", org.id),
            details={"owner_id": owner.id},
            data_version=tx.state.version,
        )
    )
