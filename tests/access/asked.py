"""Who asks in these tests, and short ways to ask."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from gateway.model.evidence import LogRow
from tests.world import NOW, World, agent_caller, caller, session

AGENT, OWNER, MEMBER = agent_caller(), caller("owner"), caller("member")
ALLOW = {"rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "20"}]}


def reads(world: World, now: datetime = NOW, action: str = "peer.read") -> bool:
    """Whether the observing agent may, at some time."""
    return world.access.ask(session(AGENT, now), action, world.peer).allowed


def entities_of(row: LogRow) -> dict[str, Any]:
    """The entities that a decision was taken over, by `Type::id`."""
    bodies = [json.loads(row.slice_bodies[digest]) for digest in row.slices]
    return {f"{e['uid']['type']}::{e['uid']['id']}": e for body in bodies for e in body}
