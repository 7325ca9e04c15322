"""A tendency is at least three decisions, all the same, in any order."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derive.buckets import Bucket
from derive.events import Decision, Observation, Tombstone
from derive.provenance import entry, tombstone_entry
from derive.rules.approval_tendency import MINIMUM, Tendency, confidence, derive_tendency, likelihood

BUCKET = Bucket("refund.create", "0-10", "known", "a@b.co")
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def observed(number: int, decision: Decision = "approved", source: str = "gateway") -> Observation:
    return Observation(f"e{number}", "approval", decision, START + number * DAY, source)


def buried(number: int, decision: Decision = "approved") -> Tombstone:
    return Tombstone("approval", decision, START + number * DAY)


DECISIONS = st.sampled_from(("approved", "rejected"))
OBSERVATIONS = st.one_of(
    st.lists(st.builds(observed, st.integers(0, 9), DECISIONS, st.sampled_from(("gateway", "agent:a"))), max_size=9),
    st.lists(st.builds(observed, st.integers(0, 9)), max_size=9),
)
TOMBSTONES = st.one_of(
    st.lists(st.builds(buried, st.integers(0, 9), DECISIONS), max_size=4),
    st.lists(st.builds(buried, st.integers(0, 9)), max_size=4),
)


def test_six_approvals_of_six_are_a_tendency() -> None:
    tendency = derive_tendency(BUCKET, [observed(n) for n in range(6)], [])
    assert tendency == Tendency(
        BUCKET,
        "approved",
        6,
        approved=6,
        rejected=0,
        first_at=START,
        last_at=START + 5 * DAY,
        confidence="0.83",
    )


def test_three_rejections_of_three_are_a_tendency_too() -> None:
    tendency = derive_tendency(BUCKET, [observed(n, "rejected") for n in range(3)], [])
    assert tendency is not None
    assert tendency.fact_value() == {
        "action_type": "refund.create",
        "amount_band": "0-10",
        "recipient_kind": "known",
        "recipient": "a@b.co",
        "decision": "rejected",
        "observations": 3,
        "approved": 0,
        "rejected": 3,
        "first_at": "2026-01-01T00:00:00Z",
        "last_at": "2026-01-03T00:00:00Z",
    }
    assert tendency.confidence == "0.76"


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_decisions_are_no_tendency(count: int) -> None:
    assert derive_tendency(BUCKET, [observed(n) for n in range(count)], []) is None


def test_one_dissent_among_many_is_no_tendency() -> None:
    assert derive_tendency(BUCKET, [*(observed(n) for n in range(9)), observed(9, "rejected")], []) is None


def test_a_tombstone_counts_as_its_event_did() -> None:
    tendency = derive_tendency(BUCKET, [observed(5)], [buried(0), buried(1)])
    assert tendency is not None
    assert (tendency.observations, tendency.first_at) == (3, START)
    assert derive_tendency(BUCKET, [observed(n) for n in range(3)], [buried(0, "rejected")]) is None


def test_a_fact_of_tombstones_alone_stays() -> None:
    assert derive_tendency(BUCKET, [], [buried(0), buried(0), buried(0)]) is not None


def test_two_sources_may_use_the_same_id() -> None:
    events = [observed(1, source=source) for source in ("gateway", "agent:a", "agent:b")]
    assert derive_tendency(BUCKET, events, []) is not None


def test_an_id_that_comes_with_both_decisions_is_a_dissent() -> None:
    events = [*(observed(n) for n in range(3)), observed(2, "rejected")]
    assert derive_tendency(BUCKET, events, []) is derive_tendency(BUCKET, events[::-1], []) is None


@given(OBSERVATIONS, TOMBSTONES, st.randoms(use_true_random=False))
def test_any_order_gives_the_same_fact_and_twice_is_once(
    events: list[Observation], tombstones: list[Tombstone], random: Random
) -> None:
    shuffled, turned = [*events, *events], list(tombstones)
    random.shuffle(shuffled)
    random.shuffle(turned)
    fact = derive_tendency(BUCKET, events, tombstones)
    assert derive_tendency(BUCKET, shuffled, turned) == fact
    assert derive_tendency(BUCKET, iter(shuffled), iter(turned)) == fact


@given(OBSERVATIONS, TOMBSTONES)
def test_every_fact_names_its_basis(events: list[Observation], tombstones: list[Tombstone]) -> None:
    basis = [*map(entry, set(events)), *map(tombstone_entry, tombstones)]
    fact = derive_tendency(BUCKET, events, tombstones)
    if fact is None:
        assert len(basis) < MINIMUM or len({each["decision"] for each in basis}) == 2
    else:
        value = fact.fact_value()
        assert len(basis) == fact.observations == fact.approved + fact.rejected
        assert {each["decision"] for each in basis} == {fact.decision}
        assert {value["first_at"], value["last_at"]} <= {each["at"] for each in basis}


@pytest.mark.parametrize(("n", "text"), [(3, "0.76"), (4, "0.79"), (5, "0.81"), (6, "0.83"), (8, "0.86"), (10**6, "0.95")])
def test_confidence_grows_with_the_history_and_stays_below_certainty(n: int, text: str) -> None:
    assert confidence(n) == text


@pytest.mark.parametrize(
    ("decision", "n", "chance"),
    [
        ("approved", 3, "0.76"),
        ("approved", 6, "0.83"),
        ("rejected", 3, "0.19"),
        ("rejected", 6, "0.12"),
        ("rejected", 10**6, "0.00"),
    ],
)
def test_likelihood_is_of_approval(decision: Decision, n: int, chance: str) -> None:
    assert likelihood(decision, n) == Decimal(chance)


def test_a_half_is_rounded_up() -> None:
    assert likelihood("rejected", 18) == Decimal("0.05")  # 0.0475
    assert likelihood("rejected", 36) == Decimal("0.03")  # 0.025
