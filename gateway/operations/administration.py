"""The data directory: backup, erasure, derivation, verification and key recovery, for owners and for the operator."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from gateway.authn.keys import mint_key
from gateway.errors import Conflict, NotFound
from gateway.model.caller import OPERATOR
from gateway.model.grant import Grant, Session
from gateway.model.records import Credential
from gateway.operations.call import Call, Services
from gateway.operations.fields import new_id
from gateway.operations.operation import Operation, Reply
from gateway.store import credentials, erasure, evidence, sweep
from gateway.store.backup import backup as copy_store
from gateway.store.entities import Installation
from gateway.store.erase import rewrite
from gateway.store.faults import StoreRefused
from gateway.store.writer import Unit, record

Steps = Callable[[str], None]
BACKUPS = "backups"


def _silent(_: str) -> None:
    """Nobody watches."""


# -- for the operator, on a data directory that no server holds


async def backup(services: Services, target: Path, *, progress: Steps = _silent) -> dict[str, Any]:
    """Copy the whole data directory into a new one.

    Raises:
        StoreRefused: the target exists or cannot be made.
    """
    grant = _operator(services, "admin.backup")
    return await _backup(services, grant, target, progress)


async def erase(services: Services, *, peer_id: str | None, progress: Steps = _silent) -> dict[str, Any]:
    """Delete a peer, when one is named, and rewrite the store so that no deleted byte is left in it.

    Raises:
        NotFound: there is no such peer.
    """
    grant = _operator(services, "admin.erase")
    if peer_id is not None:
        peer = services.state.peers.get(peer_id)
        if peer is None:
            await _settle(services, grant)
            raise NotFound("there is no such peer")
        of_peer = Grant(grant.session, grant.action, grant.resource, peer, grant.decision)
        await services.database.awrite(Unit(lambda tx: erasure.erase_person(tx, of_peer), solo=True))
    return await _erase(services, grant, progress)


async def derive(services: Services, *, as_of: datetime | None, dry_run: bool, progress: Steps = _silent) -> dict[str, Any]:
    """Derive every fact again and bury what has expired, as of a time (now when None)."""
    grant = _operator(services, "admin.derive")
    return await _derive(services, grant, as_of or services.clock(), dry_run=dry_run, progress=progress)


async def verify(services: Services) -> dict[str, Any]:
    """Walk the whole chain."""
    grant = _operator(services, "admin.verify")
    await _settle(services, grant)
    return await _verify(services)


async def recover_key(services: Services, *, email: str) -> dict[str, Any]:
    """A new key for a human who has lost theirs; the old ones stay until they are revoked.

    Raises:
        NotFound: no such human.
    """
    human = services.state.human_with_email(email)
    if human is None:
        raise NotFound("no member has that address")
    session = _session(services)
    grant = services.access.authorize(session, "admin.issue_key", services.state.orgs[human.org_id])
    secret, hashed = mint_key("1ck_")
    key = Credential(new_id(), human.org_id, "Human", human.id, "recovered", hashed, session.now, None)

    def issue(tx: Any) -> None:
        credentials.insert_credential(tx, key)
        tx.append(grant.audit("key.recovered", {"key_id": key.id, "holder_id": human.id}))

    await services.database.awrite(Unit(issue, log=tuple(session.rows), solo=True))
    return {"email": human.email, "api_key": secret, "key_id": key.id}


def _session(services: Services) -> Session:
    return Session(OPERATOR, str(uuid.uuid4()), services.clock())


def _operator(services: Services, action: str) -> Grant[Any]:
    return services.access.authorize(_session(services), action, Installation())


async def _settle(services: Services, grant: Grant[Any], *audits: Any) -> None:
    rows = (*grant.session.rows, *audits)
    await services.database.awrite(record(*rows))
    grant.session.written(tuple(rows))


# -- for owners, on a running gateway


async def backup_now(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "admin.backup", call.org)
    directory = call.services.settings.data / BACKUPS
    directory.mkdir(mode=0o700, exist_ok=True)
    target = directory / f"{call.now:%Y%m%dT%H%M%S}-{call.session.request_id[:8]}"
    try:
        return Reply(await _backup(call.services, grant, target, _silent))
    except StoreRefused as refused:
        raise Conflict(str(refused)) from refused


async def erase_now(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "admin.erase", call.org)
    return Reply(await _erase(call.services, grant, _silent))


async def derive_now(call: Call) -> Reply:
    dry_run = call.body.optional_boolean("dry_run", default=False)
    grant = call.access.authorize(call.session, "admin.derive", call.org)
    return Reply(await _derive(call.services, grant, call.now, dry_run=dry_run, progress=_silent))


async def verify_now(call: Call) -> Reply:
    call.access.authorize(call.session, "admin.verify", call.org)
    return Reply(await _verify(call.services))


# -- both


async def _backup(services: Services, grant: Grant[Any], target: Path, progress: Steps) -> dict[str, Any]:
    await _settle(services, grant, grant.audit("admin.backed_up", {}))
    counts = await asyncio.to_thread(copy_store, services.database, target, progress)
    services.authenticator.signer.copy_to(target)
    return {"backup": str(target), "tables": counts}


async def _erase(services: Services, grant: Grant[Any], progress: Steps) -> dict[str, Any]:
    await _settle(services, grant, grant.audit("admin.erased", {}))
    return {"receipt": asdict(await asyncio.to_thread(rewrite, services.database, progress))}


async def _derive(services: Services, grant: Grant[Any], as_of: datetime, *, dry_run: bool, progress: Steps) -> dict[str, Any]:
    await _settle(services, grant, grant.audit("admin.derived", {"dry_run": dry_run}))
    swept = await sweep.derive_all(services.database, as_of, dry_run=dry_run, progress=progress)
    return {"as_of": as_of.isoformat(), "dry_run": dry_run, **asdict(swept)}


async def _verify(services: Services) -> dict[str, Any]:
    report = await services.database.read(evidence.verify_all)
    return {
        "chain_valid": report.valid,
        "rows_verified": report.verified,
        "broken_at": report.broken_at_id,
        "head": {"seq": report.head_seq, "hash": report.head_hash},
    }


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "admin.backup",
        "POST",
        "/v1/admin/backup",
        "Copy the data directory into a new one beside it, on the server's disk.",
        backup_now,
        actions=("admin.backup",),
        strict=True,
    ),
    Operation(
        "admin.erase",
        "POST",
        "/v1/admin/erase",
        "Rewrite the store so that no deleted byte is left on the disk.",
        erase_now,
        actions=("admin.erase",),
        strict=True,
    ),
    Operation(
        "admin.derive",
        "POST",
        "/v1/admin/derive",
        "Derive every fact again.",
        derive_now,
        actions=("admin.derive",),
        fields=("dry_run",),
        strict=True,
    ),
    Operation(
        "admin.verify",
        "POST",
        "/v1/admin/verify",
        "Walk the whole chain of the log.",
        verify_now,
        actions=("admin.verify",),
        strict=True,
    ),
)
