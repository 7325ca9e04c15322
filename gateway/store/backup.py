"""Backup: a data directory of its own, made from inside while the database serves."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb

from gateway.store.db import Database
from gateway.store.duplicate import Progress, duplicate
from gateway.store.faults import StoreRefused
from gateway.store.files import Files, sync
from gateway.store.log import read_head
from gateway.store.mark import Mark
from gateway.store.rows import Rows


def backup(db: Database, target: Path, progress: Progress = lambda _: None) -> dict[str, int]:
    """Make the directory `target`, with the database and its mark, and return the number of rows a table.

    Writes wait while it is made. To restore, start with `target`, or a copy of it, as the data directory. The names of the
    steps go to `progress`.

    Raises:
        StoreRefused: `target` exists or cannot be made.
        StoreFailed: the copy is not whole.
    """
    try:
        target.mkdir(mode=0o700)
    except OSError as error:
        raise StoreRefused(f"the backup `{target}` cannot be made: {error.strerror}; name a new directory") from error
    try:
        return db.exclusive(lambda connection: _backup(db.files, connection, Files(target.resolve()), progress)).result()
    except BaseException:  # whatever it is, and it goes on: half a backup must not stay
        shutil.rmtree(target)
        raise


def _backup(source: Files, connection: duckdb.DuckDBPyConnection, target: Files, progress: Progress) -> dict[str, int]:
    counts = duplicate(connection, source.fresh, progress)
    progress("move")
    with source.backups.open("a", encoding="utf-8") as known:
        known.write(f"{target.data}\n")
    try:
        shutil.move(source.fresh, target.database)  # DuckDB may write to the data directory only
    finally:
        source.fresh.unlink(missing_ok=True)
    mark = Mark(target.mark)
    mark.write(read_head(Rows(connection)))
    mark.close()
    sync(target.database)
    sync(target.data)
    return counts
