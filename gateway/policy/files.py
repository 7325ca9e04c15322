"""Policy files on disk: all of them or none, and nothing from outside the directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gateway.policy.finding import Finding, PolicyError

SUFFIX = ".cedar"


def read_texts(directory: Path) -> dict[str, str]:
    """Returns the text of each `.cedar` file under `directory` by its path in it, sorted.

    Raises `PolicyError` when there is none, when one cannot be read, and for a link that leads out of the directory or
    to a directory: a forbid that is silently not found is worse than a start that fails.
    """
    texts: dict[str, str] = {}
    findings: list[Finding] = []
    for path in sorted(_paths(directory, findings)):
        name = path.relative_to(directory).as_posix()
        try:
            if not path.resolve().is_relative_to(directory.resolve()):
                findings.append(Finding(name, 0, "", "is a link that leads out of the directory"))
            elif path.is_dir():
                findings.append(Finding(name, 0, "", "is a directory behind a link, or named like a file"))
            else:
                texts[name] = path.read_bytes().decode()
        except (OSError, RuntimeError, UnicodeDecodeError) as error:
            findings.append(Finding(name, 0, "", f"cannot be read: {type(error).__name__}"))
    if not texts and not findings:
        findings.append(Finding(str(directory), 0, "", "holds no policy file"))
    if findings:
        raise PolicyError(findings)
    return texts


def read_schema(path: Path) -> str:
    """Returns the text of a schema; raises `PolicyError` when it cannot be read."""
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError([Finding(str(path), 0, "", f"cannot be read: {type(error).__name__}")]) from error


def _paths(directory: Path, findings: list[Finding]) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        findings.append(Finding(str(error.filename), 0, "", f"cannot be read: {type(error).__name__}"))

    for folder, folders, names in os.walk(directory, onerror=unreadable):
        here = Path(folder)
        yield from (here / name for name in names if name.endswith(SUFFIX))
        yield from (here / name for name in folders if name.endswith(SUFFIX) or (here / name).is_symlink())
