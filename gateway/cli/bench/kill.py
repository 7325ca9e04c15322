"""Figure: what a process that is killed while it writes loses of what it had acknowledged."""

from __future__ import annotations

import random
import signal
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, cast

from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.process import start_module
from gateway.cli.output import Progress
from gateway.model.evidence import LogRow
from gateway.store.db import Database
from gateway.store.log import verify
from gateway.store.writer import Unit

TRIALS = 100
CLIENTS = 8
MOST_BEFORE_THE_END = 400
INSERT = """INSERT INTO events (peer_id, id, org_id, event_type, content, content_hash, "at", source, learned)
  VALUES ('bench', $1, 'bench', 'message', '{}', '', $2, 'bench', true)"""
KEPT = "SELECT id FROM events WHERE peer_id = 'bench' AND id IN (SELECT id FROM log)"


@dataclass(frozen=True, slots=True)
class Trials:
    """What a number of kills did: changes acknowledged, how many of those are gone, and how often the chain did not hold."""

    kills: int
    acknowledged: int
    lost: int
    chains_broken: int


def kill(plan: Plan, shown: Progress) -> list[Figure]:
    """Kill -9 at random moments on one growing store, which is opened and read whole after each. It is no loss of power."""
    with tempfile.TemporaryDirectory(prefix="peergate-bench-") as directory:
        done = kill_trials(Path(directory) / "data", plan.size(TRIALS, least=2), shown)
    return [
        Figure(
            "kill",
            f"acknowledged changes lost, or chains broken, by {done.kills} times kill -9 under write load",
            "records",
            done.lost + done.chains_broken,
            {"kills": done.kills, "acknowledged": done.acknowledged, "lost": done.lost, "chain_valid": not done.chains_broken},
            must=at_most(0),
        )
    ]


def kill_trials(data: Path, trials: int, shown: Progress) -> Trials:
    """Kill a writing process so many times, and hold each store that it leaves to what it had acknowledged."""
    chance = random.Random(1)  # noqa: S311  # a repeatable choice, not a secret
    acknowledged: set[str] = set()
    lost: set[str] = set()
    broken = 0
    Database.create(data).close()
    for trial in range(trials):
        shown(trial + 1, trials)
        acknowledged |= killed_writer(data, trial, after=chance.randrange(1, MOST_BEFORE_THE_END))
        database = Database.open(data)
        try:
            lost |= acknowledged - {id_ for (id_,) in database.read_sync(lambda rows: rows.all(KEPT))}
            broken += not database.read_sync(verify).valid
        finally:
            database.close()
    return Trials(trials, len(acknowledged), len(lost), broken)


def killed_writer(data: Path, trial: int | str, *, after: int) -> set[str]:
    """Kill a writing process once it has acknowledged `after` changes, and return the names of all that it has."""
    process = start_module(["gateway.cli.bench.kill", str(data), str(trial)])
    said = cast(IO[bytes], process.stdout)
    names = [said.readline().strip() for _ in range(after)]
    process.kill()
    rest, _ = process.communicate()
    if process.returncode != -signal.SIGKILL:
        raise RuntimeError("the writing process ended by itself")
    # Of the last line only a part may have come through; what was not said was not acknowledged.
    whole = rest[: rest.rfind(b"\n") + 1].split()
    return {name.decode() for name in (*names, *whole) if name}


def write_for_ever(data: str, trial: str) -> None:
    """Write from several sides at once, and say of each change that it is acknowledged."""
    database = Database.open(Path(data))
    number = 0
    while True:
        names = [f"{trial}-{number + client}" for client in range(CLIENTS)]
        number += CLIENTS
        futures = [database.write(_change(name, datetime.now(UTC))) for name in names]
        for name, future in zip(names, futures, strict=True):
            future.result()
            print(name, flush=True)


def _change(name: str, at: datetime) -> Unit[int]:
    """A row of its own, and one in the log."""
    return Unit(lambda tx: tx.run(INSERT, name, at), log=(_row(name, at),))


def _row(name: str, at: datetime) -> LogRow:
    return LogRow(
        kind="audit",
        id=name,
        at=at,
        org_id="bench",
        principal_type="Operator",
        principal_id="local",
        action="bench.write",
        resource_type="Installation",
        resource_id="local",
        outcome=None,
        deny_kind=None,
        policies=(),
        bundle="",
        data_version=0,
        slices=(),
        request_id="",
        details={},
    )


if __name__ == "__main__":
    write_for_ever(*sys.argv[1:])
