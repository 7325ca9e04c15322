"""Peers, observers, events, facts, predictions and the rights of the person, on the wire."""

from __future__ import annotations

from gateway import limits
from gateway.model.records import PEER_TYPES
from gateway.operations.schema import (
    COUNT,
    FLAG,
    FUTURE,
    ID,
    NUMBER,
    OBJECT,
    TEXT,
    TIME,
    Maybe,
    Members,
    choice,
    matching,
    members,
    only,
    or_null,
    shape,
    some,
    text,
    unset,
    whole,
)
from gateway.operations.wire.agents import ASKABLE, RULES, TIER, UNDERSTOOD
from gateway.operations.wire.pages import STRETCH, page
from gateway.store.events import EVENT_TYPES

#: `approval_tendency:action|band|kind|recipient`
FACT_KEY = r"approval_tendency:[^|]*\|[^|]*\|[^|]*\|[^|\u0000]*"
CHOSEN_ID = r"[A-Za-z0-9_.:-]{1,128}"

OPENED: Members = {
    "peer_type": choice(*PEER_TYPES),
    "peer_ref": text(limits.REF_CHARACTERS),
    "display_name": unset(text(limits.NAME_CHARACTERS, 0)),
    "platform_connection_id": unset(ID),
    "observer_agent_ids": unset(some(ID, limits.OBSERVERS_PER_CALL)),
}
LISTED: Members = {"status": Maybe(choice("active", "archived")), **page()}
BUDGET: Members = {"budget": Maybe(whole(1))}
PREVIEWED: Members = {"agent_id": ID, **BUDGET}
OBSERVED: Members = {
    "observers": some(members({"agent_id": ID, "observer_expires_at": unset(FUTURE)}, closed=True), limits.OBSERVERS_PER_CALL)
}
RECORDED: Members = {"event_type": choice(*EVENT_TYPES), "content": OBJECT, "event_id": unset(matching(CHOSEN_ID))}
CORRECTED: Members = {"fact_key": matching(FACT_KEY, limits.EVENT_CONTENT_BYTES), "fact_value": OBJECT}
SUPPRESS: Members = {"suppress": Maybe(choice("true", "false"))}
REASON: Members = {"reason": unset(text(limits.TEXT_CHARACTERS, 0))}
PREDICTED: Members = {
    "action_type": ASKABLE,
    "effective_risk_tier": TIER,
    "payload": unset(OBJECT),
    "agent_id": unset(ID),
}
ASKING: Members = {"agent_id": ID}
PAUSED: Members = {"reading": FLAG, "learning": FLAG, "until": unset(FUTURE)}
READS: Members = {**STRETCH, "agent_id": Maybe(ID), **page()}

PEER = shape(
    "Peer",
    id=ID,
    peer_type=choice(*PEER_TYPES),
    peer_ref=TEXT,
    display_name=or_null(TEXT),
    platform_connection_id=or_null(ID),
    profile=OBJECT,
    status=choice("active", "archived"),
    observer_count=COUNT,
    created_at=TIME,
)
_OBSERVER: Members = {
    "agent_id": ID,
    "agent_name": or_null(TEXT),
    "added_by": TEXT,
    "added_at": TIME,
    "observer_expires_at": or_null(TIME),
}
OBSERVER = shape("Observer", **_OBSERVER)
PROVENANCE = some(
    shape(
        "ProvenanceEntry",
        type=choice("event", "tombstone", "human"),
        event_id=Maybe(TEXT),
        event_type=Maybe(TEXT),
        decision=Maybe(TEXT),
        at=TIME,
        source=Maybe(TEXT),
        user_id=Maybe(TEXT),
    )
)
_FACT: Members = {"fact_key": TEXT, "fact_value": OBJECT, "confidence": or_null(TEXT)}
FACT = shape("Fact", **_FACT, provenance=PROVENANCE, edited_by_human=FLAG, disputed=FLAG, updated_at=TIME)
ONE_PEER = shape(peer=PEER)
PEERS = shape(peers=some(PEER), total=COUNT)
PEER_WITH_FACTS = shape(peer=PEER, facts=some(FACT))
_CONTEXT: Members = {"context": TEXT, "characters": COUNT, "budget": COUNT, "facts_available": COUNT}
CONTEXT = shape("Context", **_CONTEXT)
OWN_CONTEXT = shape(peer_id=ID, **_CONTEXT)
PREVIEW = shape(
    agent_id=ID, allowed=FLAG, context=TEXT, characters=COUNT, budget=COUNT, cut=some(shape(fact_key=TEXT, reason=TEXT))
)
OBSERVERS = shape(peer=PEER, observers=some(OBSERVER))
EVENT = shape(event_id=TEXT)
ONE_FACT = shape(fact=FACT)
EXPLAINED_FACT = shape(
    fact=FACT,
    sentence=TEXT,
    bucket=shape(action_type=TEXT, amount_band=TEXT, recipient_kind=TEXT, recipient=TEXT),
    evidence=PROVENANCE,
    what_would_change_it=some(TEXT),
    replaced=or_null(OBJECT),
)
EDITED = shape(fact_key=TEXT, edited_by_human=only(True), note=TEXT)
DELETED = shape(deleted=only(True), suppressed=FLAG)
PREDICTION = shape(
    "Prediction",
    likelihood=or_null(NUMBER),
    reasoning=TEXT,
    suggest_auto=FLAG,
    understood=UNDERSTOOD,
    blocked_reason=Maybe(TEXT),
    next=Maybe(TEXT),
)
ASKED = shape(agent_id=ID, action_approval_policy=RULES)
_SUPPRESSION = shape("Suppression", fact_key=TEXT, at=TIME, by=TEXT)
SUPPRESSIONS = shape(suppressions=some(_SUPPRESSION))
PAUSE = shape(pause=shape("Pause", reading=FLAG, learning=FLAG, until=or_null(TIME)))
EXPORT = shape(
    "Export",
    peer=PEER,
    facts=some(
        shape(
            **_FACT,
            why_we_believe_this=PROVENANCE,
            corrected_by_a_human=FLAG,
            believed=FLAG,
            disputed=FLAG,
            replaced=or_null(OBJECT),
            updated_at=TIME,
        )
    ),
    raw_observations=some(
        shape(
            event_id=TEXT,
            event_type=TEXT,
            content=or_null(OBJECT),
            at=TIME,
            source=TEXT,
            fact_key=or_null(TEXT),
            decision=or_null(TEXT),
            learned=FLAG,
        )
    ),
    suppressions=some(_SUPPRESSION),
    observers=some(OBSERVER),
    removed_observers=some(shape(agent_id=ID, removed_at=TIME)),
    pending_derivations=some(shape(fact_key=TEXT, since=TIME)),
    note=TEXT,
)
ERASED = shape(deleted=only(True), facts_deleted=COUNT, observations_deleted=COUNT)
READERS = shape(readers=some(shape("Reader", peer_id=ID, **_OBSERVER, last_read_at=or_null(TIME), reads=COUNT, denials=COUNT)))
OWN_READS = shape(
    reads=some(
        shape(
            "Read",
            id=ID,
            at=TIME,
            peer_id=ID,
            agent_id=or_null(ID),
            agent_name=or_null(TEXT),
            user_id=or_null(ID),
            kind=TEXT,
            decision=TEXT,
            deny_kind=or_null(TEXT),
            facts_served=or_null(COUNT),
            decision_id=ID,
        )
    ),
    total=COUNT,
)
