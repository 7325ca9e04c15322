"""Shapes: rows of memory as the wire shows them."""

from __future__ import annotations

from gateway.model.caller import Caller
from gateway.model.memory import Memory
from gateway.model.strictest import Labelled
from gateway.operations.fields import optional_stamp, stamp
from gateway.operations.recall import Answer, Passages

Shown = dict[str, object]


def memory_object(row: Memory, viewer: Caller) -> Shown:
    """A row as this viewer sees it: whoever does not own it not who else said it, nor when it ends."""
    return owner_shape(row) if viewer.type in ("Human", "Agent") else shared_shape(row)


def shared_shape(row: Memory) -> Shown:
    """A row as a connection sees it."""
    return {
        "id": row.id,
        "layer": row.layer,
        "text": row.text,
        "project_id": row.project_id,
        "tags": list(row.tags),
        "classification": row.classification,
        "created_at": stamp(row.created_at),
    }


def owner_shape(row: Memory) -> Shown:
    """A row as its owner sees it."""
    return {
        **shared_shape(row),
        "agent_id": row.agent_id,
        "connection_id": row.connection_id,
        "source_did": row.source_did,
        "expires_at": optional_stamp(row.expires_at),
        "retracted_at": optional_stamp(row.retracted_at),
        "superseded_by": row.superseded_by,
        "derived_from": list(row.derived_from),
        "provenance": [{"connection_id": each.connection_id, "source_did": each.source_did} for each in row.provenance],
        **_of_layer(row),
    }


def _of_layer(row: Memory) -> Shown:
    extra = row.extra
    match row.layer:
        case "timeline":
            return {"title": extra.title, "occurred_at": optional_stamp(extra.occurred_at)}
        case "session":
            started, ended = optional_stamp(extra.started_at), optional_stamp(extra.ended_at)
            return {"channel": extra.channel, "started_at": started, "ended_at": ended}
        case "fact" | "chunk":
            return {}


def labels_object(row: Labelled) -> Shown:
    """What grants reach a row by."""
    return {"project_id": row.project_id, "tags": list(row.tags), "classification": row.classification}


def page_object(answer: Answer, viewer: Caller, *, scored: bool = False) -> Shown:
    """A page of rows, with how well each fits a query when there was one."""
    return {
        "items": [memory_object(item.row, viewer) | ({"score": item.score} if scored else {}) for item in answer.items],
        "total": answer.total,
        "next_cursor": answer.next_cursor,
        "incomplete": list(answer.incomplete),
    }


def passages_object(made: Passages) -> Shown:
    """Passages and the rows they are of."""
    return {
        "answer": made.answer,
        "sources": [
            {
                "id": row.id,
                "layer": row.layer,
                "project_id": row.project_id,
                "classification": row.classification,
                "created_at": stamp(row.created_at),
            }
            for row in made.rows
        ],
        "tokens": made.tokens,
        "incomplete": list(made.incomplete),
    }
