"""Erasure: the database moves to a new file, and the bytes of the old one are overwritten.

DELETE, CHECKPOINT, VACUUM and UPDATE all leave the bytes of a row in the file; only a copy is free of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from gateway.store.db import Database
from gateway.store.duplicate import Progress, duplicate
from gateway.store.files import Files, shred, sync


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a rewrite did.

    `tables` are the rows that stay, a table; `bytes_verified` the bytes of the old file and its write-ahead log that were
    overwritten and read back as zeros. `backups_not_covered` are the backups ever made, wherever they are now.
    """

    tables: Mapping[str, int]
    bytes_before: int
    bytes_after: int
    bytes_verified: int
    backups_not_covered: tuple[str, ...]


def rewrite(db: Database, progress: Progress = lambda _: None) -> Receipt:
    """Move the database to a new file that holds only the rows of now; reads and writes wait meanwhile.

    The rows to be erased have been deleted, and that is committed, before this is called. The process may die at any step:
    the old or the new file is there, whole, and the next `Database.open` clears the rest away. Needs a file system with hard
    links. The names of the steps go to `progress`.

    Raises:
        StoreFailed: the copy cannot be made or is not whole, or the database could not be opened again.
        OSError: the disk is full, or the file system has no hard links; the database is as it was.
    """
    return db.exclusive(lambda connection: _rewrite(db, connection, progress)).result()


def _rewrite(db: Database, connection: duckdb.DuckDBPyConnection, progress: Progress) -> Receipt:
    files = db.files
    before = files.database.stat().st_size
    _shred(files)  # what a rewrite that failed could not
    try:
        progress("link log")
        if files.wal.exists():
            os.link(files.wal, files.old_wal)  # the checkpoint unlinks it, with what it says; this name keeps it for shredding
        tables = duplicate(connection, files.fresh, progress)
        progress("close")
        db.detach()
        try:
            progress("link")
            os.link(files.database, files.old)
            progress("rename")
            files.fresh.rename(files.database)
            sync(files.data)
            shutil.rmtree(files.spill, ignore_errors=True)
        finally:
            progress("open")
            db.attach()
        progress("shred")
    finally:
        verified = _shred(files)
    known = files.backups.read_text("utf-8").splitlines() if files.backups.exists() else []
    return Receipt(tables, before, files.database.stat().st_size, verified, tuple(known))


def _shred(files: Files) -> int:
    verified = shred(files.old) + shred(files.old_wal)
    shred(files.fresh)
    sync(files.data)
    return verified
