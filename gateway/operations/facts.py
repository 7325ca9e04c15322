"""Facts: why one is believed, and how the person corrects, disputes or deletes it."""

from __future__ import annotations

from derive.buckets import bucket_of_key
from derive.corrections import CorrectionError, check_correction
from derive.facts import sentence
from gateway import limits
from gateway.errors import Invalid
from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.operations.peer_context import bury_what_expired
from gateway.operations.shapes import fact_object
from gateway.operations.wire import peers as wire
from gateway.store import facts
from gateway.store.canonical import canonical
from gateway.store.facts import FactWithBasis

NOTE = "corrected by a human: derivation does not overwrite it"


async def read(call: Call) -> Reply:
    """A fact, why it is believed, and what would change it."""
    grant = call.access.authorize(call.session, "peer.read_fact", call.peer(call.path["id"]))
    await bury_what_expired(call, grant)
    fact = await call.read(facts.fact, grant, call.path["key"])
    grant.note(kind="fact", facts_served=1)
    bucket = bucket_of_key(fact.belief.fact_key)
    shown = fact_object(fact, call.session.caller)
    return Reply(
        {
            "fact": shown,
            "sentence": sentence(fact.belief),
            "bucket": {
                "action_type": bucket.action_type,
                "amount_band": bucket.amount_band,
                "recipient_kind": bucket.recipient_kind,
                "recipient": bucket.recipient,
            },
            "evidence": shown["provenance"],
            "what_would_change_it": _what_would_change(fact),
            "replaced": fact.replaced,
        }
    )


async def correct(call: Call) -> Reply:
    """Put a human's own words in the place of a fact."""
    fact_key = call.body.text("fact_key", longest=limits.EVENT_CONTENT_BYTES)
    fact_value = call.body.object("fact_value")
    try:
        bucket_of_key(fact_key)
        check_correction(fact_value)
    except CorrectionError as wrong:
        raise Invalid(f"`fact_value` {wrong}", field=f"fact_value.{wrong.field}") from wrong
    except ValueError as wrong:
        raise call.body.wrong("fact_key", "a key as facts have it: `approval_tendency:action|band|kind|recipient`") from wrong
    if len(canonical(fact_value)) > limits.EVENT_CONTENT_BYTES:
        raise Invalid(f"`fact_value` is over {limits.EVENT_CONTENT_BYTES} bytes of canonical JSON", field="fact_value")
    grant = call.access.authorize(call.session, "peer.edit_fact", call.peer(call.path["id"]))
    await call.write(facts.correct_fact, grant, fact_key, fact_value)
    return Reply({"fact_key": fact_key, "edited_by_human": True, "note": NOTE})


async def delete(call: Call) -> Reply:
    """Delete a fact with what it rests on; on request it is not learned again."""
    suppress = call.query.optional_choice("suppress", ("true", "false"), "false") == "true"
    grant = call.access.authorize(call.session, "peer.delete_fact", call.peer(call.path["id"]))
    await call.write(facts.delete_fact, grant, call.path["key"], suppress=suppress)
    return Reply({"deleted": True, "suppressed": suppress})


async def dispute(call: Call) -> Reply:
    """Stop believing a fact until the dispute is withdrawn."""
    reason = call.body.optional_text("reason", longest=limits.TEXT_CHARACTERS)
    return await _dispute(call, disputed=True, reason=reason)


async def withdraw_dispute(call: Call) -> Reply:
    """Believe a disputed fact again."""
    return await _dispute(call, disputed=False, reason=None)


async def _dispute(call: Call, *, disputed: bool, reason: str | None) -> Reply:
    grant = call.access.authorize(call.session, "peer.dispute_fact", call.peer(call.path["id"]))
    fact = await call.write(facts.dispute_fact, grant, call.path["key"], disputed=disputed, reason=reason)
    return Reply({"fact": fact_object(fact, call.session.caller)})


def _what_would_change(fact: FactWithBasis) -> list[str]:
    belief = fact.belief
    if belief.edited_by_human:
        return [
            "You correct it again.",
            "You delete it.",
            "No decision changes it: it is the person's own word.",
        ]
    opposite = "rejection" if belief.fact_value["decision"] == "approved" else "approval"
    same = "approval" if opposite == "rejection" else "rejection"
    return [
        f"One {opposite} of a comparable request retires it at once.",
        f"Each further {same} of a comparable request supports it more.",
        "Correcting it puts the person's own word in its place.",
        "Disputing it keeps it out of contexts and predictions.",
        "Deleting it forgets what it rests on; with `suppress` it is never learned again.",
    ]


_KEY = "/v1/peers/{id}/facts/{key}"

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "peer.edit_fact",
        "PATCH",
        "/v1/peers/{id}/facts",
        "Correct what is believed about a person.",
        correct,
        actions=("peer.edit_fact",),
        fields=wire.CORRECTED,
        answers={200: wire.EDITED},
    ),
    Operation(
        "peer.read_fact",
        "GET",
        _KEY,
        "Show why a fact is believed and what would change it.",
        read,
        actions=("peer.read_fact",),
        strict=True,
        answers={200: wire.EXPLAINED_FACT},
    ),
    Operation(
        "peer.delete_fact",
        "DELETE",
        _KEY,
        "Delete a fact; with `suppress`, never learn it again.",
        delete,
        actions=("peer.delete_fact",),
        query=wire.SUPPRESS,
        strict=True,
        answers={200: wire.DELETED},
    ),
    Operation(
        "peer.dispute_fact",
        "POST",
        f"{_KEY}/dispute",
        "Dispute a fact: contexts and predictions leave it out.",
        dispute,
        actions=("peer.dispute_fact",),
        fields=wire.REASON,
        strict=True,
        answers={200: wire.ONE_FACT},
    ),
    Operation(
        "peer.withdraw_dispute",
        "DELETE",
        f"{_KEY}/dispute",
        "Withdraw a dispute.",
        withdraw_dispute,
        actions=("peer.dispute_fact",),
        strict=True,
        answers={200: wire.ONE_FACT},
    ),
)
