"""How often one may guess, and how often one may call."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.authn import throttle as throttle_module
from gateway.authn.throttle import RateLimiter, Throttle, network
from gateway.errors import TooManyRequests
from tests.authn.builders import NOW


def test_the_eleventh_guess_within_a_minute_is_refused_until_the_first_is_a_minute_old() -> None:
    throttle = Throttle()
    for second in range(10):
        throttle.attempt("account", "192.0.2.1", NOW + timedelta(seconds=second))
    for second, wait in ((10, 50), (59, 1)):
        with pytest.raises(TooManyRequests) as refused:
            throttle.attempt("account", "192.0.2.1", NOW + timedelta(seconds=second))
        assert refused.value.retry_after == wait
    throttle.attempt("account", "192.0.2.1", NOW + timedelta(seconds=60))
    with pytest.raises(TooManyRequests):
        throttle.attempt("account", "192.0.2.1", NOW + timedelta(seconds=60))


def test_accounts_and_addresses_are_counted_apart() -> None:
    throttle = Throttle(guesses=1)
    throttle.attempt("account", "192.0.2.1", NOW)
    throttle.attempt("account", "192.0.2.2", NOW)
    throttle.attempt("another", "192.0.2.1", NOW)
    throttle.attempt("account", None, NOW)
    with pytest.raises(TooManyRequests):
        throttle.attempt("account", "192.0.2.1", NOW)


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("2001:db8::1", "2001:db8:0:0:ffff::1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("testclient", "testclient", True),
    ],
)
def test_ipv6_addresses_of_one_network_are_one_source(one: str, other: str, together: bool) -> None:
    throttle = Throttle(guesses=1)
    throttle.attempt("account", one, NOW)
    if together:
        with pytest.raises(TooManyRequests):
            throttle.attempt("account", other, NOW)
    else:
        throttle.attempt("account", other, NOW)


def test_a_right_answer_forgives_its_own_guess_and_no_other() -> None:
    throttle = Throttle(guesses=3)
    throttle.attempt("account", None, NOW)
    for _ in range(5):
        throttle.forgive(throttle.attempt("account", None, NOW))
    throttle.attempt("account", None, NOW)
    throttle.attempt("account", None, NOW)
    with pytest.raises(TooManyRequests):
        throttle.attempt("account", None, NOW)


def test_guesses_made_at_once_count_before_any_is_answered() -> None:
    throttle = Throttle(guesses=2)
    under_way = [throttle.attempt("account", None, NOW) for _ in range(2)]
    with pytest.raises(TooManyRequests):
        throttle.attempt("account", None, NOW)
    for attempt in under_way:
        throttle.forgive(attempt)
    assert not throttle._made


def test_what_a_throttle_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle_module, "REMEMBERED", 3)
    throttle, limiter = Throttle(), RateLimiter(5)
    for number in range(10):
        throttle.attempt(str(number), None, NOW)
        limiter.take(str(number), NOW)
    assert (len(throttle._made), len(limiter._buckets)) == (3, 3)


def test_a_credential_has_its_requests_a_minute_and_gets_them_back_one_by_one() -> None:
    limiter = RateLimiter(6)
    for _ in range(6):
        limiter.take("key", NOW)
    with pytest.raises(TooManyRequests) as refused:
        limiter.take("key", NOW)
    assert refused.value.retry_after == 10
    limiter.take("another", NOW)
    limiter.take("key", NOW + timedelta(seconds=10))
    with pytest.raises(TooManyRequests):
        limiter.take("key", NOW + timedelta(seconds=10))
    for _ in range(6):
        limiter.take("key", NOW + timedelta(hours=1))
    with pytest.raises(TooManyRequests):
        limiter.take("key", NOW + timedelta(hours=1))


def test_a_clock_that_goes_back_gives_nothing() -> None:
    limiter = RateLimiter(1)
    limiter.take("key", NOW)
    with pytest.raises(TooManyRequests):
        limiter.take("key", NOW - timedelta(hours=1))


def test_strangers_are_counted_by_the_network_of_their_address_and_told_so() -> None:
    limiter = RateLimiter(1, by="address")
    limiter.take(f"health {network('2001:db8::1')}", NOW)
    with pytest.raises(TooManyRequests, match="1 requests a minute without a good credential from this address") as refused:
        limiter.take(f"health {network('2001:db8::2')}", NOW)
    assert refused.value.by == "address"
    limiter.take(f"health {network('2001:db8:0:1::1')}", NOW)


def test_a_rate_of_zero_is_no_limit() -> None:
    limiter = RateLimiter(0)
    for _ in range(1000):
        limiter.take("key", NOW)
