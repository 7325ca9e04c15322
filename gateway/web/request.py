"""Reading a request: its headers, bearer, query string and body, each strictly."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from urllib.parse import unquote_to_bytes

from starlette.types import Message, Receive

from gateway.errors import Invalid, TooLarge, Unauthenticated
from gateway.operations.deadline import Deadline
from gateway.operations.fields import echo
from gateway.web.problems import TooSlow

#: A body is a few packets; one that takes longer than this is holding a place that others need.
BODY_SECONDS = 20.0
#: Longer than any credential of ours.
BEARER_CHARACTERS = 8_192

_BEARER = re.compile(r"bearer +([\x21-\x7e]+)", re.IGNORECASE | re.ASCII)
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class Gone(Exception):
    """The client went away before its request was read, or while one that takes long was answered."""


class Headers(Mapping[str, str]):
    """Request headers by lower-case name, decoded when asked for; a repeated one is joined by commas.

    As UTF-8 where it is that, because a step-up password travels in one.
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: Sequence[tuple[bytes, bytes]]) -> None:
        self._raw = raw

    def all(self, name: bytes) -> list[bytes]:
        """Every value of a header, in the order sent."""
        return [value for sent, value in self._raw if sent == name]

    def __getitem__(self, name: str) -> str:
        found = self.all(name.lower().encode("latin-1", "replace"))
        if not found:
            raise KeyError(name)
        joined = b", ".join(found)
        try:
            return joined.decode("utf-8")
        except UnicodeDecodeError:
            return joined.decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.decode("latin-1") for name, _ in self._raw))

    def __len__(self) -> int:
        return len({name for name, _ in self._raw})


def bearer(headers: Mapping[str, str]) -> str:
    """The bearer credential.

    Raises:
        Unauthenticated: none, more than one, or not of the form `Bearer <token>`.
    """
    # Two headers arrive joined by a comma and a space, which no token holds.
    sent = headers.get("authorization", "")
    found = _BEARER.fullmatch(sent) if len(sent) <= BEARER_CHARACTERS else None
    if found is None:
        raise Unauthenticated
    return found[1]


def query_members(query: bytes, known: Collection[str], *, repeated: Collection[str] = (), strict: bool) -> dict[str, object]:
    """The parameters of a query string by name, unknown ones left out; those that may be `repeated` as lists.

    Raises:
        Invalid: another known one is repeated, one is not percent-encoded UTF-8, or, with `strict`, is not known.
    """
    members: dict[str, object] = {}
    lists: dict[str, list[object]] = {}
    for part in query.split(b"&"):
        if not part:
            continue
        name, _, value = part.partition(b"=")
        field = _decoded(name, "a parameter's name")
        if field not in known:
            if strict:
                allowed = ", ".join(known) or "none"
                raise Invalid(f"{echo(field)} is not a known parameter here; known are {allowed}", field=field[:120])
            continue
        if field in repeated:
            lists.setdefault(field, []).append(_decoded(value, f"`{field}`"))
            continue
        if field in members:
            raise Invalid(f"`{field}` is given twice", field=field)
        members[field] = _decoded(value, f"`{field}`")
    return members | lists


async def read_body(receive: Receive, headers: Headers, most: int) -> bytes:
    """The whole body, or an early stop.

    Raises:
        TooLarge: more than `most` bytes are announced or arrive.
        TooSlow: it has not all arrived in `BODY_SECONDS`.
        Gone: the client left.
    """
    announced = headers.get("content-length", "")
    if announced.isdecimal() and (len(announced) > 18 or int(announced) > most):
        raise _over(most)
    deadline = Deadline(BODY_SECONDS)
    try:
        return await _read(receive, most)
    except asyncio.CancelledError:
        if not deadline.caught():
            raise
        raise TooSlow(f"the body did not arrive within {BODY_SECONDS:.0f} seconds") from None
    finally:
        deadline.end()


def check_content_type(headers: Headers) -> None:
    """Refuse a body that does not say it is plain JSON in UTF-8.

    Raises:
        Invalid: another content type or charset, or an encoding.
    """
    sent = headers.all(b"content-type")
    if sent == [b"application/json"] and not headers.all(b"content-encoding"):
        return
    encoding = headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise Invalid(f"`content-encoding` must be absent, got {echo(encoding)}")
    kind, _, parameters = headers.get("content-type", "").partition(";")
    charset = re.search(r"charset\s*=\s*\"?([^\s;\"]*)", parameters, re.IGNORECASE)
    if len(sent) != 1 or kind.strip().lower() != "application/json" or (charset and charset[1].lower() not in ("utf-8", "utf8")):
        raise Invalid(f"`content-type` must be application/json in UTF-8, got {echo(headers.get('content-type', ''))}")


async def _read(receive: Receive, most: int) -> bytes:
    message = await _next(receive)
    body: bytes = message.get("body", b"")
    if len(body) > most:
        raise _over(most)
    if not message.get("more_body", False):
        return body
    chunks, size = [body], len(body)
    while message.get("more_body", False):
        message = await _next(receive)
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > most:
            raise _over(most)
    return b"".join(chunks)


async def _next(receive: Receive) -> Message:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    return message


def _over(most: int) -> TooLarge:
    return TooLarge(f"the body is over the limit of {most // 1024} KiB")


def _decoded(sent: bytes, what: str) -> str:
    if _BAD_ESCAPE.search(sent):
        raise Invalid(f"{what} has an incomplete percent escape")
    try:
        value = unquote_to_bytes(sent.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        raise Invalid(f"{what} must be percent-encoded UTF-8") from None
    if "\x00" in value:
        raise Invalid(f"{what} holds a NUL")
    return value
