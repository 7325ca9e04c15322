"""A token as it travels: three parts in base64url, of which the first two are JSON."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass

TOKEN_CHARACTERS = 8_192


class _Doubtful(ValueError):
    """JSON that two readers could read in two ways."""


@dataclass(frozen=True, slots=True)
class Compact:
    """The header of a token and the bytes of its payload; nothing in either is proven by this."""

    header: dict[str, object]
    payload: bytes


def read_compact(token: str) -> Compact | None:
    """A token of three parts in canonical base64url whose first is an object, else None.

    INVARIANT: one token has one spelling. A lenient decoder ignores the spare bits of a last character, so a token
    changed there would pass and be another string to whoever compares tokens.
    """
    if len(token) > TOKEN_CHARACTERS:
        return None
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        decoded = [base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True) for part in parts]
        if any(base64.urlsafe_b64encode(raw).rstrip(b"=") != part.encode() for raw, part in zip(decoded, parts, strict=True)):
            return None
    except (binascii.Error, ValueError):
        return None
    header = read_object(decoded[0])
    return Compact(header, decoded[1]) if header is not None else None


def read_object(content: bytes) -> dict[str, object] | None:
    """The members of a JSON object that names none twice and holds numbers only as JSON has them, else None."""
    try:
        read = json.loads(content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_never)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Doubtful
    return members


def _never(_: str) -> object:
    raise _Doubtful
