"""Forgetting: everything that came over a connection, from a remote agent or about a project, or one row."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.errors import Invalid, NotFound
from gateway.model.grant import Grant
from gateway.model.memory import DEPTHS, Depth
from gateway.model.records import Agent
from gateway.operations.administration import rewrite_store
from gateway.operations.call import Call
from gateway.operations.fields import Fields, stamp
from gateway.operations.memory_agent import named_agent, own_agent
from gateway.operations.memory_fields import did, project, refuse_nulls, remote_id
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import memory as wire
from gateway.store import forgetting
from gateway.store.entities import Installation, Missing
from gateway.store.forgetting import Receipt, Selection


async def forget(call: Call) -> Reply:
    """Forget what one thing names of an agent's memory."""
    body = call.body
    refuse_nulls(body)
    agent, selection = named_agent(call, body), _selection(body)
    depth = body.optional_choice("depth", DEPTHS, "delete")
    dry_run = body.optional_boolean("dry_run", default=False)
    grant = call.access.authorize(call.session, "memory.forget", agent)
    if selection.by == "connection_id":
        _belongs(call, grant, selection.value)
    depth = _allowed(call, grant, depth)
    return await _forget(call, grant, selection, depth, dry_run=dry_run)


async def forget_connection(call: Call) -> Reply:
    """Forget what came over a connection."""
    depth = call.query.optional_choice("depth", DEPTHS, "delete")
    dry_run = call.query.optional_choice("dry_run", ("true", "false"), "false") == "true"
    found = call.remote_connection(call.path["id"])
    agent = own_agent(call)
    if agent is None:
        agent = call.agent_or_former(None if isinstance(found, Missing) else found.agent_id)
    grant = call.access.authorize(call.session, "memory.forget", agent)
    _belongs(call, grant, call.path["id"])
    depth = _allowed(call, grant, depth)
    return await _forget(call, grant, Selection("connection_id", call.path["id"]), depth, dry_run=dry_run)


def _selection(body: Fields) -> Selection:
    named = [field for field in wire.SELECTED if field in body]
    if len(named) != 1:
        raise Invalid(f"exactly one of {', '.join(f'`{field}`' for field in wire.SELECTED)} is required", field="connection_id")
    match named[0]:
        case "connection_id":
            return Selection("connection_id", remote_id(body, "connection_id"))
        case "source_did":
            return Selection("source_did", did(body, "source_did"))
        case "project_id":
            return Selection("project_id", project(body))
        case _:
            return Selection("id", body.id("id"))


def _belongs(call: Call, grant: Grant[Agent], connection_id: str) -> None:
    """Make sure that a connection is one of the agent's.

    Raises:
        NotFound: it is not.
    """
    found = call.remote_connection(connection_id)
    if isinstance(found, Missing) or found.agent_id != grant.target.id:
        raise NotFound


def _allowed(call: Call, grant: Grant[Agent], depth: Depth) -> Depth:
    """The depth to which the caller may forget: rows are erased from a file that holds nobody else's.

    Raises:
        Forbidden: the caller may not erase at all.
    """
    if depth != "erase":
        return depth
    call.access.authorize(call.session, "memory.erase", grant.target)
    return "erase" if call.access.ask(call.session, "admin.erase", Installation()).allowed else "delete"


async def _forget(call: Call, grant: Grant[Agent], selection: Selection, depth: Depth, *, dry_run: bool) -> Reply:
    if dry_run:
        ask = call.services.database.read
        receipt = await ask(lambda rows: forgetting.preview(rows, grant, selection, depth), snapshot=True)
    else:
        # Alone: whoever writes beside this finds the connection suppressed, or is found by this.
        receipt = await call.write_alone(forgetting.forget, grant, selection, depth)
        if receipt.depth == "erase":
            await rewrite_store(call.services, grant)
    return Reply(_shown(receipt))


def _shown(receipt: Receipt) -> Mapping[str, object]:
    return {
        "dry_run": receipt.dry_run,
        "depth": receipt.depth,
        "connections": list(receipt.connections),
        "counts": dict(receipt.counts),
        "total": receipt.total,
        "suppressed": list(receipt.suppressed),
        "at": stamp(receipt.at),
    }


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.forget",
        "POST",
        "/v1/memories/forget",
        "Hide, delete or erase everything of one connection, remote agent or project, or one memory.",
        forget,
        actions=("memory.forget", "memory.erase", "admin.erase"),
        fields=wire.FORGOTTEN,
        strict=True,
        unhurried=True,
        answers={200: wire.RECEIPT},
    ),
    Operation(
        "memory.forget_connection",
        "DELETE",
        "/v1/connections/{id}/memories",
        "Forget everything that came over a connection; nothing that does is stored again.",
        forget_connection,
        actions=("memory.forget", "memory.erase", "admin.erase"),
        query=wire.FORGOTTEN_OVER,
        strict=True,
        unhurried=True,
        answers={200: wire.RECEIPT},
    ),
)
