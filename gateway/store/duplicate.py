"""Duplicate of the database: the rows that are there now in a new file, without a trace of those that were."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import duckdb

from gateway.store.faults import StoreFailed
from gateway.store.files import shred, sync
from gateway.store.rows import Row, Rows

Progress = Callable[[str], None]


def duplicate(connection: duckdb.DuckDBPyConnection, target: Path, progress: Progress) -> dict[str, int]:
    """Copy the database to the new file `target`, on disk when this returns, and return the number of rows a table.

    Raises:
        StoreFailed: the copy cannot be made (a full disk, say), or it differs in tables, columns, constraints, indexes or
            numbers of rows.
    """
    rows = Rows(connection)
    progress("checkpoint")
    connection.execute("FORCE CHECKPOINT")
    _remove(target)
    path = str(target).replace("'", "''")
    connection.execute(f"ATTACH '{path}' AS fresh")
    try:
        progress("copy")
        connection.execute("COPY FROM DATABASE peergate TO fresh")
        progress("compare")
        counts = _counts(rows, "peergate")
        if _counts(rows, "fresh") != counts or _shape(rows, "fresh") != _shape(rows, "peergate"):
            raise StoreFailed("the copy differs from the database: it is not used")
        connection.execute("DETACH fresh")
        sync(target)
    except BaseException as error:  # whatever it is, and it goes on: half a copy must not stay
        with suppress(duckdb.Error):  # the error that counts is on its way
            connection.execute("DETACH fresh")
        _remove(target)
        if isinstance(error, duckdb.Error):
            raise StoreFailed(f"the database cannot be copied: {str(error).partition(chr(10))[0]}") from error
        raise
    return counts


SHAPE = """
SELECT 'column', table_name, column_name, data_type || coalesce(' ' || column_default, '') || is_nullable
FROM duckdb_columns() WHERE database_name = $1 AND NOT internal
UNION ALL
SELECT 'constraint', table_name, constraint_type, constraint_text FROM duckdb_constraints() WHERE database_name = $1
UNION ALL
SELECT 'index', table_name, index_name, sql FROM duckdb_indexes() WHERE database_name = $1
ORDER BY ALL"""
TABLES = "SELECT table_name FROM duckdb_tables() WHERE database_name = $1 AND NOT internal ORDER BY table_name"


def _remove(target: Path) -> None:
    """Leave nothing of a copy that is not whole: what it holds may be erased later."""
    shred(target)
    shred(target.with_name(f"{target.name}.wal"))


def _shape(rows: Rows, database: str) -> list[Row]:
    return rows.all(SHAPE, database)


def _counts(rows: Rows, database: str) -> dict[str, int]:
    names = [name for (name,) in rows.all(TABLES, database)]
    return {name: rows.value(f'SELECT count(*) FROM {database}.main."{name}"') for name in names}  # noqa: S608  # our own names
