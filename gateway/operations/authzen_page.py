"""Pages of an AuthZEN search: where the next one begins, in a token that is good for the same search alone, for a while."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from gateway import limits
from gateway.errors import Invalid, echo
from gateway.operations import cursor as cursors

#: Of a token, so that it is none of the other cursors.
PURPOSE = b"authzen page"
LIFETIME = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class RequestedPage:
    """What a request says of its page: how many results, and the token of the page before."""

    limit: int | None
    token: str | None
    properties: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Start:
    """Where a page begins among the candidates, and how many results it may have."""

    place: int
    limit: int


def read_page(page: object) -> RequestedPage:
    """The `page` of a request; an empty token is none, as in the answer of the last page.

    Raises:
        Invalid: it, or something in it, is of another kind.
    """
    if page is None:
        return RequestedPage(None, None, None)
    if not isinstance(page, dict):
        raise Invalid(f"`page` must be an object, got {echo(page)}", field="page")
    limit, token, properties = page.get("limit"), page.get("token"), page.get("properties")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise Invalid(f"`page.limit` must be a whole number from 0, got {echo(limit)}", field="page.limit")
    if token is not None and not isinstance(token, str):
        raise Invalid(f"`page.token` must be a string, got {echo(token)}", field="page.token")
    if properties is not None and not isinstance(properties, dict):
        raise Invalid(f"`page.properties` must be an object, got {echo(properties)}", field="page.properties")
    return RequestedPage(limit, token or None, properties)


def token_of(key: bytes, bound: bytes, start: Start, now: datetime) -> str:
    """The token of a place, good until `LIFETIME` from now."""
    payload = json.dumps([start.place, start.limit, int((now + LIFETIME).timestamp())]).encode()
    return cursors.seal(key, PURPOSE + bound, payload)


def start_of(key: bytes, bound: bytes, page: RequestedPage, now: datetime) -> Start:
    """Where the page begins that a request asks for.

    Raises:
        Invalid: its token was not made by `token_of` for this search, has ended, or goes with another limit.
    """
    limit = limits.SEARCH_PAGE if page.limit is None else min(page.limit, limits.SEARCH_PAGE)
    if page.token is None:
        return Start(0, limit)
    payload = cursors.unseal(key, PURPOSE + bound, page.token)
    if payload is None:
        raise _refused()
    read: Any = json.loads(payload)
    start, end = Start(read[0], read[1]), datetime.fromtimestamp(read[2], UTC)
    if now >= end or (page.limit is not None and limit != start.limit):
        raise _refused()
    return start


def _refused() -> Invalid:
    return Invalid(
        "`page.token` must be the one that the page before gave, within the hour, with the same search and limit, by the same"
        " caller, while the policies are the same",
        field="page.token",
    )
