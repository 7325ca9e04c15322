"""Canonical JSON: keys sorted, no spaces, ASCII, and every number as exactly as it was sent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from json.encoder import encode_basestring_ascii


def canonical(value: object) -> str:
    """The JSON text of a value as the body parser makes them: a `Number` is the text it was sent as.

    Raises:
        TypeError: a value that JSON has no exact spelling for, `float` included.
    """
    match value:
        case None:
            return "null"
        case True:
            return "true"
        case False:
            return "false"
        case str():
            return encode_basestring_ascii(value)
        case int() | Decimal():
            return str(value)
        case Mapping():
            members = (f"{encode_basestring_ascii(key)}:{canonical(value[key])}" for key in sorted(value))
            return f"{{{','.join(members)}}}"
        case list() | tuple():
            return f"[{','.join(canonical(item) for item in value)}]"
    raise TypeError(f"no exact JSON for a value of type `{type(value).__name__}`")


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()
