"""What the wire says of an agent: the fields that are read, and the object that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from gateway import limits
from gateway.authn.keys import AGENT_KEY, mint_key
from gateway.errors import Invalid
from gateway.model.ids import new_id
from gateway.model.records import Agent, Credential
from gateway.model.rules import NO_RULES, ApprovalRules, parse_rules
from gateway.operations.call import Call
from gateway.operations.fields import Fields, echo, optional_stamp, stamp
from gateway.operations.wire.agents import FLAGS, LISTS


def attributes(body: Fields) -> dict[str, object]:
    """The attributes that a body names."""
    given: dict[str, object] = {name: body.boolean(name) for name in FLAGS if body.has(name)}
    given |= {name: texts(body, name) for name in LISTS if body.has(name)}
    if body.has("auth_method"):
        given["auth_method"] = body.text("auth_method", longest=limits.NAME_CHARACTERS)
    return given


def texts(body: Fields, field: str) -> list[str]:
    """A list of short strings."""
    found: list[str] = []
    for index, value in enumerate(body.list(field, most=limits.PAGE)):
        if not isinstance(value, str) or not 1 <= len(value) <= limits.REF_CHARACTERS:
            place = f"{field}[{index}]"
            expected = f"a string of 1 to {limits.REF_CHARACTERS} characters"
            raise Invalid(f"`{place}` must be {expected}, got {echo(value)}", field=place)
        found.append(value)
    return found


def lifetime(body: Fields) -> int | None:
    """How long the agent's tokens live, in seconds."""
    least, most = limits.TOKEN_SECONDS_RANGE
    return body.optional_integer("token_ttl_seconds", least=least, most=most)


def key_end(call: Call, field: str) -> datetime | None:
    """When the agent's key ends."""
    end = call.body.optional_timestamp(field)
    if end is not None and end <= call.now:
        raise call.body.wrong(field, "a time in the future")
    return end


def rules(body: Fields) -> ApprovalRules:
    """The policy of a body; `{}` and null are none."""
    parsed = parse_rules(body.members.get("action_approval_policy"))
    return parsed if parsed.source else NO_RULES


def new_key(agent_id: str, org_id: str, now: datetime, end: datetime | None) -> tuple[str, Credential]:
    """A fresh key of an agent: the secret, to be shown once, and what is kept of it."""
    secret, hashed = mint_key(AGENT_KEY)
    return secret, Credential(new_id(), org_id, "Agent", agent_id, "agent key", hashed, now, end)


def shape(agent: Agent) -> dict[str, object]:
    """An agent as clients of this wire read it."""
    kept = agent.attributes
    return {
        "id": agent.id,
        "org_id": agent.org_id,
        "name": agent.name,
        "description": agent.description,
        "auth_method": kept.get("auth_method", "api_key"),
        "is_active": agent.is_active,
        **{name: kept.get(name, False) for name in FLAGS},
        **{name: kept.get(name, []) for name in LISTS},
        "token_ttl_seconds": agent.token_ttl_seconds,
        "api_key_expires_at": kept.get("api_key_expires_at"),
        "parent_id": agent.parent_id,
        "connection_id": agent.connection_id,
        "action_approval_policy": agent.rules.source if agent.has_policy else None,
        "created_by": agent.created_by,
        "created_at": stamp(agent.created_at),
    }


def created(agent: Agent, secret: str) -> Mapping[str, object]:
    """The answer to a registration, for clients that read the agent beside its key and for those that read it inside."""
    return {"agent": shape(agent), "api_key": secret, **shape(agent)}


def end_text(end: datetime | None) -> dict[str, object]:
    """The end of a key as an attribute of its agent."""
    return {"api_key_expires_at": optional_stamp(end)}
