"""Children of agents: agents with a key and a policy of their own, and at most the scopes of the one they belong to."""

from __future__ import annotations

from gateway import limits
from gateway.errors import Invalid
from gateway.model.ids import new_id
from gateway.model.records import Agent
from gateway.model.rules import NO_RULES
from gateway.operations.agent_fields import attributes, created, end_text, key_end, new_key, rules, shape
from gateway.operations.call import Call
from gateway.operations.guardrails import confirm_rules
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import agents as wire
from gateway.store import agents


async def create_child(call: Call) -> Reply:
    body = call.body
    name = body.text("name", longest=limits.NAME_CHARACTERS)
    description = body.optional_text("description", longest=limits.TEXT_CHARACTERS) or ""
    given = attributes(body)
    own_rules = rules(body) if body.has("action_approval_policy") else None
    end = key_end(call, "expires_at")
    # Clients may send it. A child is never registered with more than waits for an approval: see register_child.
    body.optional_id("approval_id")
    grant = call.access.authorize(call.session, "agent.create_child", call.agent(call.path["agent_id"]))
    parent = grant.target
    if parent.parent_id is not None:
        raise Invalid("a child has no children of its own; `name` another agent as the parent", field="name")
    if own_rules is not None:
        await confirm_rules(call)
    child_id = new_id()
    # What it takes from its parent is settled when it is written.
    wanted = Agent(
        id=child_id,
        org_id=parent.org_id,
        name=name,
        description=description,
        is_active=True,
        created_by=parent.created_by,
        parent_id=parent.id,
        # A connection is the parent's alone: it would make the child an observer of a person at the next bootstrap.
        connection_id=None,
        rules=own_rules or NO_RULES,
        token_ttl_seconds=parent.token_ttl_seconds,
        generation=1,
        created_at=call.now,
        attributes={"memory_namespace_allowlist": [f"child:{child_id}"], **given, **end_text(end)},
    )
    secret, key = new_key(wanted.id, wanted.org_id, call.now, end)
    child = await call.write_alone(agents.register_child, grant, wanted, key, own_rules=own_rules is not None)
    return Reply(created(child, secret), 201)


async def list_children(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "agent.list_children", call.agent(call.path["agent_id"]))
    return Reply({"agents": [shape(child) for child in agents.children(call.state, grant)]})


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "agent.create_child",
        "POST",
        "/v1/agents/{agent_id}/children",
        "Register a child of an agent; its key is shown once.",
        create_child,
        actions=("agent.create_child",),
        fields=wire.CHILD,
        answers={201: wire.CREATED},
        confirmed=True,
    ),
    Operation(
        "agent.list_children",
        "GET",
        "/v1/agents/{agent_id}/children",
        "List the children of an agent.",
        list_children,
        actions=("agent.list_children",),
        answers={200: wire.AGENTS},
    ),
)
