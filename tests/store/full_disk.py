"""A process that writes to a disk which is full at some point, for the tests of durability."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path

from gateway.store.db import Database
from gateway.store.faults import StoreFailed
from gateway.store.writer import Unit
from tests.store.samples import a_row, a_thing


def fill(data: Path, migrations: Path, limit: str) -> None:
    """Write while no file may grow over `limit` bytes, until the store is down or has come back often, and report as JSON."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    database = Database.open(data, migrations=migrations)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    written, failures, sequence = [], [], 0
    while database.healthy and len(failures) < 20:
        name = f"{sequence}"
        sequence += 1
        try:
            database.write(Unit(a_thing(name).run, log=(a_row(name, details={"padding": os.urandom(10_000).hex()}),))).result()
            written.append(name)
        except StoreFailed as error:
            failures.append(str(error))
    os.write(1, json.dumps({"written": written, "failures": failures, "healthy": database.healthy}).encode())
    os._exit(0)


if __name__ == "__main__":
    fill(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
