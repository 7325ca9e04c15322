"""Limits in time: how often one may guess, and how often one may call."""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gateway import limits
from gateway.errors import TooManyRequests

MINUTE = 60.0
#: Accounts, credentials and addresses remembered; past it the one that was quiet longest is forgotten.
REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class Attempt:
    """One guess under way; it counts until it is `forgiven`."""

    key: tuple[str, str]
    at: float


class Throttle:
    """Guesses a minute for an account and a source address.

    A guess counts from its start, so that a hundred at once are not a hundred free ones; the right answer forgives its
    own and no other, so that knowing one secret of an account buys no guesses at the next.
    """

    def __init__(self, guesses: int = limits.GUESSES_PER_MINUTE) -> None:
        self._guesses = guesses
        self._made: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def attempt(self, account: str, source: str | None, now: datetime) -> Attempt:
        """Count a guess.

        Raises:
            TooManyRequests: this many wrong ones were made within the minute; right or wrong, this one is not looked at.
        """
        at, key = now.timestamp(), (account, network(source))
        made = self._made.setdefault(key, deque())
        self._made.move_to_end(key)
        while made and made[0] <= at - MINUTE:
            made.popleft()
        if len(made) >= self._guesses:
            wait = max(1, math.ceil(made[0] + MINUTE - at))
            raise TooManyRequests("too many wrong answers for this account; wait before the next", retry_after=wait, by="guesses")
        made.append(at)
        if len(self._made) > REMEMBERED:
            self._made.popitem(last=False)
        return Attempt(key, at)

    def forgive(self, attempt: Attempt) -> None:
        """Take one guess back: it was right."""
        made = self._made.get(attempt.key)
        if made is not None and attempt.at in made:
            made.remove(attempt.at)
            if not made:
                del self._made[attempt.key]


class RateLimiter:
    """A token bucket a key: `rate` requests a minute, as many at once after a quiet minute; 0 is no limit.

    `by` says what its keys are.
    """

    def __init__(self, rate: int, *, by: Literal["credential", "address"] = "credential") -> None:
        self._rate = rate
        self._by: Literal["credential", "address"] = by
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, now: datetime) -> None:
        """Count a request.

        Raises:
            TooManyRequests: none is left; `retry_after` says when the next is.
        """
        if self._rate == 0:
            return
        at = now.timestamp()
        left, since = self._buckets.pop(key, (float(self._rate), at))
        left = min(float(self._rate), left + max(0.0, at - since) * self._rate / MINUTE)
        allowed = left >= 1
        # Put last: the front of the order is who was quiet longest, and whose bucket is full again.
        self._buckets[key] = (left - 1 if allowed else left, at)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        if not allowed:
            wait = max(1, math.ceil((1 - left) * MINUTE / self._rate))
            whose = "with this credential" if self._by == "credential" else "without a good credential from this address"
            raise TooManyRequests(f"more than {self._rate} requests a minute {whose}", retry_after=wait, by=self._by)


def network(source: str | None) -> str:
    """The address a guess or a request is counted under: of IPv6 the /64, which is what one customer holds."""
    if source is None:
        return ""
    try:
        address = ipaddress.ip_address(source)
    except ValueError:
        return source
    if address.version == 6 and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((int(address), 64), strict=False))
    return str(address)
