"""Rows of the database as Python values, and the transaction that changes them.

Columns are TIMESTAMP and hold UTC; callers give and get aware datetimes. Both conversions happen here and nowhere else.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import duckdb

from gateway.model.evidence import LogRow
from gateway.store.log import Entry, encode
from gateway.store.state import State

Row = tuple[Any, ...]

PARSED_LIMIT = 1_000
# In a slice an id stands as exactly this text, as the log explains where it stores them.
DELETE_SLICES = """DELETE FROM slices WHERE hash IN (SELECT hash FROM
  (SELECT hash, unnest(regexp_extract_all(body, '"id":"([^"]*)"', 1)) AS id FROM slices) named
  WHERE id IN (SELECT unnest($1::VARCHAR[])))"""
_PARSED: dict[str, duckdb.Statement] = {}


class Rows:
    """Reads through one cursor. A statement ends the iteration of the one before it."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def all(self, sql: str, *params: object) -> list[Row]:
        """Return every row."""
        # Never `fetchone`: a result that is not read to its end keeps its transaction open, which holds checkpoints up.
        with self._guard():
            times = self._execute(sql, params)
            return _aware(self._cursor.fetchall(), times)

    def one(self, sql: str, *params: object) -> Row | None:
        """Return the first row, or None when there is none."""
        return next(iter(self.all(sql, *params)), None)

    def value(self, sql: str, *params: object) -> Any:
        """Return the first column of the first row, or None when there is none."""
        row = self.one(sql, *params)
        return None if row is None else row[0]

    def batches(self, sql: str, *params: object, size: int = 1_000) -> Iterator[list[Row]]:
        """Yield the rows in lists of up to `size`, without holding them all in memory."""
        with self._guard():
            times = self._execute(sql, params)
            while batch := self._cursor.fetchmany(size):
                yield _aware(batch, times)

    def _execute(self, sql: str, params: Sequence[object]) -> list[int]:
        """Run one statement and return the positions of its TIMESTAMP columns."""
        self._cursor.execute(_parsed(self._cursor, sql), [_naive(value) for value in params])
        times = []
        for position, (_, kind, *_) in enumerate(self._cursor.description or ()):
            if kind.id == "timestamp":
                times.append(position)
            elif kind.id in {"list", "array", "struct", "map"} and "TIMESTAMP" in str(kind):
                raise TypeError(f"a column of type `{kind}` would give times without a zone: select them as rows")
        return times

    @contextmanager
    def _guard(self) -> Iterator[None]:
        yield


class Tx(Rows):
    """One transaction of the writer. What a unit does through it is done again when its batch has to be retried."""

    __slots__ = ("_queued", "callbacks", "changes", "entries", "failure", "state")

    def __init__(self, cursor: duckdb.DuckDBPyConnection, state: State | None = None) -> None:
        """`state` is what is held in memory: read it here, change it only in `after_commit`."""
        super().__init__(cursor)
        self.state = State() if state is None else state
        self.entries: list[Entry] = []
        self.callbacks: list[Callable[[], None]] = []
        self.failure: duckdb.Error | None = None
        self.changes = 0
        self._queued: dict[str, list[list[object]]] = {}

    def all(self, sql: str, *params: object) -> list[Row]:
        """Return every row, what was queued before included."""
        if self._queued:
            self.flush()
        return super().all(sql, *params)

    def batches(self, sql: str, *params: object, size: int = 1_000) -> Iterator[list[Row]]:
        """Yield the rows in lists of up to `size`, what was queued before included."""
        self.flush()
        return super().batches(sql, *params, size=size)

    def run(self, sql: str, *params: object) -> int:
        """Run a statement and return how many rows it changed."""
        self.changes += 1
        count = self.value(sql, *params)
        return count if isinstance(count, int) else 0

    def insert_many(self, sql: str, *columns: Sequence[object]) -> int:
        """Run an `INSERT ... SELECT unnest($1::T[]), ...` with one list a column; nothing is run for empty lists."""
        # Without this check, unnest would pad the shorter lists with NULL.
        lengths = {len(column) for column in columns}
        if len(lengths) != 1:
            raise ValueError(f"columns of unequal length: {sorted(lengths)}")
        return self.run(sql, *columns) if columns[0] else 0

    def run_prepared(self, name: str, text: str) -> None:
        """Run a statement that was prepared on the cursor, with a text for its parameter.

        EXECUTE takes no parameters from outside, so the text goes into the statement as base64, in which nothing ends a
        literal, and the statement decodes it.
        """
        self.changes += 1
        with self._guard():
            self._cursor.execute(f"EXECUTE {name}('{b64encode(text.encode()).decode()}')").fetchall()

    def queue_many(self, sql: str, *columns: Sequence[object]) -> None:
        """As `insert_many`, before the next statement or the commit, in one with what others have queued for the same.

        Most of what a small insert costs is the statement.
        """
        if len({len(column) for column in columns}) != 1:
            raise ValueError(f"columns of unequal length: {sorted({len(column) for column in columns})}")
        self.changes += 1
        for queued, column in zip(self._queued.setdefault(sql, [[] for _ in columns]), columns, strict=True):
            queued.extend(column)

    def flush(self) -> None:
        """Run what is queued, in the order in which it was begun."""
        queued, self._queued = self._queued, {}
        for sql, columns in queued.items():
            self.insert_many(sql, *columns)

    def append(self, row: LogRow) -> None:
        """Add a row to the log; it gets its place in the chain just before the commit."""
        self.entries.append(encode(row))

    def erase_id(self, erased: str) -> int:
        """Delete the slices of decisions that name an id, and return how many there were; none is stored ever again."""
        self.run("INSERT INTO erased (id) VALUES ($1) ON CONFLICT DO NOTHING", erased)
        return self.run("DELETE FROM slices WHERE strpos(body, $1) > 0", f'"id":"{erased}"')

    def erase_ids(self, erased: Sequence[str]) -> int:
        """As `erase_id`, for any number of ids in one scan."""
        if len(erased) == 1:
            return self.erase_id(erased[0])
        self.insert_many("INSERT INTO erased (id) SELECT unnest($1::VARCHAR[]) ON CONFLICT DO NOTHING", erased)
        return self.run(DELETE_SLICES, erased) if erased else 0

    def after_commit(self, publish: Callable[[], None]) -> None:
        """Call `publish` on the writer thread once the transaction is durable, before anybody hears of it."""
        self.callbacks.append(publish)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            # INVARIANT: a transaction that has seen an error is never committed. DuckDB has aborted it, and COMMIT would
            # say nothing and keep nothing, also of the units before.
            self.failure = error
            raise


def _parsed(cursor: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Return the parsed statement, from memory where it has been met: parsing is a quarter of what a small read costs."""
    statement = _PARSED.get(sql)
    if statement is None:
        [statement] = cursor.extract_statements(sql)
        if len(_PARSED) >= PARSED_LIMIT:
            _PARSED.clear()
        _PARSED[sql] = statement
    return statement


def _naive(value: object) -> object:
    match value:
        case str() | float() | bool() | int() | None:
            return value
        case datetime():
            if value.tzinfo is None:
                raise ValueError(f"a time without a zone: `{value}`")
            return value.astimezone(UTC).replace(tzinfo=None)
        case list() | tuple():
            return [_naive(item) for item in value]
        case _:
            return value


def _aware(rows: list[Row], times: list[int]) -> list[Row]:
    if not times:
        return rows
    aware = []
    for row in rows:
        cells = list(row)
        for position in times:
            if cells[position] is not None:
                cells[position] = cells[position].replace(tzinfo=UTC)
        aware.append(tuple(cells))
    return aware
