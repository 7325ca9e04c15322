"""A file of secrets on disk: made private, refused when it is not, replaced whole."""

from __future__ import annotations

import os
import stat
from pathlib import Path

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600
OTHERS = stat.S_IRWXG | stat.S_IRWXO


class KeyFileError(Exception):
    """The signing keys cannot be used as they lie on disk; the message says what to do."""


def write_new(path: Path, content: str) -> None:
    """Make the file and its directory, both private.

    Raises:
        KeyFileError: there is one already; it is never overwritten.
    """
    path.parent.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    path.parent.chmod(PRIVATE_DIRECTORY)
    try:
        _write(path, content)
    except FileExistsError as there:
        raise KeyFileError(f"{path} exists already: keys in use are not overwritten") from there
    _sync(path.parent)


def replace(path: Path, content: str) -> None:
    """Put new content in place of the old in one step, so that a crash leaves the one or the other."""
    beside = path.with_suffix(".new")
    beside.unlink(missing_ok=True)
    _write(beside, content)
    beside.replace(path)
    _sync(path.parent)


def read_private(path: Path) -> str:
    """The content of a file that nobody but its owner can reach.

    Raises:
        KeyFileError: missing, a link, or open to the group or to everybody.
    """
    try:
        if path.parent.stat().st_mode & OTHERS:
            raise KeyFileError(f"{path.parent} is open to other users of this machine: chmod 700 {path.parent}")
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as wrong:
        raise KeyFileError(f"{path} cannot be opened ({wrong.strerror}): is this a data directory that was set up?") from wrong
    with os.fdopen(descriptor, encoding="utf-8") as file:
        # Asked of the open file, so that it is the one that is read.
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise KeyFileError(f"{path} is not a file")
        if found.st_mode & OTHERS:
            raise KeyFileError(f"{path} can be read by other users of this machine: chmod 600 {path}")
        return file.read()


def _write(path: Path, content: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
