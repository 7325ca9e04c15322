"""The table: every operation of the gateway, in the order of its documentation."""

from __future__ import annotations

from gateway.operations import (
    administration,
    agents,
    approvals,
    audit,
    auth,
    connections,
    decisions,
    events,
    factors,
    facts,
    keys,
    me,
    members,
    observers,
    password,
    peers,
    platform,
    predictions,
    rights,
    settings,
)
from gateway.operations.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *auth.OPERATIONS,
    *keys.OPERATIONS,
    *factors.OPERATIONS,
    *password.OPERATIONS,
    *members.OPERATIONS,
    *settings.OPERATIONS,
    *agents.OPERATIONS,
    *approvals.OPERATIONS,
    *peers.OPERATIONS,
    *observers.OPERATIONS,
    *events.OPERATIONS,
    *facts.OPERATIONS,
    *predictions.OPERATIONS,
    *rights.OPERATIONS,
    *me.OPERATIONS,
    *platform.OPERATIONS,
    *connections.OPERATIONS,
    *decisions.OPERATIONS,
    *audit.OPERATIONS,
    *administration.OPERATIONS,
)
