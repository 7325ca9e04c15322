"""Me: who observes the person who asks, and each read of what is held about them."""

from __future__ import annotations

from gateway import limits
from gateway.operations.call import Call
from gateway.operations.fields import optional_stamp, stamp
from gateway.operations.operation import Operation, Reply
from gateway.operations.shapes import observer_object
from gateway.operations.wire import peers as wire
from gateway.store import reads as log
from gateway.store.reads import Read, ReadFilter, Tally

_NEVER = Tally(None, 0, 0)


async def readers(call: Call) -> Reply:
    """The agents on the lists of the caller's own peers, with how often each has read."""
    grant = call.access.authorize(call.session, "me.readers", call.org)
    mine = [peer for peer in call.state.peers_about(grant.caller.id) if not peer.archived]
    tallies = await call.read(log.tallies, grant, [peer.id for peer in mine])
    listed = []
    for peer in mine:
        for entry in sorted(call.state.live_observers(peer.id, call.now), key=lambda entry: (entry.added_at, entry.agent_id)):
            tally = tallies.get((peer.id, entry.agent_id), _NEVER)
            counts = {"last_read_at": optional_stamp(tally.last_read_at), "reads": tally.reads, "denials": tally.denials}
            listed.append({"peer_id": peer.id, **observer_object(call, entry), **counts})
    return Reply({"readers": listed})


async def reads(call: Call) -> Reply:
    """A page of the reads of the caller's own peers by others."""
    query = call.query
    which = ReadFilter(query.optional_timestamp("from"), query.optional_timestamp("to"), query.optional_id("agent_id"))
    limit = query.count("limit", least=1, most=limits.PAGE, default=50)
    offset = query.count("offset", least=0, most=10**9, default=0)
    grant = call.access.authorize(call.session, "me.reads", call.org)
    mine = [peer.id for peer in call.state.peers_about(grant.caller.id)]
    page, total = await call.read(log.reads, grant, mine, which, limit=limit, offset=offset)
    return Reply({"reads": [_read(call, read) for read in page], "total": total})


def _read(call: Call, read: Read) -> dict[str, object]:
    agent = None if read.agent_id is None else call.state.agents.get(read.agent_id)
    return {
        "id": read.id,
        "at": stamp(read.at),
        "peer_id": read.peer_id,
        "agent_id": read.agent_id,
        "agent_name": None if agent is None else agent.name,
        "user_id": read.user_id,
        "kind": read.kind,
        "decision": read.decision,
        "deny_kind": read.deny_kind,
        "facts_served": read.facts_served,
        "decision_id": read.id,
    }


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "me.readers",
        "GET",
        "/v1/me/readers",
        "List the agents that observe the person who asks.",
        readers,
        actions=("me.readers",),
        strict=True,
        answers={200: wire.READERS},
    ),
    Operation(
        "me.reads",
        "GET",
        "/v1/me/reads",
        "List each read of what is held about the person who asks.",
        reads,
        actions=("me.reads",),
        query=wire.READS,
        strict=True,
        answers={200: wire.OWN_READS},
    ),
)
