"""Memory of an agent, row by row: read, tagged anew, retracted and deleted."""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import Invalid
from gateway.model.memory import TIERS, Memory
from gateway.model.strictest import labels, widens
from gateway.operations.call import Call
from gateway.operations.memory_agent import agent_of_row
from gateway.operations.memory_fields import project, refuse_nulls, tags
from gateway.operations.memory_shapes import labels_object, memory_object
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.recall import one
from gateway.operations.wire import memory as wire
from gateway.store import memories


async def read(call: Call) -> Reply:
    """One row; to an owner also when it does not count any more."""
    row = await _row(call)
    return Reply({"memory": memory_object(row, call.session.caller)})


async def retag(call: Call) -> Reply:
    """Change what grants reach a row by, and that of all that was derived from it."""
    body = call.body
    refuse_nulls(body, allowed=("project_id",))
    if not body.members:
        raise Invalid(f"at least one of {', '.join(f'`{field}`' for field in wire.RETAGGED)} is required", field="project_id")
    named = project(body) if body.has("project_id") else None
    tagged, tier = tags(body), body.optional_choice("classification", TIERS)
    row = await _row(call)
    after = replace(
        row,
        project_id=named if "project_id" in body else row.project_id,
        tags=row.tags if tagged is None else tagged,
        classification=tier or row.classification,
    )
    grant = call.access.authorize(call.session, "memory.retag", row)
    if widens(row, after):
        call.access.authorize(call.session, "memory.widen", row)
    before, made = await call.write(memories.retag, grant, labels(after))
    shown = memory_object(made, call.session.caller)
    return Reply({"memory": shown, "before": labels_object(before), "after": labels_object(made)})


async def retract(call: Call) -> Reply:
    """Keep a row for its owner only, with all that was derived from it."""
    grant = call.access.authorize(call.session, "memory.retract", await _row(call))
    made = await call.write(memories.retract, grant)
    return Reply({"memory": memory_object(made, call.session.caller)})


async def delete(call: Call) -> Reply:
    """Remove a row and all that was derived from it."""
    grant = call.access.authorize(call.session, "memory.delete", await _row(call))
    await call.write(memories.delete, grant)
    return NO_CONTENT


async def _row(call: Call) -> Memory:
    """The row of the path, which the caller may read; the answer for any other is that of an unknown one."""
    agent = await agent_of_row(call, call.path["id"])
    grant = call.access.plan(call.session, "memory.read", agent, live=False)
    return (await one(call, grant, call.path["id"])).row


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.read",
        "GET",
        "/v1/memories/{id}",
        "Read one memory; its owner also one that is retracted, superseded or expired.",
        read,
        actions=("memory.read",),
        strict=True,
        answers={200: wire.MEMORY},
    ),
    Operation(
        "memory.retag",
        "POST",
        "/v1/memories/{id}/retag",
        "Change the project, the tags or the classification of a memory and of what was derived from it.",
        retag,
        actions=("memory.read", "memory.retag", "memory.widen"),
        fields=wire.RETAGGED,
        strict=True,
        answers={200: wire.RETAG},
    ),
    Operation(
        "memory.retract",
        "POST",
        "/v1/memories/{id}/retract",
        "Hide a memory from everybody but its owner, with what was derived from it.",
        retract,
        actions=("memory.read", "memory.retract"),
        strict=True,
        answers={200: wire.MEMORY},
    ),
    Operation(
        "memory.delete",
        "DELETE",
        "/v1/memories/{id}",
        "Delete a memory and what was derived from it.",
        delete,
        actions=("memory.read", "memory.delete"),
        strict=True,
        answers={204: None},
    ),
)
