"""Events: what an observer or a human records about a person, and the person takes back."""

from __future__ import annotations

import re
from collections.abc import Mapping

from derive.amounts import AmountError, read_amount
from derive.events import decision_of
from gateway import limits
from gateway.errors import Conflict, Invalid
from gateway.model.proposal import MAX_ACTION, check_action
from gateway.operations.call import Call, path_id
from gateway.operations.fields import Fields
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.wire import peers as wire
from gateway.store import events
from gateway.store.canonical import canonical
from gateway.store.events import EVENT_TYPES as EVENT_TYPES  # where a surface looks for it
from gateway.store.events import Judgement, PostedEvent

_CHOSEN_ID = re.compile(wire.CHOSEN_ID)


async def record(call: Call) -> Reply:
    """Record what an agent has seen of a person."""
    posted = _posted(call)
    grant = call.access.authorize(call.session, "peer.record_event", call.peer(call.path["id"]))
    if grant.target.archived:
        raise Conflict("this peer is archived: nothing more is recorded about it")
    event_id = await call.write(events.record_event, grant, posted)
    return Reply({"event_id": event_id}, 201)


async def delete(call: Call) -> Reply:
    """Delete an event, and derive again what rested on it."""
    grant = call.access.authorize(call.session, "peer.delete_event", call.peer(call.path["id"]))
    await call.write(events.delete_event, grant, path_id(call, "event_id"))
    return NO_CONTENT


def _posted(call: Call) -> PostedEvent:
    body = call.body
    event_type = body.choice("event_type", EVENT_TYPES)
    content = body.object("content")
    size = len(canonical(content))
    if size > limits.EVENT_CONTENT_BYTES:
        most = limits.EVENT_CONTENT_BYTES
        raise Invalid(f"`content` is {size} bytes of canonical JSON; at most {most} are allowed", field="content")
    judgement = _judgement(content) if event_type == "approval" else None
    learn = judgement is None or call.org.settings.learn_from_posted_events
    return PostedEvent(event_type, content, judgement, _chosen_id(body), learn)


def _chosen_id(body: Fields) -> str | None:
    chosen = body.optional_text("event_id", longest=128)
    if chosen is not None and not _CHOSEN_ID.fullmatch(chosen):
        raise body.wrong("event_id", "1 to 128 of A-Z, a-z, 0-9, `_`, `.`, `:` and `-`")
    return chosen


def _judgement(content: Mapping[str, object]) -> Judgement:
    told = Fields(content, place="content.")
    action = told.text("action", longest=MAX_ACTION)
    check_action(action, field="content.action")
    decision = decision_of(content.get("decision"))
    if decision is None:
        raise told.wrong("decision", "approved or rejected")
    payload = told.optional_object("payload") or {}
    try:
        read_amount(payload)
    except AmountError as wrong:
        raise Invalid(f"`content.payload` {wrong}", field="content.payload") from wrong
    return Judgement(action, decision, payload)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "peer.record_event",
        "POST",
        "/v1/peers/{id}/events",
        "Record what happened between a person and an agent.",
        record,
        actions=("peer.record_event",),
        fields=wire.RECORDED,
        answers={201: wire.EVENT},
    ),
    Operation(
        "peer.delete_event",
        "DELETE",
        "/v1/peers/{id}/events/{event_id}",
        "Delete an event; where it spoke for a fact, a tombstone stays.",
        delete,
        actions=("peer.delete_event",),
        strict=True,
        answers={204: None},
    ),
)
