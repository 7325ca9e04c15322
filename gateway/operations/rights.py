"""Rights of the person: be asked, be forgotten, pause, take everything along, and have everything erased."""

from __future__ import annotations

from dataclasses import replace

from derive.buckets import bucket_of_key
from gateway.model.records import Pause
from gateway.operations import person_data
from gateway.operations.call import Call
from gateway.operations.fields import optional_stamp, stamp
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.wire import peers as wire
from gateway.store import asking, facts, peers, suppressions


async def ask_me(call: Call) -> Reply:
    """Have an agent ask every time about what a fact is about."""
    agent_id = call.body.id("agent_id")
    grant = call.access.authorize(call.session, "peer.ask_me", call.peer(call.path["id"]))
    fact = await call.read(facts.fact, grant, call.path["key"])
    action_type = bucket_of_key(fact.belief.fact_key).action_type
    rules = await call.write_alone(asking.ask_me, grant, agent_id, action_type)
    return Reply({"agent_id": agent_id, "action_approval_policy": rules.source})


async def list_suppressions(call: Call) -> Reply:
    """What is not to be learned again about a person."""
    grant = call.access.authorize(call.session, "peer.read_suppressions", call.peer(call.path["id"]))
    found = await call.read(suppressions.suppressions, grant)
    return Reply({"suppressions": [{"fact_key": each.fact_key, "at": stamp(each.at), "by": each.by} for each in found]})


async def lift_suppression(call: Call) -> Reply:
    """Let one thing be learned again."""
    grant = call.access.authorize(call.session, "peer.lift_suppression", call.peer(call.path["id"]))
    await call.write(suppressions.lift_suppression, grant, call.path["key"])
    return NO_CONTENT


async def read_pause(call: Call) -> Reply:
    """Whether reading and learning are paused now."""
    grant = call.access.authorize(call.session, "peer.read_pause", call.peer(call.path["id"]))
    return _pause(call, grant.target.pause)


async def set_pause(call: Call) -> Reply:
    """Pause or resume reading and learning."""
    body = call.body
    pause = Pause(body.boolean("reading"), body.boolean("learning"), body.optional_timestamp("until"))
    if pause.until is not None and pause.until <= call.now:
        raise body.wrong("until", "in the future")
    grant = call.access.authorize(call.session, "peer.set_pause", call.peer(call.path["id"]))
    return _pause(call, await call.write_alone(peers.set_pause, grant, pause))


def _pause(call: Call, pause: Pause) -> Reply:
    """The switches as they stand now: after its end a pause is none."""
    if pause.until is not None and pause.until <= call.now:
        pause = replace(pause, reading=False, learning=False, until=None)
    return Reply({"pause": {"reading": pause.reading, "learning": pause.learning, "until": optional_stamp(pause.until)}})


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "peer.ask_me",
        "POST",
        "/v1/peers/{id}/facts/{key}/ask-me",
        "Have an agent ask about this kind of action every time.",
        ask_me,
        actions=("peer.ask_me",),
        fields=wire.ASKING,
        strict=True,
        answers={200: wire.ASKED},
    ),
    Operation(
        "peer.read_suppressions",
        "GET",
        "/v1/peers/{id}/suppressions",
        "List what is not to be learned again.",
        list_suppressions,
        actions=("peer.read_suppressions",),
        strict=True,
        answers={200: wire.SUPPRESSIONS},
    ),
    Operation(
        "peer.lift_suppression",
        "DELETE",
        "/v1/peers/{id}/suppressions/{key}",
        "Let something be learned again.",
        lift_suppression,
        actions=("peer.lift_suppression",),
        strict=True,
        answers={204: None},
    ),
    Operation(
        "peer.read_pause",
        "GET",
        "/v1/peers/{id}/pause",
        "Show whether reading and learning are paused.",
        read_pause,
        actions=("peer.read_pause",),
        strict=True,
        answers={200: wire.PAUSE},
    ),
    Operation(
        "peer.set_pause",
        "PUT",
        "/v1/peers/{id}/pause",
        "Pause or resume reading and learning.",
        set_pause,
        actions=("peer.set_pause",),
        fields=wire.PAUSED,
        strict=True,
        answers={200: wire.PAUSE},
    ),
    *person_data.OPERATIONS,
)
