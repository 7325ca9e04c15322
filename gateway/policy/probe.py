"""The probe: whether a grant opens what it says, tried on a row that was made up to fit it."""

from __future__ import annotations

from datetime import UTC, datetime

import cedarpy

from gateway.model.entity import Entity, EntityUid, Value
from gateway.model.memory import MemoryGrant
from gateway.policy import grants, slice
from gateway.policy.bundle import Bundle
from gateway.policy.context import Context
from gateway.policy.sets import PolicySets
from gateway.policy.value import uid_json

MOMENT = Context({"now": datetime(2000, 1, 3, tzinfo=UTC), "clock": {"minute": 0, "weekday": 1, "date": "2000-01-03"}})


class GrantRefused(ValueError):
    """A grant cannot be compiled to valid policies, or would allow nothing."""


def check(bundle: Bundle, sets: PolicySets, grant: MemoryGrant, agent_id: str) -> None:
    """Raises `GrantRefused` unless the grant allows each of its actions on a row that fits it, under the guardrails alone."""
    if not grant.actions:
        raise GrantRefused("it names no action")
    entities = _made_up(grant, agent_id)
    holder, row = entities[-2].uid, entities[-1].uid
    try:
        _validate(bundle, holder, grant)
        made = slice.build(bundle, entities, salt=b"")
    except ValueError as error:
        raise GrantRefused(f"it is not valid: {error}") from error
    for action in grant.actions:
        name = f"memory.{action}"
        request = {
            "principal": uid_json(holder),
            "action": uid_json(bundle.action_uids[name]),
            "resource": uid_json(row),
            "context": MOMENT.text,
        }
        answer = cedarpy.is_authorized(request, sets.guardrails(name, holder, row.type, (grant,)), made.handle, bundle.schema)
        if not answer.allowed or answer.diagnostics.errors:
            raise GrantRefused(f"it does not allow `{action}` on a row that fits it")


def _validate(bundle: Bundle, holder: EntityUid, grant: MemoryGrant) -> None:
    """Raises `ValueError` when Cedar's strict validation finds anything wrong."""
    compiled = grants.compile_grants(holder, (grant,))
    result = cedarpy.validate_policies(grants.as_text(compiled), bundle.schema)
    if not result.validation_passed:
        raise ValueError("; ".join(error.error for error in result.errors))


def _made_up(grant: MemoryGrant, agent_id: str) -> tuple[Entity, ...]:
    """An organisation, a person, the agent, its connection and the row: everything that a policy could look at."""
    org, person = EntityUid("Org", grant.org_id), EntityUid("Human", "")
    agent, holder = EntityUid("Agent", agent_id), EntityUid(grants.HOLDER, grant.connection_id)
    known: dict[str, Value] = {
        "org": org,
        "agent": agent,
        "active": True,
        "grants": (grant.id,),
        "projects": (grant.project_id,),
        "tiers": grant.classifications,
    }
    row: dict[str, Value] = {
        "org": org,
        "agent": agent,
        "layer": "fact",
        "project": grant.project_id,
        "tags": grant.tags,
        "classification": grant.classifications[0] if grant.classifications else "public",
        "sources": (grant.connection_id,) if grant.provenance == "own_connection" else (),
        "retracted": False,
        "superseded": False,
        "expired": False,
    }
    return (
        Entity(org),
        Entity(person, {"org": org}, (org,)),
        Entity(agent, {"org": org, "active": True, "registered_by": person}, (org,)),
        Entity(holder, known, (org,)),
        Entity(EntityUid(grants.ROW, "made-up"), row, (org,)),
    )
