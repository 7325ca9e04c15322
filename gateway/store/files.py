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

    @property
    def backups(self) -> Path:
        """A line for each backup that was ever made of this database, so that an erasure can name what it leaves alone."""
        return self.data / "peergate.backups"

    def clean(self) -> None:
        """Remove what an interrupted backup or rewrite has left behind.

        INVARIANT: `database` is complete whenever this runs, because it is only ever replaced by one rename.
        """
        shred(self.old)
        shred(self.old_wal)
        shred(self.fresh)
        shred(self.fresh.with_name(f"{self.fresh.name}.wal"))
        shutil.rmtree(self.spill, ignore_errors=True)
        sync(self.data)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def shred(path: Path) -> int:
    """Overwrite a file with zeros, read them back, unlink it, and return how many bytes that were; 0 when there is none.

    A file that has another name is in use under that one: it only loses this name.
    """
    if not path.exists():
        return 0
    status = path.stat()
    zeroed = 0
    if status.st_nlink == 1:
        with path.open("r+b", buffering=0) as file:
            for start in range(0, status.st_size, _BLOCK):
                file.write(bytes(min(_BLOCK, status.st_size - start)))
            os.fsync(file.fileno())
            file.seek(0)
            while block := file.read(_BLOCK):
                zeroed += block.count(0)
    path.unlink()
    return zeroed
