"""Rows put straight into the log, for tests that need many or particular ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from gateway.store.writer import record
from tests.builders import START, Gateway
from tests.store.samples import a_row

ROW = a_row("", at=START, org_id="", principal_id="crafted", action="peer.read", policies=("peer/read/observer",), details={})


def org_of(gateway: Gateway, *, other: bool = False) -> str:
    return gateway.services.state.humans[(gateway.other_owner if other else gateway.owner).id].org_id


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def craft(gateway: Gateway, count: int, *, first: int = 1, other: bool = False, **changes: Any) -> list[str]:
    """Log rows a minute apart, and return their ids, oldest first."""
    org_id = org_of(gateway, other=other)
    rows = [
        replace(ROW, **{"id": uuid(number), "org_id": org_id, "at": START + timedelta(minutes=number), **changes})
        for number in range(first, first + count)
    ]
    gateway.services.database.write(record(*rows)).result()
    return [row.id for row in rows]


def tamper(gateway: Gateway, row_id: str, change: str = "action = 'forged'") -> None:
    """Change a row behind the gateway's back."""
    gateway.services.database.exclusive(
        lambda connection: connection.execute(f"UPDATE log SET {change} WHERE id = '{row_id}'")
    ).result()
