"""The data directory: backup, erasure, derivation, verification and key recovery, for owners and for the operator."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from gateway.authn.emails import normal_email
from gateway.authn.keys import HUMAN_KEY, mint_key
from gateway.errors import Conflict, NotFound, Unavailable
from gateway.model.caller import OPERATOR
from gateway.model.evidence import LogRow
from gateway.model.grant import Grant, Session
from gateway.model.ids import new_id
from gateway.model.records import Credential, Org
from gateway.operations.call import Call, Services
from gateway.operations.fields import stamp
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import records as wire
from gateway.store import credentials, erasure, evidence, sweep
from gateway.store.backup import backup as copy_store
from gateway.store.entities import Installation
from gateway.store.erase import Receipt, rewrite
from gateway.store.faults import StoreRefused
from gateway.store.log import Verification
from gateway.store.rows import Rows, Tx
from gateway.store.writer import Unit, record

P = ParamSpec("P")
R = TypeVar("R")
Steps = Callable[[str], None]
BACKUPS = "backups"
NO_BACKUP = "no backup was made"
#: Rows of the log that are verified before other reads get their turn.
ROWS_A_TURN = 5_000


def _silent(_: str) -> None:
    """Nobody watches."""


# -- for the operator, on a data directory that no server holds


async def backup(services: Services, target: Path, *, progress: Steps = _silent) -> dict[str, Any]:
    """Copy the whole data directory into a new one.

    Raises:
        StoreRefused: the target exists or cannot be made.
    """
    async with _as_operator(services) as session:
        grant = services.access.authorize(session, "admin.backup", Installation())
        made = await _backup(services, grant, target, progress)
        return {"backup": str(target), "tables": made}


async def erase(services: Services, *, peer_id: str | None, progress: Steps = _silent) -> dict[str, Any]:
    """Delete a peer, when one is named, and rewrite the store so that no deleted byte is left in it.

    Raises:
        NotFound: there is no such peer; nothing is rewritten.
    """
    async with _as_operator(services) as session:
        grant = services.access.authorize(session, "admin.erase", Installation())
        if peer_id is not None:
            peer = services.state.peers.get(peer_id)
            if peer is None:
                raise NotFound("there is no such peer")
            await _change(services, session, lambda tx: erasure.erase_person(tx, grant, peer))
        return {"receipt": asdict(await rewrite_store(services, grant, progress, noted="admin.erased"))}


async def derive(services: Services, *, as_of: datetime | None, dry_run: bool, progress: Steps = _silent) -> dict[str, Any]:
    """Derive every fact again and bury what has expired, as of a time (now when None)."""
    async with _as_operator(services) as session:
        grant = services.access.authorize(session, "admin.derive", Installation())
        return await _derive(services, grant, as_of or session.now, dry_run=dry_run, progress=progress)


async def verify(services: Services) -> dict[str, Any]:
    """Walk the whole chain, this very question included; `head` is what to write down elsewhere."""
    async with _as_operator(services) as session:
        grant = services.access.authorize(session, "admin.verify", Installation())
        await _settle(services, grant)
        report = await _walk(services, grant)
    head = {"seq": report.head_seq, "hash": report.head_hash}
    return {"chain_valid": report.valid, "rows_verified": report.verified, "broken_at": report.broken_at_id, "head": head}


async def recover_key(services: Services, *, email: str) -> dict[str, Any]:
    """A new key for a human who has lost theirs; the old ones stay until they are revoked.

    Raises:
        NotFound: no such human.
    """
    human = services.state.human_with_email(normal_email(email) or email)
    if human is None:
        raise NotFound("no member has that address")
    org = services.state.orgs[human.org_id]
    async with _as_operator(services) as session:
        grant = services.access.authorize(session, "admin.issue_key", org)
        secret, hashed = mint_key(HUMAN_KEY)
        key = Credential(new_id(), human.org_id, "Human", human.id, "recovered", hashed, session.now, None)
        await _change(services, session, lambda tx: credentials.recover_key(tx, grant, key))
    return {"email": human.email, "api_key": secret, "key_id": key.id}


async def rotate_signing_keys(services: Services, overlap: timedelta) -> dict[str, Any]:
    """Sign tokens with a new key; those signed so far are good until `overlap` has passed."""
    async with _as_operator(services) as session:
        grant = services.access.authorize(session, "admin.rotate_signing_key", Installation())
        await _settle(services, grant)
        key_id = services.authenticator.signer.rotate(session.now, overlap=overlap)
        await _settle(services, grant, grant.audit("admin.signing_key_rotated", {"key_id": key_id}))
    return {"key_id": key_id, "old_keys_verify_until": stamp(session.now + overlap)}


@asynccontextmanager
async def _as_operator(services: Services) -> AsyncIterator[Session]:
    """A session of the operator; whichever way it ends, what was decided in it is in the log."""
    session = Session(OPERATOR, new_id(), services.clock())
    try:
        yield session
    finally:
        if session.rows:
            await services.database.awrite(record(*session.rows))


async def _change(services: Services, session: Session, run: Callable[[Tx], object]) -> None:
    """Make a change in one transaction with the decisions that led to it."""
    rows = tuple(session.rows)
    await services.database.awrite(Unit(run, log=rows, solo=True))
    session.written(rows)


async def _settle(services: Services, grant: Grant[Any], *audits: LogRow) -> None:
    """Write what was decided before the work begins, and what was done once it is."""
    rows = (*grant.session.rows, *audits)
    if rows:
        await services.database.awrite(record(*rows))
        grant.session.written(rows)


# -- for owners, on a running gateway

# One file may hold several organisations: then only the operator copies or rewrites it, and an owner is shown no count that
# says anything of the others.


async def backup_now(call: Call) -> Reply:
    """Copy the data directory to a new place inside it."""
    grant = call.access.authorize(call.session, "admin.backup", Installation())
    directory = call.services.settings.data / BACKUPS
    await _file_work(NO_BACKUP, directory.mkdir, mode=0o700, exist_ok=True)
    target = directory / f"{call.now:%Y%m%dT%H%M%SZ}-{new_id()[:8]}"
    try:
        await _backup(call.services, grant, target, _silent)
    except StoreRefused as refused:
        raise Conflict(str(refused)) from refused
    return Reply({"backup": f"{BACKUPS}/{target.name}"})


async def erase_now(call: Call) -> Reply:
    """Rewrite the store, so that what was deleted is not on the disk."""
    grant = call.access.authorize(call.session, "admin.erase", Installation())
    receipt = await rewrite_store(call.services, grant, noted="admin.erased")
    not_covered = len(receipt.backups_not_covered)
    return Reply({"receipt": {"bytes_verified": receipt.bytes_verified, "backups_not_covered": not_covered}})


async def derive_now(call: Call) -> Reply:
    """Derive the facts of the organisation again."""
    dry_run = call.body.optional_boolean("dry_run", default=False)
    grant = call.access.authorize(call.session, "admin.derive", call.org)
    return Reply(await _derive(call.services, grant, call.now, dry_run=dry_run, progress=_silent))


async def verify_now(call: Call) -> Reply:
    """Walk the whole chain; rows of other organisations are neither counted nor named."""
    grant = call.access.authorize(call.session, "admin.verify", call.org)
    report = await call.read(evidence.own_part, grant, await _walk(call.services, grant))
    return Reply({"chain_valid": report.valid, "rows_verified": report.verified, "broken_at": report.broken_at})


# -- both


async def _backup(services: Services, grant: Grant[Any], target: Path, progress: Steps) -> dict[str, int]:
    await _settle(services, grant)
    counts = await _file_work(NO_BACKUP, _copy, services, target, progress)
    await _settle(services, grant, grant.audit("admin.backed_up", {}))
    return counts


def _copy(services: Services, target: Path, progress: Steps) -> dict[str, int]:
    """Copy the store and its keys; without its keys a copy could not be served."""
    counts = copy_store(services.database, target, progress)
    try:
        services.authenticator.signer.copy_to(target)
    except BaseException:  # whatever it is, and it goes on: half a backup must not stay
        shutil.rmtree(target)
        raise
    return counts


async def rewrite_store(services: Services, grant: Grant[Any], progress: Steps = _silent, *, noted: str | None = None) -> Receipt:
    """Write the store anew without what was deleted from it, and note that in the log unless it is part of something noted.

    Raises:
        Unavailable: the disk is full, or refuses; what was deleted stays deleted.
    """
    await _settle(services, grant)
    receipt = await _file_work("the store was not rewritten and is as it was", rewrite, services.database, progress)
    await _settle(services, grant, *([] if noted is None else [grant.audit(noted, {})]))
    return receipt


async def _file_work(undone: str, work: Callable[P, R], *args: P.args, **kw: P.kwargs) -> R:
    """Do what takes long on a disk away from the event loop.

    Raises:
        Unavailable: the disk is full, or refuses; `undone` says what has not happened.
    """
    try:
        return await asyncio.to_thread(work, *args, **kw)
    except OSError as failure:
        raise Unavailable(f"{undone}: {(failure.strerror or 'the disk failed').lower()}") from failure


async def _walk(services: Services, grant: Grant[Any]) -> Verification:
    """Verify the chain as far as it reaches now, some rows a turn: other reads get theirs in between."""
    read = services.database.read
    end = await read(lambda rows: evidence.chain_end(rows, grant))
    walked: Verification | None = None
    while walked is None or (walked.valid and walked.head_seq < end):
        walked = await read(partial(_walk_on, grant, walked, end))
    return walked


def _walk_on(grant: Grant[Any], so_far: Verification | None, end: int, rows: Rows) -> Verification:
    done = 0 if so_far is None else so_far.head_seq
    return evidence.verify_on(rows, grant, so_far, min(end - done, ROWS_A_TURN))


async def _derive(services: Services, grant: Grant[Any], as_of: datetime, *, dry_run: bool, progress: Steps) -> dict[str, Any]:
    await _settle(services, grant)
    org_id = grant.target.id if isinstance(grant.target, Org) else None
    swept = await sweep.derive_all(services.database, as_of, dry_run=dry_run, org_id=org_id, progress=progress)
    await _settle(services, grant, grant.audit("admin.derived", {"dry_run": dry_run}))
    return {"as_of": stamp(as_of), "dry_run": dry_run, **asdict(swept)}


_work = partial(Operation, strict=True, unhurried=True)
OPERATIONS: tuple[Operation, ...] = (
    _work(
        "admin.backup",
        "POST",
        "/v1/admin/backup",
        "Copy the data directory into a new one beside it, on the server's disk.",
        backup_now,
        actions=("admin.backup",),
        answers={200: wire.BACKUP},
    ),
    _work(
        "admin.erase",
        "POST",
        "/v1/admin/erase",
        "Rewrite the store so that no deleted byte is left on the disk.",
        erase_now,
        actions=("admin.erase",),
        answers={200: wire.ERASURE},
    ),
    _work(
        "admin.derive",
        "POST",
        "/v1/admin/derive",
        "Derive every fact again.",
        derive_now,
        actions=("admin.derive",),
        fields=wire.DERIVED,
        answers={200: wire.DERIVATION},
    ),
    _work(
        "admin.verify",
        "POST",
        "/v1/admin/verify",
        "Walk the whole chain of the log.",
        verify_now,
        actions=("admin.verify",),
        answers={200: wire.CHAIN},
    ),
)
