"""Whose memory a request is about: a human names the agent, an agent means its own, a connection the one it is connected to."""

from __future__ import annotations

from gateway.errors import Invalid
from gateway.model.records import Agent
from gateway.operations.call import Call
from gateway.operations.fields import Fields, is_id
from gateway.store.entities import Missing
from gateway.store.memory_owner import agent_of


def named_agent(call: Call, fields: Fields, *, former: bool = True) -> Agent | Missing:
    """The agent that `agent_id` names, with `former` also one that was deleted; another agent's is unknown to an agent.

    Raises:
        Invalid: a human names none, or a connection names one.
    """
    caller, own = call.session.caller, own_agent(call)
    if own is None:
        named = fields.id("agent_id")
        return call.agent_or_former(named) if former else call.agent(named)
    if "agent_id" not in fields:
        return own
    if caller.type == "Connection":
        raise Invalid("`agent_id` must be left out: a connection reaches the memory of one agent", field="agent_id")
    named = fields.id("agent_id")
    return own if named == own.id else Missing("Agent", named)


def own_agent(call: Call) -> Agent | Missing | None:
    """The one agent whose memory the caller can be asking about; None for a person, who can be asking about any."""
    caller = call.session.caller
    match caller.type:
        case "Agent" | "Bridge":
            return call.agent(caller.id)
        case "Connection":
            connection = call.state.remote_connections.get((caller.org_id, caller.id))
            return call.agent(connection.agent_id if connection is not None else None)
        case _:
            return None


async def agent_of_row(call: Call, memory_id: str) -> Agent | Missing:
    """The agent that a row belongs to, or is to belong to for the caller to reach it."""
    if not is_id(memory_id):
        return Missing("Agent", "-")
    own = own_agent(call)
    if own is not None:
        return own
    # Only the owner's id is read before the decision, and it is not answered.
    found = await call.services.database.read(lambda rows: agent_of(rows, call.session.caller.org_id, memory_id))
    return call.agent_or_former(found)
