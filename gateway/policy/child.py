"""A child: a process of its own that reads texts of policies and says what is wrong with them, whatever becomes of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from gateway.policy.finding import Finding, PolicyError

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
        return [_finding(f"it was not read within {seconds} s")]
    if done.returncode == -signal.SIGXCPU:
        return [_finding("it takes longer to read than it may")]
    if done.returncode != 0:
        return [_finding("the process that read it has died of it")]
    return _findings(done.stdout)


def answer(check: Callable[..., object], *, most: int | None = None) -> None:
    """As a child: reads what is given from standard input, and writes at `most` so many findings of a check of it, which
    raises `PolicyError`, to standard output."""
    given = json.load(sys.stdin)
    findings: tuple[Finding, ...] = ()
    try:
        check(**given)
    except PolicyError as refused:
        findings = refused.findings
    sys.stdout.write(json.dumps([asdict(finding) for finding in findings[:most]]))


def _findings(written: bytes) -> list[Finding]:
    """What a child wrote; only an empty list says that nothing is wrong."""
    try:
        match json.loads(written):
            case list(found):
                return [Finding(**finding) for finding in found]
    except (ValueError, TypeError):
        pass
    return [_finding("the process that read it has not said what it found")]


def _finding(message: str) -> Finding:
    return Finding("", 0, "", message)
