"""A child: a process of its own that reads texts of policies and says what is wrong with them, whatever becomes of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gateway.policy.finding import Finding

ROOT = Path(__file__).parents[2]


def ask(command: Sequence[str], given: str, *, seconds: float) -> list[Finding]:
    """Returns what `python` with the arguments of a command writes as findings, `given` a text to read.

    One that has not ended after `seconds` is ended; that, and to end otherwise than well, is a finding too.
    """
    try:
        # Nothing of our environment is handed down: a key may be in it.
        done = subprocess.run(  # noqa: S603  # the command is ours, and what is given is only ever its input
            [sys.executable, *command], input=given.encode(), capture_output=True, timeout=seconds, cwd=ROOT, env={}, check=False
        )
    except subprocess.TimeoutExpired:
        return [Finding("", 0, "", f"it takes longer than {seconds} s to read")]
    if done.returncode != 0:
        return [Finding("", 0, "", "the process that read it has died of it")]
    return [Finding(**finding) for finding in json.loads(done.stdout)]
