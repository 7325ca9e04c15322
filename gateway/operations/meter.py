"""A meter: how much of something was done within the last while, for limits that differ from one request to the next."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from datetime import datetime, timedelta

from gateway.errors import TooManyRequests

#: Keys remembered; past it the one that was quiet longest is forgotten.
REMEMBERED = 50_000


class Meter:
    """Counts by key within a sliding window. What was counted stays so when the clock is set back."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, ...], deque[datetime]] = OrderedDict()

    def take(self, key: tuple[str, ...], most: int | None, window: timedelta, now: datetime) -> None:
        """Count one; a `most` of None counts and refuses nothing. One key always has the same window.

        Raises:
            TooManyRequests: `most` were counted within the window; this one is not.
        """
        made = self._made.setdefault(key, deque())
        self._made.move_to_end(key)
        while made and made[0] <= now - window:
            made.popleft()
        if most is not None and len(made) >= most:
            wait = max(1, math.ceil((made[len(made) - most] + window - now).total_seconds()))
            raise TooManyRequests(
                "over the limit of requests that was granted; wait before the next", retry_after=wait, by="grant"
            )
        made.append(now)
        if len(self._made) > REMEMBERED:
            self._made.popitem(last=False)
