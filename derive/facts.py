"""Facts: what is believed about a person, as a sentence and as a prediction."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from derive.buckets import Bucket, bucket_of_key, fact_key
from derive.corrections import TEXT_LIMIT
from derive.events import Decision
from derive.neutralise import neutralise
from derive.rules.approval_tendency import MINIMUM, likelihood

_SENTENCE_LIMIT = 500
_RECIPIENT_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Belief:
    """Holds a stored fact; after a correction its value is the person's own and its confidence None."""

    fact_key: str
    fact_value: Mapping[str, object]
    confidence: str | None
    edited_by_human: bool
    disputed: bool
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Prediction:
    """Holds how likely approval is, from 0 to 0.95, or None; and one sentence that says why."""

    likelihood: Decimal | None
    reasoning: str


_NO_HISTORY = Prediction(None, "No comparable requests were decided so far (0).")


def sentence(belief: Belief) -> str:
    """Gives the belief as one line that a person could read aloud; nothing of a third party enters it raw."""
    subject = _subject(bucket_of_key(belief.fact_key))
    value = belief.fact_value
    if not belief.edited_by_human:
        words = f"This person {value['decision']} all {value['observations']} requests for {subject}."
        return neutralise(words, limit=_SENTENCE_LIMIT)
    if text := _own_words(belief):
        return text
    match value.get("decision"):
        case "approved":
            words = f"This person says that they approve requests for {subject}."
        case "rejected":
            words = f"This person says that they reject requests for {subject}."
        case _:
            words = f"This person has corrected what was believed about requests for {subject}."
    return neutralise(words, limit=_SENTENCE_LIMIT)


def predict(bucket: Bucket, approved: int, rejected: int, belief: Belief | None, *, visible: bool = True) -> Prediction:
    """Predicts from the comparable decisions so far, tombstones included; a person's own word comes first.

    `belief` is the bucket's fact, None when there is none; ValueError when it is another bucket's. What is
    not `visible` (paused, suppressed) gets exactly the answer of a bucket without a history.
    """
    if belief is not None and belief.fact_key != fact_key(bucket):
        raise ValueError("the belief is of another bucket")
    if not visible:
        return _NO_HISTORY
    if belief is not None and belief.disputed:
        return Prediction(None, f"The person disputes what comparable decisions say ({approved + rejected}).")
    if belief is not None and belief.edited_by_human:
        return _predict_corrected(belief)
    return _predict_history(approved, rejected)


def _predict_corrected(belief: Belief) -> Prediction:
    chance: Decimal | None = None
    words = "no decision is given."
    match belief.fact_value.get("decision"):
        case "approved":
            chance, words = Decimal("0.95"), "comparable requests are approved."
        case "rejected":
            chance, words = Decimal("0.05"), "comparable requests are rejected."
    return Prediction(chance, f"Corrected by the person: {_own_words(belief) or words}")


def _predict_history(approved: int, rejected: int) -> Prediction:
    total = approved + rejected
    if total == 0:
        return _NO_HISTORY
    if total < MINIMUM:
        decisions = "decision" if total == 1 else "decisions"
        return Prediction(None, f"Only {total} comparable {decisions} so far, too few for a tendency.")
    if approved and rejected:
        return Prediction(None, f"Decided both ways so far ({approved} of {total} approved), no tendency.")
    decision: Decision = "approved" if approved else "rejected"
    chance = likelihood(decision, total)
    return Prediction(chance, f"All comparable requests were {decision} so far ({total}).")


def _own_words(belief: Belief) -> str:
    text = belief.fact_value.get("text")
    return neutralise(text, limit=TEXT_LIMIT) if isinstance(text, str) else ""


def _subject(bucket: Bucket) -> str:
    return f'"{bucket.action_type}" {_amount_words(bucket.amount_band)} {_recipient_words(bucket)}'


def _amount_words(band: str) -> str:
    match band:
        case "none":
            return "without an amount"
        case "unknown":
            return "of an amount not known in USD"
        case _ if band.endswith("+"):
            return f"of {band[:-1]} USD or more"
        case _:
            return f"of {band.replace('-', ' to under ')} USD"


def _recipient_words(bucket: Bucket) -> str:
    if bucket.recipient_kind == "none":
        return "and without a recipient"
    # INVARIANT: the recipient stays inside its quotes, so that its words cannot pass for ours: neutralise leaves no
    # quotation mark but the one that is replaced here.
    quoted = neutralise(bucket.recipient, limit=_RECIPIENT_LIMIT).replace('"', "'")
    return f'to the {bucket.recipient_kind} recipient "{quoted}"'
