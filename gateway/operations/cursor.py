"""Cursors: where the next page begins, good for one question by one caller while what it may see stays the same."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

from gateway import limits
from gateway.errors import Invalid

MAC_BYTES = 32

#: The last row that was served of a list, or how many were of a ranking.
Position = tuple[datetime, str] | int


def cursor_key(secret: bytes) -> bytes:
    """The key of an installation's cursors, from its secret."""
    return hmac.digest(secret, b"peergate cursor", "sha256")


def binding(*parts: object) -> bytes:
    """What a cursor is good for, as one digest; each part has a JSON form."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()


def seal(key: bytes, bound: bytes, payload: bytes) -> str:
    """A text that holds a payload, which whoever has it may read but not change."""
    return base64.urlsafe_b64encode(_mac(key, bound, payload) + payload).decode()


def unseal(key: bytes, bound: bytes, sealed: str) -> bytes | None:
    """The payload of a text; None when it was not made by `seal` with this key for this binding."""
    try:
        fits = len(sealed) <= limits.CURSOR_CHARACTERS and sealed.isascii()
        raw = base64.b64decode(sealed, altchars=b"-_", validate=True) if fits else b""
    except binascii.Error:
        raw = b""
    mac, payload = raw[:MAC_BYTES], raw[MAC_BYTES:]
    # The encoding has spare bits: only the one text that `seal` wrote is good.
    written = base64.urlsafe_b64encode(raw).decode() == sealed
    return payload if hmac.compare_digest(mac, _mac(key, bound, payload)) and written else None


def cursor_of(key: bytes, bound: bytes, position: Position) -> str:
    """The cursor of a position."""
    shown = position if isinstance(position, int) else [position[0].astimezone(UTC).isoformat(), position[1]]
    return seal(key, bound, json.dumps(shown).encode())


def position_of(key: bytes, bound: bytes, cursor: str) -> Position:
    """The position of a cursor.

    Raises:
        Invalid: it was not made by `cursor_of` with this key for this binding.
    """
    payload = unseal(key, bound, cursor)
    if payload is None:
        raise Invalid(
            "`cursor` must be the one that the page before gave, with the same arguments, by the same caller, while nothing"
            " that the caller may see has changed",
            field="cursor",
        )
    position: Any = json.loads(payload)
    return position if isinstance(position, int) else (datetime.fromisoformat(position[0]), position[1])


def _mac(key: bytes, bound: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, bound + payload, "sha256")
