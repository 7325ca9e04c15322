"""A row of the log as it was written, read back; one that was changed behind the gateway's back is read as that."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

COLUMNS = """seq, id, "at", org_id, principal_type, principal_id, action, resource_type, resource_id, outcome, deny_kind,
  policies, bundle, data_version, slices, request_id, details, hash"""
POLICIES, SLICES, DETAILS = 11, 14, 16
#: What stands for the details of a row that cannot be read.
UNREADABLE: dict[str, Any] = {"unreadable": True}


class Unreadable(ValueError):
    """A part of a row is not what the gateway writes there."""


@dataclass(frozen=True, slots=True)
class Logged:
    """One row of the log as it was written.

    Where `policies`, `slices` or `details` are no JSON, or other JSON than is written there, `readable` is false, the first
    two are empty and the details `UNREADABLE`: the log is walked, listed and told in spite of it.
    """

    seq: int
    id: str
    at: datetime
    org_id: str
    principal_type: str
    principal_id: str
    action: str
    resource_type: str
    resource_id: str
    outcome: str | None
    deny_kind: str | None
    policies: list[str]
    bundle: str
    data_version: int
    slices: list[str]
    request_id: str
    details: dict[str, Any]
    hash: str
    readable: bool = True


def read(row: tuple[Any, ...]) -> Logged:
    """Return a row of `COLUMNS`."""
    cells = list(row)
    try:
        cells[POLICIES], cells[SLICES] = words(_parsed(row[POLICIES])), words(_parsed(row[SLICES]))
        cells[DETAILS] = record(_parsed(row[DETAILS]))
    except Unreadable:
        cells[POLICIES], cells[SLICES], cells[DETAILS] = [], [], UNREADABLE
        return replace(Logged(*cells), readable=False)
    return Logged(*cells)


def words(value: object) -> list[str]:
    """Return a list of texts as one; raise `Unreadable` for anything else."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return value
    raise Unreadable


def record(value: object) -> dict[str, Any]:
    """Return an object as one; raise `Unreadable` for anything else."""
    if isinstance(value, dict):
        return value
    raise Unreadable


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable from error
