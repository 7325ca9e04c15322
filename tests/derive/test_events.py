"""An event is a decision at a time, for ninety days."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from derive.events import RETENTION, Observation, Tombstone, decision_of, is_expired, rfc3339

NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_every_word_that_clients_send_is_one_of_two_decisions() -> None:
    assert {decision_of(word) for word in ("approve", "approved")} == {"approved"}
    assert {decision_of(word) for word in ("reject", "rejected", "deny", "denied")} == {"rejected"}


@pytest.mark.parametrize("word", ["Approved", "approve ", "", "yes", "cancelled", "expired", None, True, 1, ["approve"]])
def test_any_other_word_is_no_decision(word: object) -> None:
    assert decision_of(word) is None


@pytest.mark.parametrize(
    ("age", "expired"),
    [
        (timedelta(days=90) - timedelta(microseconds=1), False),
        (timedelta(days=90), True),
        (timedelta(days=90) + SECOND, True),
        (-SECOND, False),
    ],
)
def test_an_event_expires_at_ninety_days_exactly(age: timedelta, expired: bool) -> None:
    assert timedelta(days=90) == RETENTION
    assert is_expired(NOON - age, NOON) is expired


@pytest.mark.parametrize("at", [NOON.replace(tzinfo=None), NOON.astimezone(timezone(timedelta(hours=14)))])
def test_a_time_that_is_not_utc_is_refused(at: datetime) -> None:
    with pytest.raises(ValueError, match="is not a time in UTC"):
        Observation("e1", "approval", "approved", at, "gateway")
    with pytest.raises(ValueError, match="is not a time in UTC"):
        Tombstone("approval", "approved", at)


def test_a_time_is_written_with_microseconds_only_when_it_has_some() -> None:
    assert rfc3339(NOON) == "2026-03-29T12:00:00Z"
    assert rfc3339(NOON + timedelta(microseconds=5)) == "2026-03-29T12:00:00.000005Z"
    assert rfc3339(datetime.max.replace(tzinfo=UTC)) == "9999-12-31T23:59:59.999999Z"
