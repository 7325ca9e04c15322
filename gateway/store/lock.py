"""Lock on a data directory: our own `flock` on a side file.

DuckDB locks its file with POSIX `fcntl`, which any `open(db).close()` in the same process releases; ours it does not.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from gateway.store.faults import StoreHeld


class Lock:
    """A held lock; it ends with `release` or with the process."""

    def __init__(self, path: Path) -> None:
        """Take the lock at `path`; raise `StoreHeld` when another process, or this one, holds it."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise StoreHeld(
                f"another process holds the data directory `{path.parent}`: stop it, or use its HTTP interface"
            ) from None

    def release(self) -> None:
        """Let the next process in."""
        os.close(self._descriptor)
