"""Approval tendency: the person decides comparable requests always the same way."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from derive.buckets import Bucket
from derive.events import Decision, Observation, Tombstone, rfc3339

MINIMUM = 3  # two is a coincidence
_CEILING = Decimal("0.95")  # however long the history, it stays below certainty


@dataclass(frozen=True, slots=True)
class Tendency:
    """Says that every one of at least MINIMUM decisions in a bucket was the same, and between which times."""

    bucket: Bucket
    decision: Decision
    observations: int
    approved: int
    rejected: int
    first_at: datetime
    last_at: datetime
    confidence: str

    def fact_value(self) -> dict[str, object]:
        """Gives the fact as JSON values, times in RFC 3339."""
        return {
            "action_type": self.bucket.action_type,
            "amount_band": self.bucket.amount_band,
            "recipient_kind": self.bucket.recipient_kind,
            "recipient": self.bucket.recipient,
            "decision": self.decision,
            "observations": self.observations,
            "approved": self.approved,
            "rejected": self.rejected,
            "first_at": rfc3339(self.first_at),
            "last_at": rfc3339(self.last_at),
        }


def derive_tendency(bucket: Bucket, observations: Iterable[Observation], tombstones: Iterable[Tombstone]) -> Tendency | None:
    """Gives the tendency of a bucket's whole history; None below MINIMUM decisions or when one dissents.

    The order does not matter. An event given twice counts once. An id belongs to its source: two sources may
    use the same; one that comes with both decisions is a dissent. A tombstone counts as its event did.
    """
    live, buried = tuple(observations), tuple(tombstones)
    once = {(each.source, each.event_id, each.decision) for each in live}
    decisions = [*(decision for _, _, decision in once), *(each.decision for each in buried)]
    total, approved = len(decisions), decisions.count("approved")
    if total < MINIMUM or approved not in (0, total):
        return None
    times = [*(each.at for each in live), *(each.at for each in buried)]
    return Tendency(
        bucket=bucket,
        decision="approved" if approved else "rejected",
        observations=total,
        approved=approved,
        rejected=total - approved,
        first_at=min(times),
        last_at=max(times),
        confidence=confidence(total),
    )


def confidence(n: int) -> str:
    """Tells how sure n decisions make a tendency: 0.95 x (n+1)/(n+2), two decimals, half up: "0.83" for 6."""
    return str(_share(n + 1, n + 2))


def likelihood(tendency_decision: Decision, n: int) -> Decimal:
    """Gives how likely approval is after n decisions, all the same: 0.95 x (approved+1)/(n+2)."""
    return _share(n + 1 if tendency_decision == "approved" else 1, n + 2)


def _share(part: int, whole: int) -> Decimal:
    return (_CEILING * part / whole).quantize(Decimal("0.01"), ROUND_HALF_UP)
