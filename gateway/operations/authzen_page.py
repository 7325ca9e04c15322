"""Pages of an AuthZEN search: where the next one begins, in a token that is good for the same search alone, for a while."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from gateway import limits
from gateway.errors import Invalid, echo

MAC_BYTES = 32
#: Longer than any token of ours.
TOKEN_CHARACTERS = 256
LIFETIME = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request says of its page: how many results, and the token of the page before."""

    limit: int | None
    token: str | None
    properties: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Start:
    """Where a page begins among the candidates, and how many results it may have."""

    place: int
    limit: int


def read_page(page: object) -> Asked:
    """The `page` of a request; an empty token is none, as in the answer of the last page.

    Raises:
        Invalid: it, or something in it, is of another kind.
    """
    if page is None:
        return Asked(None, None, None)
    if not isinstance(page, dict):
        raise Invalid(f"`page` must be an object, got {echo(page)}", field="page")
    limit, token, properties = page.get("limit"), page.get("token"), page.get("properties")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise Invalid(f"`page.limit` must be a whole number from 0, got {echo(limit)}", field="page.limit")
    if token is not None and not isinstance(token, str):
        raise Invalid(f"`page.token` must be a string, got {echo(token)}", field="page.token")
    if properties is not None and not isinstance(properties, dict):
        raise Invalid(f"`page.properties` must be an object, got {echo(properties)}", field="page.properties")
    return Asked(limit, token or None, properties)


def seal(key: bytes, bound: bytes, start: Start, now: datetime) -> str:
    """The token of a place, good until `LIFETIME` from now."""
    payload = json.dumps([start.place, start.limit, int((now + LIFETIME).timestamp())]).encode()
    return base64.urlsafe_b64encode(_mac(key, bound, payload) + payload).decode()


def start_of(key: bytes, bound: bytes, page: Asked, now: datetime) -> Start:
    """Where the page begins that a request asks for.

    Raises:
        Invalid: its token was not made by `seal` for this search, has ended, or goes with another limit.
    """
    if page.token is None:
        return Start(0, limits.SEARCH_PAGE if page.limit is None else min(page.limit, limits.SEARCH_PAGE))
    place, limit, end = _unsealed(key, bound, page.token)
    if now >= datetime.fromtimestamp(end, UTC) or (page.limit is not None and min(page.limit, limits.SEARCH_PAGE) != limit):
        raise _refused()
    return Start(place, limit)


def _unsealed(key: bytes, bound: bytes, token: str) -> tuple[int, int, int]:
    try:
        fits = len(token) <= TOKEN_CHARACTERS and token.isascii()
        raw = base64.b64decode(token, altchars=b"-_", validate=True) if fits else b""
    except binascii.Error:
        raw = b""
    mac, payload = raw[:MAC_BYTES], raw[MAC_BYTES:]
    # The encoding has spare bits: only the one text that `seal` wrote is good.
    written = base64.urlsafe_b64encode(raw).decode() == token
    if not (hmac.compare_digest(mac, _mac(key, bound, payload)) and written):
        raise _refused()
    read: Any = json.loads(payload)
    return read[0], read[1], read[2]


def _refused() -> Invalid:
    return Invalid(
        "`page.token` must be the one that the page before gave, within the hour, with the same search and limit, by the same"
        " caller, while the policies are the same",
        field="page.token",
    )


def _mac(key: bytes, bound: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, b"authzen page" + bound + payload, "sha256")
