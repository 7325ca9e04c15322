"""Children of agents: agents with a key and a policy of their own, and at most the scopes of the one they belong to."""

from __future__ import annotations

from collections.abc import Mapping

from gateway import limits
from gateway.errors import Invalid
from gateway.model.ids import new_id
from gateway.model.records import Agent
from gateway.operations.agent_fields import attributes, created, end_text, key_end, new_key, rules, shape
from gateway.operations.call import Call
from gateway.operations.guardrails import guard_new_rules
from gateway.operations.operation import Operation, Reply
from gateway.store import agents

#: What a child may have at most of what its parent has.
SUBSETS = ("scopes", "vault_ids")
BODY = (
    "name",
    "description",
    "vault_ids",
    "scopes",
    "memory_namespace_allowlist",
    "action_approval_policy",
    "expires_at",
    "approval_id",
)


async def create_child(call: Call) -> Reply:
    body = call.body
    name = body.text("name", longest=limits.NAME_CHARACTERS)
    description = body.optional_text("description", longest=limits.TEXT_CHARACTERS) or ""
    given = attributes(body)
    own_rules = rules(body) if body.has("action_approval_policy") else None
    end = key_end(call, "expires_at")
    # Clients may send it. A child is never registered with more than waits for an approval: see guard_new_rules.
    body.optional_id("approval_id")
    grant = call.access.authorize(call.session, "agent.create_child", call.agent(call.path["agent_id"]))
    parent = grant.target
    if parent.parent_id is not None:
        raise Invalid("a child has no children of its own; `name` another agent as the parent", field="name")
    if own_rules is not None:
        await guard_new_rules(call, parent.rules, own_rules)
    child_id = new_id()
    child = Agent(
        id=child_id,
        org_id=parent.org_id,
        name=name,
        description=description,
        is_active=True,
        # The human who answers for the parent answers for the child. A connection is the parent's alone: it would make the
        # child an observer of a person at the next bootstrap.
        created_by=parent.created_by,
        parent_id=parent.id,
        connection_id=None,
        rules=parent.rules if own_rules is None else own_rules,
        token_ttl_seconds=parent.token_ttl_seconds,
        generation=1,
        created_at=call.now,
        attributes={"memory_namespace_allowlist": [f"child:{child_id}"], **_within(parent, given), **end_text(end)},
    )
    secret, key = new_key(child.id, child.org_id, call.now, end)
    await call.write_alone(agents.register_child, grant, child, key)
    return Reply(created(child, secret), 201)


async def list_children(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "agent.list_children", call.agent(call.path["agent_id"]))
    return Reply({"agents": [shape(child) for child in agents.children(call.state, grant)]})


def _within(parent: Agent, given: dict[str, object]) -> dict[str, object]:
    """The child's attributes: its own where it names some, else those of the parent that it may share."""
    for field in SUBSETS:
        if not _names(given, field) <= _names(parent.attributes, field):
            raise Invalid(f"`{field}` of a child must be among those of its parent", field=field)
    return {**{field: parent.attributes[field] for field in SUBSETS if field in parent.attributes}, **given}


def _names(attributes: Mapping[str, object], field: str) -> set[object]:
    listed = attributes.get(field)
    return set(listed) if isinstance(listed, list) else set()


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "agent.create_child",
        "POST",
        "/v1/agents/{agent_id}/children",
        "Register a child of an agent; its key is shown once.",
        create_child,
        actions=("agent.create_child",),
        fields=BODY,
    ),
    Operation(
        "agent.list_children",
        "GET",
        "/v1/agents/{agent_id}/children",
        "List the children of an agent.",
        list_children,
        actions=("agent.list_children",),
    ),
)
