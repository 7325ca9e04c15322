"""What a process is made of: settings in, services out; and the first organisation of a new data directory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path

from gateway.access.door import Access
from gateway.authn.authenticator import Authenticator
from gateway.authn.issuer import find_issuer
from gateway.authn.keys import mint_key, mint_password
from gateway.authn.passwords import hash_password
from gateway.authn.signer import FILE, Signer
from gateway.config import ConfigError, Settings
from gateway.embedding.choice import find_embedder
from gateway.model.ids import new_id
from gateway.model.records import Credential, Human, Org, OrgSettings
from gateway.operations.call import Services
from gateway.operations.contexts import ContextCache
from gateway.operations.cursor import cursor_key
from gateway.operations.registry import OPERATIONS
from gateway.policy import guardrails
from gateway.policy.aside import load as aside_load
from gateway.policy.bundle import SCHEMA, Bundle
from gateway.policy.cases import CaseError, load_cases, run_cases
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines, Staged
from gateway.policy.files import read_schema, read_texts
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.foreign.served import Served
from gateway.policy.slice import SliceError
from gateway.store import installation
from gateway.store.db import Database, refuse_unfit
from gateway.store.faults import StoreRefused
from gateway.store.files import Files, sync
from gateway.store.loading import load_state, loaded
from gateway.store.lock import Lock
from gateway.store.rows import Rows, Tx
from gateway.store.writer import Unit

__all__ = ["OPERATIONS", "NewOrg", "clock", "create_data", "load_bundle", "open_services", "refuse_unfinished", "set_up_org"]

#: Lies in a data directory from its first moment until it holds an organisation. A directory is not made beside its place
#: and moved there, because that place may be a mount point.
UNFINISHED = "peergate.unfinished"

_log = logging.getLogger("gateway.wiring")


@dataclass(frozen=True, slots=True)
class NewOrg:
    """A new organisation and its owner's credentials, which are shown once and kept nowhere."""

    org_id: str
    owner_id: str
    email: str
    password: str = field(repr=False)
    api_key: str = field(repr=False)


def clock() -> datetime:
    """The time now, aware, in UTC."""
    return datetime.now(UTC)


def create_data(data: Path) -> None:
    """Make a data directory: an empty store and the signing keys, readable by their owner only.

    It is finished by `set_up_org`. One that was interrupted before is begun again: nobody has a credential for it.

    Raises:
        StoreRefused: there is one already, or another process holds it.
        KeyFileError: there are keys already.
    """
    unfinished = data / UNFINISHED
    if unfinished.exists():
        _discard(data)
    Database.refuse_existing(data)
    Signer.refuse_existing(data)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished.touch(mode=0o600)
    sync(data)
    Database.create(data).close()
    Signer.create(data)


def refuse_unfinished(data: Path) -> None:
    """Make sure that a data directory was made to its end.

    Raises:
        StoreRefused: there is nothing, or it has no organisation, and so nobody who could use it.
    """
    if (data / UNFINISHED).exists():
        raise StoreRefused(f"`{data}` has no organisation yet: finish it with `peergate init --data {data}`")
    refuse_unfit(data)


def _discard(data: Path) -> None:
    files = Files(data)
    lock = Lock(files.lock)
    try:
        for made in (files.database, files.wal, files.mark, data / FILE):
            made.unlink(missing_ok=True)
    finally:
        lock.release()


def open_services(
    settings: Settings,
    *,
    now: Callable[[], datetime] = clock,
    accept_missing_mark: bool = False,
    bundle: Bundle | None = None,
) -> Services:
    """Open a data directory and wire everything over it; `bundle` when the policies are loaded already.

    Raises:
        StoreRefused: the store cannot be opened; the sentence says why.
        PolicyError: the policies do not load, with every finding.
        KeyFileError: the signing keys are missing or readable by others.
        ConfigError: the embedder or the token issuer that the settings ask for cannot be had.
        StoreUnfit: the store to be served beside our own does not load.
    """
    bundle, started = bundle or load_bundle(settings), now()
    embedder = find_embedder(settings)
    foreign = Served.load(settings.store) if settings.store is not None else None
    signer = Signer.load(settings.data)
    database = Database.open(settings.data, accept_missing_mark=accept_missing_mark)
    with ExitStack() as opened:
        opened.callback(database.close)
        state = database.state
        database.read_sync(lambda rows: load_state(rows, state), snapshot=True)
        issuer = find_issuer(settings, len(state.orgs), started)
        salt, first_seen = installation.read_salt(database)
        if first_seen is not None:
            database.write(Unit(lambda tx: installation.keep_salt(tx, first_seen))).result()
        policies = list(state.org_policies.values())
        deciding = _promoted(settings, database, bundle)
        engines = Engines(PolicyEngine(deciding, salt=salt), loaded_at=started)
        refused = None if deciding is bundle else _failing(settings, bundle)
        if refused is not None:
            _log.error("the policies on the disk do not wait in the shadow, and those before decide on: %s", refused)
            engines.fail(refused, started)
        if deciding is bundle or refused is not None:
            engines.put_all(engines.build_all(policies, started))
        else:
            staged = Staged(engines.base.sibling(bundle), started)
            engines.stage(staged, engines.build_all(policies, started, beside=staged, orgs=list(state.orgs)))
        for kept in (bundle, deciding, *engines.bundles()):
            database.write(Unit(partial(_keep, kept, started))).result()

        def catch_up(rows: Rows) -> None:
            state.take_over(loaded(rows))
            policies, beside = list(state.org_policies.values()), engines.staged
            engines.put_all(engines.build_all(policies, now(), beside=beside, orgs=list(state.orgs)))

        database.on_reopen(catch_up)
        services = Services(
            settings=settings,
            clock=now,
            database=database,
            state=state,
            access=Access(engines, state),
            authenticator=Authenticator(
                signer,
                state,
                rate_limit=settings.rate_limit,
                address_limit=settings.address_limit,
                metrics_token=settings.metrics_token,
                issuer=issuer,
            ),
            contexts=ContextCache(),
            cursor_key=cursor_key(salt),
            policies_at=_policies_at(settings),
            load_policies=lambda: (load_bundle(settings, aside=True), load_cases(_policies_at(settings))),
            embedder=embedder,
            foreign=foreign,
        )
        opened.pop_all()
        return services


def load_bundle(settings: Settings, *, aside: bool = False) -> Bundle:
    """The policies that decide: the directory in the settings, else the ones shipped with the product.

    The schema and the guardrails are always the shipped ones: a group of actions that lost its members would disarm the
    guardrails on it as surely as a changed text. `aside`, others are answered meanwhile.

    Raises:
        PolicyError: anything in them is wrong, or a guardrail is missing or not as it was shipped.
        ConfigError: there is no such directory, or another schema lies with it.
    """
    root, own = shipped(), settings.policies
    if own is not None:
        _check_directory(own, root / SCHEMA)
    load = aside_load if aside else guardrails.load
    texts = read_texts(root / "policies")
    return load(read_schema(root / SCHEMA), texts if own is None else read_texts(own), texts)


def _check_directory(own: Path, schema: Path) -> None:
    if not own.is_dir():
        raise ConfigError(f"`policies`: {own} is not a directory")
    for other in (own / SCHEMA, own.parent / SCHEMA):
        if other.is_file() and not _same(other, schema):
            raise ConfigError(f"`policies`: {other} is not the schema that this gateway decides by, which cannot be replaced")


def _same(other: Path, schema: Path) -> bool:
    return other.stat().st_size == schema.stat().st_size and other.read_bytes() == schema.read_bytes()


def _promoted(settings: Settings, database: Database, bundle: Bundle) -> Bundle:
    """What decides at the start: the policies on the disk; with `reload = shadow` those that a server decided by last, where
    they still stand beside the schema and the guardrails of this version."""
    noted = database.read_sync(installation.last_deciding) if settings.reload == "shadow" else None
    if noted is None or noted[0] == bundle.hash:
        return bundle
    try:
        last = Bundle.from_body(noted[1])
        guardrails.check_guardrails(last, bundle)
    except PolicyError:
        return bundle
    return last if (last.hash, last.schema_hash) == (noted[0], bundle.schema_hash) else bundle


def _failing(settings: Settings, bundle: Bundle) -> PolicyError | None:
    """Why policies must not wait to be promoted: cases that fail, as at a reload; None when they may."""
    try:
        results = run_cases(bundle, load_cases(_policies_at(settings)))
    except (CaseError, SliceError) as wrong:
        return PolicyError([Finding("", 0, "", str(wrong))])
    failing = [Finding(r.case.file, 0, "", f"`{r.case.name}` {why}") for r in results for why in r.failures]
    return PolicyError(failing) if failing else None


def _keep(bundle: Bundle, now: datetime, tx: Tx) -> None:
    installation.keep_bundle(tx, bundle.hash, bundle.body(), now)


def _policies_at(settings: Settings) -> Path:
    return settings.policies or shipped() / "policies"


def shipped() -> Path:
    """Where the product's own schema and policies lie: in the checkout, or inside the installed package."""
    package = Path(str(files("gateway")))
    installed = package / "_bundle"
    return installed if installed.is_dir() else package.parent


def set_up_org(services: Services, *, name: str, email: str) -> NewOrg:
    """Add an organisation with one owner, and return the owner's credentials."""
    now = services.clock()
    org = Org(new_id(), name, OrgSettings(), now)
    password = mint_password()
    owner = Human(
        id=new_id(),
        org_id=org.id,
        email=email,
        display_name=None,
        role="owner",
        password_hash=hash_password(password),
        totp_secret=None,
        totp_confirmed=False,
        totp_last_step=None,
        generation=1,
        created_at=now,
    )
    secret, hashed = mint_key("1ck_")
    key = Credential(new_id(), org.id, "Human", owner.id, "first key", hashed, now, None)
    services.database.write(Unit(lambda tx: installation.add_org(tx, org, owner, key), solo=True)).result()
    (services.settings.data / UNFINISHED).unlink(missing_ok=True)
    return NewOrg(org.id, owner.id, email, password, secret)
