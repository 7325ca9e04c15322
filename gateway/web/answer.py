"""The bytes of an answer: JSON and the headers that every answer carries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from starlette.types import Send

Headers = list[tuple[bytes, bytes]]

_JSON = b"application/json"
#: Nothing here may be kept by a cache, unless its operation says so, or guessed to be another type.
_ALWAYS: Headers = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, a body already encoded (None is no body), headers beyond the ones of every answer, and the body's type."""

    status: int
    body: bytes | None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    media: bytes = _JSON


class _Exact(Exception):
    """There is a decimal, which the encoder of the standard library can only write as a float."""


def _unknown(value: object) -> object:
    if isinstance(value, Decimal):
        raise _Exact
    raise TypeError(f"{type(value).__name__} has no JSON form")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_unknown).encode


def encode_json(value: object) -> str:
    """The JSON text of a value; a payload's number goes out with the digits it came in with."""
    try:
        return _encode(value)
    except _Exact:
        return _exactly(value)


def _exactly(value: object) -> str:
    match value:
        case Decimal():
            return str(value)
        case Mapping():
            return f"{{{','.join(f'{_encode(key)}:{_exactly(member)}' for key, member in value.items())}}}"
        case list() | tuple():
            return f"[{','.join(map(_exactly, value))}]"
    return _encode(value)


def answer(
    status: int,
    body: Mapping[str, object] | None,
    headers: Mapping[str, str] | None = None,
    text: tuple[str, str] | None = None,
) -> Answer:
    """An answer with `body` as its JSON, or with a `text` of the type that is named before it."""
    extra = tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in (headers or {}).items())
    if text is not None:
        return Answer(status, text[1].encode("utf-8"), extra, text[0].encode("latin-1"))
    return Answer(status, None if body is None else encode_json(body).encode("utf-8"), extra)


async def send_answer(send: Send, what: Answer, request_id: bytes, *, close: bool = False) -> None:
    """Send a whole answer; with `close`, as the last of its connection."""
    headers: Headers = [*_ALWAYS, (b"x-request-id", request_id), *what.headers]
    if any(name == b"cache-control" for name, _ in what.headers):
        headers.remove(_ALWAYS[0])
    if what.body is not None:
        headers += ((b"content-type", what.media), (b"content-length", b"%d" % len(what.body)))
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": what.status, "headers": headers})
    await send({"type": "http.response.body", "body": what.body or b""})
