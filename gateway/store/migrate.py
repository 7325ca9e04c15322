"""Migrations: numbered SQL files, applied in order, each in a transaction, and never changed once applied."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

import duckdb

from gateway.store.faults import StoreRefused
from gateway.store.rows import Rows, Tx

MIGRATIONS = files("gateway.store") / "migrations"
NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


class Migration(NamedTuple):
    """One file."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrate(cursor: duckdb.DuckDBPyConnection, migrations: Traversable, clock: Callable[[], datetime]) -> int:
    """Bring a database up to the last of `migrations`, and return its version.

    Raises:
        StoreRefused: the database is newer than the code, a file is missing in between, or an applied one was changed.
    """
    known = load(migrations)
    rows = Tx(cursor)
    rows.run(
        "CREATE TABLE IF NOT EXISTS schema_version "
        "(version BIGINT PRIMARY KEY, checksum VARCHAR NOT NULL, applied_at TIMESTAMP NOT NULL)"
    )
    done = applied(rows, known)
    for migration in known[done:]:
        cursor.begin()
        cursor.execute(migration.sql)
        rows.run("INSERT INTO schema_version VALUES ($1, $2, $3)", migration.version, migration.checksum, clock())
        cursor.commit()
    if len(known) > done:
        cursor.execute("CHECKPOINT")  # replaying changed tables from the write-ahead log has bugs
    return len(known)


def applied(rows: Rows, known: Sequence[Migration]) -> int:
    """How many of `known` a database has; it changes nothing, and raises `StoreRefused` as `migrate` does."""
    found = rows.all("SELECT version, checksum FROM schema_version ORDER BY version")
    if len(found) > len(known):
        raise StoreRefused(
            f"the database has schema {found[-1][0]}, newer than this program, which knows {len(known)}: install a newer one"
        )
    for migration, (version, checksum) in zip(known, found, strict=False):
        if (version, checksum) != (migration.version, migration.checksum):
            raise StoreRefused(f"the database was made with another `{migration.name}` than this program has")
    return len(found)


def load(migrations: Traversable) -> list[Migration]:
    """Read the files of a directory; raise StoreRefused when they are not numbered from 0001 without a gap."""
    found = sorted(file.name for file in migrations.iterdir() if file.name.endswith(".sql"))
    for number, name in enumerate(found, start=1):
        match = NAME.fullmatch(name)
        if match is None or int(match[1]) != number:
            raise StoreRefused(f"migration `{name}` is not the {number:04d} that has to come next")
    return [Migration(int(name[:4]), name, (migrations / name).read_text("utf-8")) for name in found]
