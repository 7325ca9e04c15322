"""A small schema, and the rows and changes that the tests of the store are made of."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from gateway.model.evidence import LogRow
from gateway.store.db import Database
from gateway.store.rows import Row, Rows, Tx
from gateway.store.writer import Unit

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)

SCHEMA = """
CREATE TABLE things (name VARCHAR PRIMARY KEY, position BIGINT NOT NULL, made_at TIMESTAMP);
CREATE TABLE log (
  seq BIGINT PRIMARY KEY, kind VARCHAR NOT NULL, id VARCHAR NOT NULL, "at" TIMESTAMP NOT NULL, org_id VARCHAR NOT NULL,
  principal_type VARCHAR NOT NULL, principal_id VARCHAR NOT NULL, action VARCHAR NOT NULL,
  resource_type VARCHAR NOT NULL, resource_id VARCHAR NOT NULL, outcome VARCHAR, deny_kind VARCHAR,
  policies VARCHAR NOT NULL, bundle VARCHAR NOT NULL, data_version BIGINT NOT NULL, slices VARCHAR NOT NULL,
  request_id VARCHAR NOT NULL, details VARCHAR NOT NULL, hash VARCHAR NOT NULL
);
CREATE TABLE slices (hash VARCHAR PRIMARY KEY, body VARCHAR NOT NULL);
CREATE TABLE erased (id VARCHAR PRIMARY KEY);
"""


def a_row(row_id: str = "row", **changes: Any) -> LogRow:
    """A decision, as it would be logged."""
    row = LogRow(
        kind="decision",
        id=row_id,
        at=NOON,
        org_id="org",
        principal_type="Agent",
        principal_id="agent",
        action="context",
        resource_type="Peer",
        resource_id="peer",
        outcome="allow",
        deny_kind=None,
        policies=("observer-reads",),
        bundle="bundle",
        data_version=7,
        slices=(),
        request_id="request",
        details={"served": 2},
    )
    return replace(row, **changes)


def a_thing(name: str, *, solo: bool = False, row: LogRow | None = None) -> Unit[int]:
    """A change that puts a thing behind those that are there, and returns its position."""

    def run(tx: Tx) -> int:
        position: int = tx.value("SELECT count(*) FROM things")
        tx.run("INSERT INTO things VALUES ($1, $2, $3)", name, position, NOON)
        return position

    return Unit(run, log=() if row is None else (row,), solo=solo)


def things(database: Database) -> list[str]:
    """The names of the things, in order."""
    return [name for (name,) in database.read_sync(lambda rows: rows.all("SELECT name FROM things ORDER BY position"))]


def logged(database: Database) -> list[str]:
    """The ids in the log, in order."""
    return [row_id for (row_id,) in database.read_sync(lambda rows: rows.all("SELECT id FROM log ORDER BY seq"))]


def transaction(tx: Rows) -> Row | None:
    """The number of the transaction."""
    return tx.one("SELECT txid_current()")


@contextmanager
def busy_writer(database: Database) -> Iterator[None]:
    """Keep the writer from its queue, so that what is queued meanwhile shares a batch."""
    started, go = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        started.set()
        go.wait()

    held = database.exclusive(wait)
    started.wait()
    try:
        yield
    finally:
        go.set()
        held.result()
