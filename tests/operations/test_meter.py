"""A meter: a sliding window, by key."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.errors import TooManyRequests
from gateway.operations.meter import Meter
from tests.builders import START

MINUTE = timedelta(minutes=1)


def test_within_any_minute_there_are_no_more_than_allowed() -> None:
    meter = Meter()
    for second in (0, 20):
        meter.take(("a",), 2, MINUTE, START + timedelta(seconds=second))
    with pytest.raises(TooManyRequests) as refused:
        meter.take(("a",), 2, MINUTE, START + timedelta(seconds=59))
    assert refused.value.retry_after == 1
    meter.take(("a",), 2, MINUTE, START + timedelta(seconds=60))
    with pytest.raises(TooManyRequests) as refused:
        meter.take(("a",), 2, MINUTE, START + timedelta(seconds=61))
    assert refused.value.retry_after == 19


def test_keys_do_not_count_for_one_another_and_limits_may_differ() -> None:
    meter = Meter()
    for _ in range(5):
        meter.take(("a",), None, MINUTE, START)
    meter.take(("b",), 1, MINUTE, START)
    with pytest.raises(TooManyRequests):
        meter.take(("a",), 5, MINUTE, START)
    meter.take(("a",), 6, MINUTE, START)


def test_a_clock_that_is_set_back_opens_nothing() -> None:
    meter = Meter()
    meter.take(("a",), 1, MINUTE, START)
    with pytest.raises(TooManyRequests):
        meter.take(("a",), 1, MINUTE, START - timedelta(hours=1))
