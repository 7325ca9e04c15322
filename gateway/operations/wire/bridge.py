"""What the bridge of the ARP network asks and is answered, on the wire."""

from __future__ import annotations

from gateway import limits
from gateway.model.memory import TIERS
from gateway.operations.schema import (
    ID,
    OBJECT,
    TEXT,
    TIME,
    Maybe,
    Members,
    choice,
    either,
    members,
    only,
    or_null,
    shape,
    some,
    text,
    whole,
)
from gateway.operations.wire.memory import PROJECT, QUERY, TAGS, TOKENS

_REF = text(limits.REF_CHARACTERS)
#: The bridge says who asks over which connection, and what is to be done to the answer. All else is the remote agent's word.
_ENVELOPE: Members = {
    "connection_id": _REF,
    "source_did": _REF,
    "obligations": some(members({"type": TEXT, "params": OBJECT}, closed=True)),
}


def _asked(action: str, *, query: bool) -> Members:
    return {
        **_ENVELOPE,
        "action": Maybe(only(action)),
        "text": Maybe(TEXT),
        "collection_id": Maybe(PROJECT),
        "kb_id": Maybe(PROJECT),
        "project_id": Maybe(PROJECT),
        "query": QUERY if query else Maybe(QUERY),
        "tags": Maybe(TAGS),
        "limit": Maybe(whole(1, limits.ARP_LIMIT)),
        "max_tokens": Maybe(TOKENS),
        "resource": Maybe(either(TEXT, members({"type": TEXT, "id": PROJECT}))),
        "context": Maybe(OBJECT),
    }


SEARCHED = _asked("notes.search", query=True)
READ: Members = {**_asked("notes.read", query=False), "source_path": Maybe(_REF), "id": Maybe(_REF)}
ASKED = _asked("knowledge.query", query=True)

# An obligation may take any of its members out of an answer.
_NOTE = shape(
    "Note",
    id=Maybe(ID),
    content=Maybe(TEXT),
    source_path=Maybe(ID),
    timestamp=Maybe(TIME),
    project_id=Maybe(or_null(TEXT)),
    classification=Maybe(choice(*TIERS)),
)
_REDACTED: Members = {"ok": only(True), "redactions_applied": Maybe(some(TEXT))}
NOTES = shape(**_REDACTED, items=some(_NOTE))
NOTE = shape(**_REDACTED, item=_NOTE)
KNOWLEDGE = shape(
    **_REDACTED,
    answer=TEXT,
    sources=some(shape(source_path=Maybe(ID), content=Maybe(TEXT), project_id=Maybe(or_null(TEXT)))),
)
HEALTH = shape(ok=only(True), endpoints=some(TEXT))
