"""Child processes of a measurement: started with nothing of the caller's settings, and ended by their own id."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import gateway
from gateway.cli.exits import CommandError
from gateway.config import PREFIX

#: Nothing is judged by these; they only keep a broken child from being waited for without end.
MOST_SECONDS_TO_START = 600
MOST_SECONDS_TO_STOP = 60


@dataclass(frozen=True, slots=True)
class Server:
    """A child that listens: where, and how many seconds after its start it said so."""

    process_id: int
    url: str
    seconds: float

    def resident_bytes(self) -> int | None:
        """The memory it holds now; None where the system does not tell."""
        try:
            status = Path(f"/proc/{self.process_id}/status").read_text("ascii")
        except OSError:
            return None
        kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(kilobytes) * 1024

    def processor_seconds(self) -> float | None:
        """The processor time it has used so far, all its threads together; None where the system does not tell."""
        try:
            status = Path(f"/proc/{self.process_id}/stat").read_text("ascii")
        except OSError:
            return None
        user, system = status.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def gateway_on(
    data: Path, *, audit: str = "durable", policies: Path | None = None, store: Path | None = None
) -> Iterator[Server]:
    """`peergate serve` on a data directory that exists, without a rate limit; stopped at the end."""
    command = ["gateway.cli.main", "serve", "--data", str(data), "--port", "0", "--audit", audit, "--rate-limit", "0", "--json"]
    given = [("--policies", policies), ("--store", store)]
    with listening([*command, *(word for flag, path in given if path is not None for word in (flag, str(path)))]) as server:
        yield server


@contextmanager
def listening(module: Sequence[str]) -> Iterator[Server]:
    """A module run with its arguments that prints `{"url": ...}` once it answers.

    Raises:
        CommandError: it ended, or said nothing, before that.
    """
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = start_module(module, errors)
        try:
            said = cast(IO[bytes], process.stdout)
            answered, _, _ = select.select([said], [], [], MOST_SECONDS_TO_START)
            line = said.readline() if answered else b""
            if not line:
                errors.seek(0)
                raise CommandError(f"`{' '.join(module[:2])}` did not start: {errors.read().decode('utf-8', 'replace')[-2_000:]}")
            yield Server(process.pid, json.loads(line)["url"], time.perf_counter() - start)
        finally:
            stop(process)


def start_module(module: Sequence[str], errors: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Start `python -m` with this package, in an environment without settings of a gateway."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    root = str(Path(gateway.__file__).parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH")]))
    command = [sys.executable, "-m", *module]
    return subprocess.Popen(  # noqa: S603  # our own interpreter and module
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a child: asked first, then not."""
    process.terminate()
    try:
        process.communicate(timeout=MOST_SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
