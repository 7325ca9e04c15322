"""The data directory of a stopped gateway, for what a gateway that runs is asked by another command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.cli.exits import USAGE, CommandError
from gateway.cli.opening import find_settings, opened
from gateway.config import Settings
from gateway.operations.call import Services
from gateway.store.faults import StoreHeld


@contextmanager
def stopped(data: str | None, asks: str, *, accept_missing_mark: bool = False) -> Iterator[Services]:
    """As `opened`; where there is no directory but a URL, or a gateway holds it, the refusal names the command that asks it."""
    try:
        with opened(_settings(data, asks), accept_missing_mark=accept_missing_mark) as services:
            yield services
    except CommandError as wrong:
        if not isinstance(wrong.__cause__, StoreHeld):
            raise
        raise CommandError(f"{wrong}; `peergate {asks}` asks the gateway", wrong.code) from wrong


def _settings(data: str | None, asks: str) -> Settings:
    try:
        return find_settings({"data": data})
    except CommandError as wrong:
        if data is not None or "PEERGATE_URL" not in os.environ or "PEERGATE_DATA" in os.environ:
            raise
        raise CommandError(f"{wrong}; `peergate {asks}` asks the gateway at PEERGATE_URL", USAGE) from wrong
