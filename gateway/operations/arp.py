"""The bridge of the ARP network: what remote agents ask through it, answered from what their connections are granted."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gateway import limits
from gateway.access.door import Ruling
from gateway.errors import Forbidden, Invalid, NotFound, Unavailable
from gateway.model.caller import Caller
from gateway.model.grant import Grant
from gateway.model.memory import Memory, MemoryScope, Narrow, RemoteConnection
from gateway.operations.call import Call, safe_id
from gateway.operations.fields import Fields, stamp
from gateway.operations.memory_agent import own_agent
from gateway.operations.memory_fields import project, refuse_nulls, tags
from gateway.operations.memory_reads import read_query
from gateway.operations.obligations import WINDOWS, Obligations, apply_obligations, read_obligations
from gateway.operations.operation import Operation, Reply
from gateway.operations.recall import Recall, one, passages, recall
from gateway.operations.schema import ANYTHING
from gateway.operations.wire import bridge as wire
from gateway.operations.wire.problems import BRIDGE_PROBLEM
from gateway.store.entities import Missing

#: What the network calls each thing that it may ask for, and the action it is.
ACTIONS = {"notes.search": "memory.search", "notes.read": "memory.read", "knowledge.query": "memory.query"}
#: The names that the network has for a project.
PROJECTS = ("collection_id", "kb_id", "project_id")
#: The names that the network has for a row.
ROW = ("source_path", "id")
#: The policy by which whoever is no bridge hears that; a bridge hears of no connection but its own.
ONLY_BRIDGES = "guardrails/bridge/only_bridges"
CHAT_REFUSED = 'event: result\ndata: {"summary": "This agent answers only typed requests; it takes no free text."}\n\n'

_RESOURCE = re.compile(r'[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:::"(?P<quoted>[^"]*)"|:(?P<plain>[^:"]*))', re.ASCII)


@dataclass(frozen=True, slots=True)
class Served:
    """A request as it is answered: the rows that the connection may have, narrowed, and what is to be done to the answer."""

    grant: Grant[MemoryScope]
    narrow: Narrow
    obligations: Obligations

    def reply(self, answer: dict[str, object]) -> Reply:
        return Reply(apply_obligations({"ok": True, **answer}, self.obligations))


async def search_notes(call: Call) -> Reply:
    """The rows of a project that fit a query best."""
    query, limit = read_query(call.body), _limit(call.body)
    served = _serve(call, "notes.search")
    asked = Recall(served.narrow, query, limit=limit)
    found = await recall(call, served.grant, asked)
    return served.reply({"items": [_item(each.row) for each in found.items], "redactions_applied": []})


async def read_note(call: Call) -> Reply:
    """One row of a project."""
    row_id = _one(call.body, ROW, {name: _text(call.body, name) for name in ROW if name in call.body})
    served = _serve(call, "notes.read")
    row = (await one(call, served.grant, row_id, served.narrow)).row
    return served.reply({"item": _item(row)})


async def query_knowledge(call: Call) -> Reply:
    """The texts of a project that fit a query best, as one."""
    query, tokens = read_query(call.body), _max_tokens(call.body)
    served = _serve(call, "knowledge.query")
    made = await passages(call, served.grant, Recall(served.narrow, query), tokens)
    sources = [{"source_path": row.id, "content": row.text, "project_id": row.project_id} for row in made.rows]
    return served.reply({"answer": made.answer, "sources": sources})


async def health(call: Call) -> Reply:
    """Whether the bridge would be answered, and what it may ask for."""
    if not call.services.database.healthy:
        raise Unavailable("the store cannot answer now; try again", cause="store")
    return Reply({"ok": True, "endpoints": [*ACTIONS]})


async def chat(call: Call) -> Reply:
    """The one answer to free text, which reaches no agent."""
    agent = own_agent(call)
    ruling = call.access.ask(call.session, "bridge.chat", agent if agent is not None else Missing("Agent", "-"))
    if not ruling.allowed:
        raise _refused(call, ruling)
    return Reply(None, text=("text/event-stream", CHAT_REFUSED))


# -- who asks for what


def _serve(call: Call, action: str) -> Served:
    """Everything that is the same for each request; nothing in it is read before all of it is well formed.

    Raises:
        Invalid: malformed.
        Unsatisfiable: an obligation is not one that can be met.
        Forbidden: no bridge asks.
        NotFound: there is no such connection for this bridge, or another remote agent than its own speaks.
        TooManyRequests: over what an obligation allows.
    """
    body = call.body
    narrow, obligations = _checked(body, action), read_obligations(body.members["obligations"])
    connection_id, source_did = _text(body, "connection_id"), _text(body, "source_did")
    connection = call.remote_connection(connection_id)
    if not isinstance(connection, Missing) and connection.peer_did != source_did:
        connection = Missing("Connection", safe_id(connection_id))
    ruling = call.access.ask(call.session, "bridge.serve", connection)
    if not ruling.allowed or isinstance(connection, Missing):
        raise _refused(call, ruling)
    _count(call, connection, obligations)
    principal = Caller("Connection", connection.id, connection.org_id, "")
    grant = call.access.plan(call.session, ACTIONS[action], call.agent(connection.agent_id), principal=principal)
    return Served(grant, narrow, obligations)


def _refused(call: Call, ruling: Ruling) -> Forbidden | NotFound:
    """A no as it is answered: that only bridges may, or to a bridge that there is nothing, whatever the reason."""
    if ONLY_BRIDGES in ruling.row.policies:
        return Forbidden(call.access.engine.bundle.policies[ONLY_BRIDGES].reason, decision_id=ruling.row.id)
    return NotFound()


def _count(call: Call, connection: RemoteConnection, obligations: Obligations) -> None:
    """Count the request in each window that it is obliged to; once, though it may be run again.

    Raises:
        TooManyRequests: a window is full.
    """
    session = call.session
    for window, most in obligations.rates.items():
        once = ("request of an obligation", window)
        if once not in session.confirmed:
            key = ("obligation", connection.org_id, connection.id, window)
            call.services.requests.take(key, most, WINDOWS[window], call.now)
            session.confirmed[once] = True


# -- what is asked


def _checked(body: Fields, action: str) -> Narrow:
    """What the request narrows itself to, with every member that it has checked, also those it does not need."""
    refuse_nulls(body)
    if "obligations" not in body:
        raise body.wrong("obligations", "a list")
    named = {name: project(body, name) for name in PROJECTS if name in body}
    project_id = _one(body, PROJECTS, named)
    body.optional_choice("action", (action,))
    _limit(body)
    _max_tokens(body)
    if "text" in body and not isinstance(body.members["text"], str):
        raise body.wrong("text", "a string")
    if "query" in body:
        read_query(body)
    body.optional_object("context")
    if "resource" in body and _resource(body) != project_id:
        raise Invalid("`resource` must name the same project as the rest of the request", field="resource")
    return Narrow(project_id, tags=tags(body))


def _one(body: Fields, names: tuple[str, ...], given: dict[str, str]) -> str:
    """The one value of several names for the same thing."""
    values = set(given.values())
    if not values:
        raise body.wrong(names[0], "given")
    if len(values) > 1:
        raise Invalid(f"{' and '.join(f'`{name}`' for name in given)} must be the same", field=next(iter(given)))
    return values.pop()


def _resource(body: Fields) -> str:
    """The project that `resource` names: `Type:id`, `Type::"id"`, or an object with `type` and `id`."""
    match body.members["resource"]:
        case str(text) if (found := _RESOURCE.fullmatch(text)) is not None:
            named = found["quoted"] if found["quoted"] is not None else found["plain"]
        case {"type": str(), "id": str(named)}:
            pass
        case _:
            raise body.wrong("resource", 'a text such as Type:id or Type::"id", or an object with `type` and `id`')
    return project(Fields({"id": named}, place="resource."), "id")


def _limit(body: Fields) -> int:
    return body.optional_integer("limit", least=1, most=limits.ARP_LIMIT) or limits.ARP_LIMIT_DEFAULT


def _max_tokens(body: Fields) -> int:
    least, most = limits.MEMORY_TOKENS
    return body.optional_integer("max_tokens", least=least, most=most) or limits.MEMORY_TOKENS_DEFAULT


def _text(body: Fields, name: str) -> str:
    """An identifier of another system: whatever has not the right form is one that nobody has."""
    return body.text(name, longest=limits.REF_CHARACTERS)


def _item(row: Memory) -> dict[str, object]:
    return {
        "id": row.id,
        "content": row.text,
        "source_path": row.id,
        "timestamp": stamp(row.created_at),
        "project_id": row.project_id,
        "classification": row.classification,
    }


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "arp.health",
        "GET",
        "/api/arp/health",
        "Say that the bridge is answered, and what it may ask for.",
        health,
        public="the network's bridge asks it before it has anything to ask; it says the same to everybody",
        strict=True,
        refusal=BRIDGE_PROBLEM,
        answers={200: wire.HEALTH},
    ),
    Operation(
        "arp.search_notes",
        "POST",
        "/api/arp/notes.search",
        "Search what a connection may see of a project.",
        search_notes,
        actions=("bridge.serve", "memory.search"),
        fields=wire.SEARCHED,
        strict=True,
        refusal=BRIDGE_PROBLEM,
        answers={200: wire.NOTES},
        problems=(422,),
    ),
    Operation(
        "arp.read_note",
        "POST",
        "/api/arp/notes.read",
        "Read one row that a connection may see.",
        read_note,
        actions=("bridge.serve", "memory.read"),
        fields=wire.READ,
        strict=True,
        refusal=BRIDGE_PROBLEM,
        answers={200: wire.NOTE},
        problems=(422,),
    ),
    Operation(
        "arp.query_knowledge",
        "POST",
        "/api/arp/knowledge.query",
        "Join what a connection may see of a project and fits a query best.",
        query_knowledge,
        actions=("bridge.serve", "memory.query"),
        fields=wire.ASKED,
        strict=True,
        refusal=BRIDGE_PROBLEM,
        answers={200: wire.KNOWLEDGE},
        problems=(422,),
    ),
    Operation(
        "arp.chat",
        "POST",
        "/api/web/chat",
        "Refuse free text, in the one way there is.",
        chat,
        actions=("bridge.chat",),
        unread=True,
        refusal=BRIDGE_PROBLEM,
        answers={200: ANYTHING},
        media="text/event-stream",
    ),
)
