"""Agents: registered by a human, changed and ended by a human, and able to ask who they are."""

from __future__ import annotations

from gateway import limits
from gateway.errors import Forbidden, Invalid
from gateway.model.ids import new_id
from gateway.model.records import Agent
from gateway.operations import agent_children
from gateway.operations.agent_fields import attributes, created, end_text, key_end, lifetime, new_key, rules, shape
from gateway.operations.call import Call
from gateway.operations.guardrails import confirm_rules
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.wire import agents as wire
from gateway.store import agents, widenings
from gateway.store.approvals import Approval
from gateway.store.entities import Missing

AWAITING = (
    "the wider policy waits for an approval, and nothing was changed: once approved, repeat this request with `approval_id`"
)
NOBODY_ELSE = "; nobody else is there who could approve it: a second owner or admin is needed"


async def create(call: Call) -> Reply:
    body = call.body
    end = key_end(call, "api_key_expires_at")
    agent = Agent(
        id=new_id(),
        org_id=call.session.caller.org_id,
        name=body.text("name", longest=limits.NAME_CHARACTERS),
        description=body.optional_text("description", longest=limits.TEXT_CHARACTERS) or "",
        is_active=True,
        created_by=call.session.caller.id,
        parent_id=None,
        connection_id=None,
        rules=rules(body),
        token_ttl_seconds=lifetime(body) or limits.TOKEN_SECONDS_AGENT,
        generation=1,
        created_at=call.now,
        attributes=attributes(body) | end_text(end),
    )
    grant = call.access.authorize(call.session, "agent.create", call.org)
    if agent.has_policy:
        await confirm_rules(call)
    secret, key = new_key(agent.id, agent.org_id, call.now, end)
    await call.write(agents.register, grant, agent, key)
    return Reply(created(agent, secret), 201)


async def list_agents(call: Call) -> Reply:
    grant = call.access.authorize_first(call.session, ("agent.list", "agent.list_own"), call.org)
    return Reply({"agents": [shape(agent) for agent in agents.listed(call.state, grant)]})


async def me(call: Call) -> Reply:
    own = call.agent(call.session.caller.id)
    if isinstance(own, Missing):
        ruling = call.access.ask(call.session, "agent.read_self", own)
        raise Forbidden("only an agent asks which agent it is", decision_id=ruling.row.id)
    grant = call.access.authorize(call.session, "agent.read_self", own)
    return Reply(shape(grant.target))


async def get(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "agent.read", call.agent(call.path["agent_id"]))
    return Reply(shape(grant.target))


async def update(call: Call) -> Reply:
    """Change an agent. Deactivating it ends its own keys and tokens, not those of its children."""
    body = call.body
    changes: dict[str, object] = {}
    if body.has("name"):
        changes["name"] = body.text("name", longest=limits.NAME_CHARACTERS)
    if body.has("description"):
        changes["description"] = body.text("description", longest=limits.TEXT_CHARACTERS, shortest=0)
    if body.has("is_active"):
        changes["is_active"] = body.boolean("is_active")
    if body.has("token_ttl_seconds"):
        changes["token_ttl_seconds"] = lifetime(body)
    given = attributes(body)
    end = key_end(call, "api_key_expires_at")
    if end is not None:
        changes["api_key_expires_at"] = end
        given |= end_text(end)
    if given:
        changes["attributes"] = given
    approval_id = body.optional_id("approval_id")
    sets_rules = "action_approval_policy" in body
    if sets_rules:
        changes["rules"] = rules(body)
    elif approval_id is not None:
        raise Invalid("`approval_id` needs the `action_approval_policy` that it approves", field="action_approval_policy")
    grant = call.access.authorize(call.session, "agent.update", call.agent(call.path["agent_id"]))
    if sets_rules:
        grant = call.access.authorize(call.session, "agent.set_rules", grant.target)
        await confirm_rules(call)
    changed = await call.write_alone(widenings.change_agent, grant, changes, approval_id=approval_id)
    return _awaiting(call, grant.target, changed) if isinstance(changed, Approval) else Reply(shape(changed))


async def rotate_key(call: Call) -> Reply:
    end = key_end(call, "api_key_expires_at")
    grant = call.access.authorize(call.session, "agent.rotate_key", call.agent(call.path["agent_id"]))
    secret, key = new_key(grant.target.id, grant.target.org_id, call.now, end)
    await call.write_alone(agents.rotate_key, grant, key, end_text(end))
    return Reply({"id": grant.target.id, "name": grant.target.name, "api_key": secret})


async def delete(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "agent.delete", call.agent(call.path["agent_id"]))
    await call.write_alone(agents.delete, grant)
    return NO_CONTENT


def _awaiting(call: Call, agent: Agent, asked: Approval) -> Reply:
    alone = widenings.second_person(call.state, agent, call.session.caller.id) is None
    body = {
        "status": "awaiting_approval",
        "approval_id": asked.id,
        "pending_approval_id": asked.id,
        "revision_id": widenings.revision_of(asked),
        "message": AWAITING + NOBODY_ELSE if alone else AWAITING,
    }
    return Reply(body, 202, {"Location": f"/v1/approvals/{asked.id}"})


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "agent.create",
        "POST",
        "/v1/agents",
        "Register an agent; its key is shown once.",
        create,
        actions=("agent.create",),
        fields=wire.REGISTERED,
        answers={201: wire.CREATED},
        confirmed=True,
    ),
    Operation(
        "agent.list",
        "GET",
        "/v1/agents",
        "List agents: the organisation's, or those that one registered.",
        list_agents,
        actions=("agent.list", "agent.list_own"),
        answers={200: wire.AGENTS},
    ),
    Operation(
        "agent.me",
        "GET",
        "/v1/agents/me",
        "Show the calling agent itself.",
        me,
        actions=("agent.read_self",),
        answers={200: wire.AGENT},
    ),
    Operation(
        "agent.read",
        "GET",
        "/v1/agents/{agent_id}",
        "Show an agent.",
        get,
        actions=("agent.read",),
        answers={200: wire.AGENT},
    ),
    Operation(
        "agent.update",
        "PATCH",
        "/v1/agents/{agent_id}",
        "Change an agent. Deactivating it ends its keys and tokens; a new key is then needed to come back.",
        update,
        actions=("agent.update", "agent.set_rules"),
        fields=wire.CHANGED,
        answers={200: wire.AGENT, 202: wire.AWAITING},
        confirmed=True,
    ),
    Operation(
        "agent.rotate_key",
        "POST",
        "/v1/agents/{agent_id}/rotate-key",
        "Give an agent a new key; the keys and tokens it had end.",
        rotate_key,
        actions=("agent.rotate_key",),
        fields=wire.REKEYED,
        answers={200: wire.NEW_KEY},
    ),
    Operation(
        "agent.delete",
        "DELETE",
        "/v1/agents/{agent_id}",
        "End an agent and its children, with their keys, observer entries, pending approvals and remote connections. What they"
        " remember stays until it is forgotten.",
        delete,
        actions=("agent.delete",),
        answers={204: None},
    ),
    *agent_children.OPERATIONS,
)
