"""Opening a data directory for one command, and what each refusal ends the command with."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gateway import wiring
from gateway.authn.keyfile import KeyFileError
from gateway.cli.exits import FINDING, REFUSED, USAGE, CommandError
from gateway.config import ConfigError, Settings, load
from gateway.errors import GatewayError, Invalid
from gateway.operations.call import Services
from gateway.policy.finding import PolicyError
from gateway.policy.foreign.served import StoreUnfit
from gateway.store.faults import StoreBusy, StoreFailed, StoreRefused
from gateway.web.server import ServeError


def find_settings(flags: Mapping[str, object], file: Path | None = None) -> Settings:
    """Settings from a file (the one in `PEERGATE_CONFIG` when none is given), then `PEERGATE_*` variables, then flags."""
    named = os.environ.get("PEERGATE_CONFIG")
    with refusals(), _unreachable():
        return load(flags, os.environ, file or (Path(named) if named else None))


@contextmanager
def opened(settings: Settings, *, create: bool = False, accept_missing_mark: bool = False) -> Iterator[Services]:
    """The services of a data directory, closed with everything acknowledged on disk. Files made meanwhile are private."""
    with refusals(), _private_files():
        with _unreachable():
            if create:
                wiring.load_bundle(settings)  # before anything is made: without policies nothing could use it
                wiring.create_data(settings.data)
            else:
                wiring.refuse_unfinished(settings.data)
            services = wiring.open_services(settings, accept_missing_mark=accept_missing_mark)
        try:
            yield services
        finally:
            services.database.close()


@contextmanager
def _private_files() -> Iterator[None]:
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what may go wrong into a sentence and an exit code."""
    try:
        yield
    except (ConfigError, Invalid) as wrong:
        raise CommandError(str(wrong), USAGE) from wrong
    except (StoreRefused, StoreFailed, StoreBusy, KeyFileError) as refused:
        raise CommandError(str(refused), REFUSED) from refused
    except StoreUnfit as wrong:
        raise CommandError(f"the store {wrong.directory} does not load:\n{wrong}", REFUSED) from wrong
    except PolicyError as wrong:
        raise CommandError(f"the policies do not load:\n{wrong}", REFUSED) from wrong
    except ServeError as wrong:
        raise CommandError(str(wrong), FINDING) from wrong
    except GatewayError as wrong:
        raise CommandError(wrong.detail, FINDING) from wrong


@contextmanager
def _unreachable() -> Iterator[None]:
    """As `refusals`, for what the system says while files are found and opened, and for nothing after that."""
    try:
        yield
    except OSError as wrong:
        raise CommandError(f"{wrong.filename or 'the data directory'}: {wrong.strerror or wrong}", REFUSED) from wrong
