"""The table: every operation of the gateway (temporary form while rooms are being built)."""

from __future__ import annotations

import importlib
import importlib.util

from gateway.operations.operation import Operation

_ROOMS = (
    "auth keys factors members settings agents approvals peers observers events facts predictions rights me "
    "platform connections decisions audit administration"
).split()

OPERATIONS: tuple[Operation, ...] = tuple(
    operation
    for room in _ROOMS
    if importlib.util.find_spec(f"gateway.operations.{room}")
    for operation in getattr(importlib.import_module(f"gateway.operations.{room}"), "OPERATIONS", ())
)
