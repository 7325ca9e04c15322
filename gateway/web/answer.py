"""The bytes of an answer: JSON and the headers that every answer carries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from starlette.types import Send

Headers = list[tuple[bytes, bytes]]

_JSON = (b"content-type", b"application/json")
#: Nothing here may be kept by a cache or guessed to be another type.
_ALWAYS: Headers = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, a JSON body already encoded (None is no body) and headers beyond the ones of every answer."""

    status: int
    body: bytes | None
    headers: tuple[tuple[bytes, bytes], ...] = ()


def _plain(value: object) -> object:
    """What the encoder does not know: a payload's fraction goes out as the number it came in as."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode


def answer(status: int, body: Mapping[str, object] | None, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer with `body` as its JSON."""
    extra = tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in (headers or {}).items())
    return Answer(status, None if body is None else encode_json(body).encode("utf-8"), extra)


async def send_answer(send: Send, what: Answer, request_id: bytes) -> None:
    """Send a whole answer."""
    headers: Headers = [*_ALWAYS, (b"x-request-id", request_id), *what.headers]
    if what.body is not None:
        headers += (_JSON, (b"content-length", b"%d" % len(what.body)))
    await send({"type": "http.response.start", "status": what.status, "headers": headers})
    await send({"type": "http.response.body", "body": what.body or b""})
