"""Policy files on disk: all of them or none, and nothing from outside the directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from gateway.policy.finding import Finding, PolicyError

SUFFIX = ".cedar"
#: Of one file, and of all that are read from a directory together.
FILE_BYTES, DIRECTORY_BYTES = 8 * 1024 * 1024, 64 * 1024 * 1024


class FileRefused(ValueError):
    """Something on the disk is no file that may be read; the message says why."""


def read(path: Path, most: int = FILE_BYTES) -> bytes:
    """Returns what a file holds.

    Raises `FileRefused` for what is not a regular file, which reading could wait for without end, and for one of more bytes
    than `most`, before any is read; `OSError` when it cannot be read.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise FileRefused("is not a regular file")
        content = file.read(most + 1) if found.st_size <= most else None
    if content is None or len(content) > most:
        raise FileRefused(f"is longer than {most} bytes")
    return content


def check_total(paths: Iterable[Path]) -> None:
    """Raises `FileRefused` when files are too large together; each is looked for, and none is read."""
    if sum(path.stat().st_size for path in paths if path.is_file()) > DIRECTORY_BYTES:
        raise FileRefused(f"the files together are longer than {DIRECTORY_BYTES} bytes")


def read_texts(directory: Path) -> dict[str, str]:
    """Returns the text of each `.cedar` file under `directory` by its path in it, sorted.

    Raises `PolicyError` when there is none, when one cannot be read, and for a link that leads out of the directory or
    to a directory: a forbid that is silently not found is worse than a start that fails.
    """
    texts: dict[str, str] = {}
    findings: list[Finding] = []
    left = DIRECTORY_BYTES
    for path in sorted(_paths(directory, findings)):
        name = path.relative_to(directory).as_posix()
        try:
            if (shown := name.encode(errors="backslashreplace").decode()) != name:
                findings.append(Finding(shown, 0, "", "has a name that is no unicode text"))
            elif not path.resolve().is_relative_to(directory.resolve()):
                findings.append(Finding(name, 0, "", "is a link that leads out of the directory"))
            elif path.is_dir():
                findings.append(Finding(name, 0, "", "is a directory behind a link, or named like a file"))
            else:
                content = read(path)
                left -= len(content)
                if left < 0:
                    findings.append(Finding(name, 0, "", f"makes all files together longer than {DIRECTORY_BYTES} bytes"))
                    break
                texts[name] = content.decode()
        except FileRefused as refused:
            findings.append(Finding(name, 0, "", str(refused)))
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
        return read(path).decode()
    except FileRefused as refused:
        raise PolicyError([Finding(str(path), 0, "", str(refused))]) from refused
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError([Finding(str(path), 0, "", f"cannot be read: {type(error).__name__}")]) from error


def _paths(directory: Path, findings: list[Finding]) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        findings.append(Finding(str(error.filename), 0, "", f"cannot be read: {type(error).__name__}"))

    for folder, folders, names in os.walk(directory, onerror=unreadable):
        here = Path(folder)
        yield from (here / name for name in names if name.endswith(SUFFIX))
        yield from (here / name for name in folders if name.endswith(SUFFIX) or (here / name).is_symlink())
