"""Trials of durability: a process that writes, is killed in the middle, and is held to what it had acknowledged."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gateway.store.db import Database
from gateway.store.faults import StoreFailed
from gateway.store.log import verify
from gateway.store.writer import Unit
from tests.store.samples import a_row, a_thing, logged, things

CLIENTS = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a number of kills did: rows acknowledged, rows lost of those, and whether the chain held each time."""

    acknowledged: int
    lost: int
    chain_held: bool


def kill_trials(data: Path, migrations: Path, *, trials: int, seed: int = 1) -> Outcome:
    """Kill a writing process `trials` times at random moments, on one growing database."""
    chance = random.Random(seed)
    acknowledged: set[str] = set()
    lost: set[str] = set()
    held = True
    Database.create(data, migrations=migrations).close()
    for trial in range(trials):
        acknowledged |= killed_writer(data, migrations, f"{trial}", after=chance.randrange(1, 400))
        database = Database.open(data, migrations=migrations)
        lost |= acknowledged - set(logged(database)) | acknowledged - set(things(database))
        held = held and database.read_sync(verify).valid
        database.close()
    return Outcome(len(acknowledged), len(lost), held)


def killed_writer(data: Path, migrations: Path, name: str, *, after: int) -> set[str]:
    """Kill a writing process once it has acknowledged `after` changes, and return the names of all that it has."""
    command = [sys.executable, "-m", "tests.store.trials", "hammer", str(data), str(migrations), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        names = [process.stdout.readline().strip() for _ in range(after)]
        process.kill()
        names += process.stdout.read().split()
    assert process.returncode == -signal.SIGKILL
    return set(names)


def hammer(data: Path, migrations: Path, name: str) -> None:
    """Write for ever from `CLIENTS` sides, and say so of each change that is acknowledged."""
    database = Database.open(data, migrations=migrations)
    sequence = 0
    while True:
        names = [f"{name}-{sequence + client}" for client in range(CLIENTS)]
        sequence += CLIENTS
        futures = [database.write(Unit(a_thing(each).run, log=(a_row(each),))) for each in names]
        for each, future in zip(names, futures, strict=True):
            future.result()
            os.write(1, f"{each}\n".encode())


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
    {"hammer": hammer, "fill": fill}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
