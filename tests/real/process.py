"""A command of the product as a child process, as people start it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "gateway.cli.main")
#: Far more than anything takes; a process that hangs ends the test with its own words instead of never.
PATIENCE_SECONDS = 120
#: A line of the request log; what is no answer is none, so that faults are never passed over.
_REQUEST = re.compile(r'\{"time":"[^"]*","level":"info","request_id":"[^"]*","operation":"[^"]*","status":[1-4][0-9]{2},')


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without settings of the product and without anybody's stored login."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PEERGATE_")}
    return {**kept, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": "/nonexistent", **more}


def run(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=clean_environment(**environment),
        cwd=cwd or ROOT,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


class Server:
    """A process that serves; `first` is its first line on standard output."""

    def __init__(self, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> None:
        self._errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=clean_environment(**(environment or {})),
            cwd=ROOT,
        )
        assert self.process.stdout is not None
        self.first = self.process.stdout.readline()
        if not self.first:
            self.process.wait(PATIENCE_SECONDS)
            raise AssertionError(f"it did not start: {self.errors()}")

    @classmethod
    def serve(cls, data: Path, *arguments: str | Path) -> Self:
        return cls("serve", "--data", data, "--port", "0", "--json", *arguments)

    @property
    def url(self) -> str:
        url: str = self.said["url"]
        return url

    @property
    def said(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.first)
        return said

    def errors(self) -> str:
        """What it wrote to its standard error, but for the lines that tell of requests."""
        self._errors.seek(0)
        return "".join(line for line in self._errors if not _REQUEST.match(line))

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE_SECONDS)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def close(self) -> None:
        """End it, whatever state it is in."""
        if self.process.poll() is None:
            self.process.kill()
        self.stop()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def init(data: Path, *more: str) -> dict[str, str]:
    """Make a data directory and return its owner's credentials."""
    made = run("init", "--data", data, "--json", *more)
    assert made.returncode == 0, made.stderr
    owner: dict[str, str] = json.loads(made.stdout)["credentials"]["owner"]
    return owner
