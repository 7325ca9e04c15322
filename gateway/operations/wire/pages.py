"""Pages and stretches of time, as query strings ask for them."""

from __future__ import annotations

from gateway import limits
from gateway.operations.schema import TIME, Maybe, Members, whole

OFFSET = 10**9


def page(most: int = limits.PAGE) -> Members:
    """The members that ask for a page of at most so many entries."""
    return {"limit": Maybe(whole(1, most)), "offset": Maybe(whole(0, OFFSET))}


STRETCH: Members = {"from": Maybe(TIME), "to": Maybe(TIME)}
