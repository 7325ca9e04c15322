"""Traffic: what a process has counted of its requests since it started, and whether it is about to stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import get_args

from gateway.errors import GatewayError, LimitedBy, ShedFor, TooManyRequests, Unavailable
from gateway.model.histogram import Histogram

#: The operation of a request that no route answers. Its path is whatever somebody sent, and is counted nowhere.
NO_OPERATION = "none"
CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")


class Traffic:
    """Plain numbers, written on the event loop only.

    INVARIANT: keys are names of ours, so that there are never more of them than operations, classes and causes.
    `under_way` is how many requests are, `faults` how many failed for a reason of ours, `draining` whether the process was
    told to stop, `lines_dropped` tells how many lines of its own log were.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self.limited: Counter[str] = Counter(dict.fromkeys(get_args(LimitedBy), 0))
        self.shed: Counter[str] = Counter(dict.fromkeys(get_args(ShedFor), 0))
        self.seconds = Histogram()
        self.under_way = 0
        self.faults = 0
        self.lines_dropped: Callable[[], int] = int
        self.draining = False

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests[operation, CLASSES[status // 100 - 1]] += 1
        self.seconds.add(seconds)

    def refuse(self, error: GatewayError) -> None:
        """Count an answer that is an error by the limit or the cause behind it."""
        match error:
            case TooManyRequests():
                self.limited[error.by] += 1
            case Unavailable():
                self.shed[error.cause] += 1
