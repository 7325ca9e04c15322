"""Visible: which rows of an agent's memory a connection sees, and of one row why or why not, for whoever owns them."""

from __future__ import annotations

from dataclasses import replace

from gateway import limits
from gateway.model.caller import Caller
from gateway.model.condition import all_of
from gateway.model.coverage import failed_clause
from gateway.model.decision import Verdict
from gateway.model.grant import Grant
from gateway.model.memory import MEMORY_ACTIONS, Memory, MemoryAction, MemoryScope, RemoteConnection
from gateway.operations.call import Call, path_id
from gateway.operations.memory_reads import read_cursor
from gateway.operations.memory_shapes import memory_object, page_object
from gateway.operations.operation import Operation, Reply
from gateway.operations.recall import Recall, one, recall
from gateway.operations.remote_connections import named_connection
from gateway.operations.wire import memory as wire
from gateway.store import memory_rows

#: What the policy of a grant is called, before the id of the grant.
GRANT = "grant/"


async def list_visible(call: Call) -> Reply:
    """The rows that a connection sees, each with what lets it: found and decided as for the connection itself."""
    query = call.query
    action = query.optional_choice("action", MEMORY_ACTIONS, "search")
    limit = query.count("limit", least=1, most=limits.PAGE, default=limits.MEMORIES_LISTED_DEFAULT)
    cursor = read_cursor(query)
    connection = _previewed(call)
    scope = _as_connection(call, connection, action)
    asked = Recall(limit=limit, cursor=cursor)
    page = await recall(call, scope, asked, preview=True)
    shown = page_object(replace(page, items=()), call.session.caller)
    items = [memory_object(item.row, call.session.caller) | _because(item.verdict) for item in page.items]
    return Reply({**shown, "items": items})


async def explain(call: Call) -> Reply:
    """Whether a connection sees one row. The query and the decision say that; the clause only says it in words."""
    action = call.query.optional_choice("action", MEMORY_ACTIONS, "read")
    connection = _previewed(call)
    own = call.access.plan(call.session, "memory.read", call.agent_or_former(connection.agent_id), live=False)
    row = (await one(call, own, path_id(call, "memory_id"))).row
    scope = _as_connection(call, connection, action)
    found = await call.read(memory_rows.fetch, scope, [row.id])
    for _, verdict in call.access.confirm(scope, found):
        return Reply({"visible": True, **_because(verdict), "failed_clause": None})
    grants = call.state.grants_of(connection.org_id, connection.id)
    clause = failed_clause(connection, grants, row, action, call.now)
    policy = _forbid(call, connection, action, row) if clause is None else None
    return Reply({"visible": False, "grant_id": None, "policy": policy, "failed_clause": clause})


def _previewed(call: Call) -> RemoteConnection:
    connection = named_connection(call, call.path["id"])
    return call.access.authorize(call.session, "remote_connection.preview", connection).target


def _as_connection(call: Call, connection: RemoteConnection, action: MemoryAction) -> Grant[MemoryScope]:
    """What the connection may have, of what the caller may read: a preview shows nobody more than they would see anyway."""
    agent = call.agent_or_former(connection.agent_id)
    own = call.access.plan(call.session, "memory.read", agent).target
    grant = call.access.plan(call.session, f"memory.{action}", agent, principal=_principal(connection))
    return replace(grant, target=replace(grant.target, policy=all_of(grant.target.policy, own.floor, own.policy)))


def _principal(connection: RemoteConnection) -> Caller:
    return Caller("Connection", connection.id, connection.org_id, "")


def _because(verdict: Verdict) -> dict[str, object]:
    """The grant that lets a row be seen, and its policy; of several the first."""
    policy = next(policy for policy in verdict.policies if policy.startswith(GRANT))
    return {"grant_id": policy.removeprefix(GRANT), "policy": policy}


def _forbid(call: Call, connection: RemoteConnection, action: MemoryAction, row: Memory) -> str | None:
    """The policy that keeps a row back which a grant covers."""
    ruling = call.access.ask(call.session, f"memory.{action}", row, principal=_principal(connection))
    return ruling.reason.policy_id if ruling.reason is not None else None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "remote_connection.visible",
        "GET",
        "/v1/connections/{id}/visible",
        "List the rows that a remote connection sees, each with the grant that lets it.",
        list_visible,
        actions=("remote_connection.preview", *(f"memory.{action}" for action in MEMORY_ACTIONS)),
        query=wire.VISIBLE,
        strict=True,
        answers={200: wire.SEEN},
    ),
    Operation(
        "remote_connection.explain",
        "GET",
        "/v1/connections/{id}/visible/{memory_id}",
        "Say whether a remote connection sees one row, by which grant, or what keeps it from it.",
        explain,
        actions=("remote_connection.preview", *(f"memory.{action}" for action in MEMORY_ACTIONS)),
        query=wire.EXPLAINED,
        strict=True,
        answers={200: wire.EXPLANATION},
    ),
)
