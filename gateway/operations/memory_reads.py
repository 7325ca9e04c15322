"""Reading memory: listed, searched, and as passages for a model."""

from __future__ import annotations

from dataclasses import replace

from gateway import limits
from gateway.errors import Invalid
from gateway.model.memory import Narrow
from gateway.operations.call import Call
from gateway.operations.fields import Fields
from gateway.operations.memory_agent import named_agent
from gateway.operations.memory_fields import narrow_of_body, narrow_of_query, project, refuse_nulls
from gateway.operations.memory_shapes import page_object, passages_object
from gateway.operations.operation import Operation, Reply
from gateway.operations.recall import Recall, passages, recall
from gateway.operations.wire import memory as wire
from gateway.store.words import terms


async def list_memories(call: Call) -> Reply:
    """Rows of an agent, newest first."""
    query = call.query
    agent, asked = named_agent(call, query), _listed(query, narrow_of_query(query))
    if call.session.caller.type == "Connection" and "state" in query:
        raise Invalid("`state` is for the owner: a connection sees what counts now", field="state")
    live = query.optional_choice("state", ("live", "all"), "live") == "live"
    grant = call.access.plan(call.session, "memory.search", agent, live=live)
    return Reply(page_object(await recall(call, grant, asked), call.session.caller))


async def list_untagged(call: Call) -> Reply:
    """Rows without a project, which no grant reaches."""
    agent, asked = named_agent(call, call.query), _listed(call.query, Narrow(untagged=True))
    call.access.authorize(call.session, "memory.list_untagged", agent)
    grant = call.access.plan(call.session, "memory.search", agent)
    return Reply(page_object(await recall(call, grant, asked), call.session.caller))


async def search(call: Call) -> Reply:
    """Rows that fit a query, best first."""
    body = call.body
    refuse_nulls(body)
    agent = named_agent(call, body)
    asked = Recall(
        _narrowed(body),
        read_query(body),
        body.optional_choice("mode", wire.MODES, "keyword"),
        body.optional_integer("limit", least=1, most=limits.PAGE) or limits.MEMORIES_FOUND_DEFAULT,
        read_cursor(body),
    )
    grant = call.access.plan(call.session, "memory.search", agent)
    return Reply(page_object(await recall(call, grant, asked), call.session.caller, scored=True))


async def query(call: Call) -> Reply:
    """The texts that fit a query best, as one, within a budget."""
    body = call.body
    refuse_nulls(body)
    agent = named_agent(call, body)
    project(body)
    least, most = limits.MEMORY_TOKENS
    tokens = body.optional_integer("max_tokens", least=least, most=most) or limits.MEMORY_TOKENS_DEFAULT
    asked = Recall(_narrowed(body), read_query(body), body.optional_choice("mode", wire.MODES, "keyword"))
    grant = call.access.plan(call.session, "memory.query", agent)
    return Reply(passages_object(await passages(call, grant, asked, tokens)))


def read_query(body: Fields, field: str = "query") -> str:
    """The text that is searched for, without white space around it."""
    value = body.members.get(field)
    text = value.strip() if isinstance(value, str) else ""
    if not 1 <= len(text) <= limits.MEMORY_QUERY_CHARACTERS:
        raise body.wrong(field, f"a text of 1 to {limits.MEMORY_QUERY_CHARACTERS} characters")
    return text


def read_cursor(fields: Fields) -> str | None:
    """Where an earlier page ended."""
    return fields.optional_text("cursor", longest=limits.CURSOR_CHARACTERS, shortest=1)


def _narrowed(body: Fields) -> Narrow:
    """What a search narrows itself to: a query without a token finds nothing, by whichever mode."""
    narrow = narrow_of_body(body)
    return narrow if terms(read_query(body)) else replace(narrow, layers=())


def _listed(query: Fields, narrow: Narrow) -> Recall:
    limit = query.count("limit", least=1, most=limits.PAGE, default=limits.MEMORIES_LISTED_DEFAULT)
    return Recall(narrow, limit=limit, cursor=read_cursor(query))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.list",
        "GET",
        "/v1/memories",
        "List what an agent remembers, newest first.",
        list_memories,
        actions=("memory.search",),
        query=wire.LISTED,
        repeated=("tag", "layer", "classification"),
        strict=True,
        answers={200: wire.MEMORIES},
    ),
    Operation(
        "memory.list_untagged",
        "GET",
        "/v1/memories/untagged",
        "List what no grant can reach, because it belongs to no project.",
        list_untagged,
        actions=("memory.list_untagged", "memory.search"),
        query=wire.UNTAGGED,
        strict=True,
        answers={200: wire.MEMORIES},
    ),
    Operation(
        "memory.search",
        "POST",
        "/v1/memories/search",
        "Search what an agent remembers, by words, by meaning or by both.",
        search,
        actions=("memory.search",),
        fields=wire.SEARCHED,
        strict=True,
        answers={200: wire.FOUND},
    ),
    Operation(
        "memory.query",
        "POST",
        "/v1/memories/query",
        "Join the memories of a project that fit a query best, within a budget of tokens.",
        query,
        actions=("memory.query",),
        fields=wire.JOINED,
        strict=True,
        answers={200: wire.PASSAGES},
    ),
)
