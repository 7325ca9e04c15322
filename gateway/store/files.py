"""Files of a data directory, and what may be done to them while no database has them open."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Files:
    """The paths of one data directory. DuckDB names the write-ahead log and the spill directory after the database."""

    data: Path

    @property
    def database(self) -> Path:
        return self.data / "peergate.duckdb"

    @property
    def wal(self) -> Path:
        return self.data / "peergate.duckdb.wal"

    @property
    def spill(self) -> Path:
        return self.data / "peergate.duckdb.tmp"

    @property
    def mark(self) -> Path:
        return self.data / "peergate.mark"

    @property
    def lock(self) -> Path:
        return self.data / "peergate.lock"

    @property
    def fresh(self) -> Path:
        """The copy that is being written, by a backup or a rewrite; complete only once it has been moved."""
        return self.data / "peergate.fresh.duckdb"

    @property
    def old(self) -> Path:
        """The database that a rewrite has replaced, until it is shredded."""
        return self.data / "peergate.old.duckdb"

    @property
    def old_wal(self) -> Path:
        return self.data / "peergate.old.wal"

    def clean(self) -> None:
        """Remove what an interrupted backup or rewrite has left behind.

        INVARIANT: `database` is complete whenever this runs, because it is only ever replaced by one rename.
        """
        for left, live in ((self.old, self.database), (self.old_wal, self.wal)):
            shred(left, unless=live)
        for path in (self.fresh, self.data / f"{self.fresh.name}.wal"):
            path.unlink(missing_ok=True)
        shutil.rmtree(self.data / f"{self.fresh.name}.tmp", ignore_errors=True)
        shutil.rmtree(self.spill, ignore_errors=True)
        sync(self.data)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def shred(path: Path, *, unless: Path) -> None:
    """Overwrite a file with zeros and unlink it; only unlink it when it is a second name of the file `unless`."""
    if not path.exists():
        return
    if not (unless.exists() and path.samefile(unless)):
        with path.open("r+b", buffering=0) as file:
            for start in range(0, path.stat().st_size, _BLOCK):
                file.write(bytes(min(_BLOCK, path.stat().st_size - start)))
            os.fsync(file.fileno())
    path.unlink()
