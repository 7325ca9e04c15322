"""The HTTP parser's connection with the limits it lacks: the size of what is no body, its time, and an end that is heard."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from time import perf_counter
from typing import Any, cast

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway import limits

#: Request line and headers together, and the trailers behind a body with them.
HEAD_BYTES = 64 * 1024
#: From a connection's opening, or a request's first byte, to the end of its headers.
HEAD_SECONDS = 15.0
#: How long the rest of a body may arrive, unread, behind an answer: closed at once, many clients would never see that.
LINGER_SECONDS = 2.0


#: In the scope of a request: when it began to wait for its turn. On a server with too much to do most of a wait is there.
QUEUED = "peergate.queued"
#: To whoever is one connection too many.
CROWDED = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncache-control: no-store\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class HeadTooLarge(Exception):
    """Raised through the parser, which then takes nothing more and answers 400."""


class BodyUnread(Exception):
    """Raised in the same way, for a request that asks to go on in another protocol: the parser would pass its body over, and
    take what comes of it later for the next request."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed when the head of a request is too large or too slow, or its body is not wanted."""

    def __init__(self, *args: Any, **kw: Any) -> None:
        super().__init__(*args, **kw)
        self._head_since: float | None = None
        self._head_bytes = 0
        self._loose_bytes = 0
        self._moved = False
        self._lingers = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the class above has it
        """Time the first head from here; one connection too many is told to come back, and closed."""
        self._head_since = self.loop.time()
        super().connection_made(transport)
        if len(self.connections) > limits.CONNECTIONS:
            self.transport.write(CROWDED)
            self.linger()

    def on_message_begin(self) -> None:
        """Time and count a head from its first byte."""
        if self._head_since is None:
            self._head_since = self.loop.time()
        self._head_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Count the request line."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header; trailers come here too, count with the head, and are dropped: whoever stands before the gateway has
        looked at the head, and not at what comes behind the body."""
        self._count(len(name) + len(value))
        if self._head_since is not None:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the head, and have its answer linger."""
        if self.parser.should_upgrade() and has_body(self.headers):
            raise BodyUnread
        self._head_since = None
        self._moved = True
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self.cycle.transport = _Ending(self, self.cycle)  # type: ignore[assignment]  # the part of one that a cycle uses

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        cast(dict[str, Any], cycle.scope)[QUEUED] = perf_counter()
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        self._moved = True
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Parse what arrives, within the limits."""
        if self._lingers:
            return
        self._moved = False
        super().data_received(data)
        # The parser shows a header once it is whole. Until then its bytes are seen only here, in pieces that end no head
        # and hold no body.
        self._loose_bytes = 0 if self._moved else self._loose_bytes + len(data)
        if self._loose_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def close_if_slow(self, now: float) -> None:
        """Close when the head has been under way for too long; called from time to time."""
        if self._head_since is not None and now - self._head_since > HEAD_SECONDS and not self.transport.is_closing():
            self.transport.close()

    def linger(self) -> None:
        """Say that nothing more comes, and close when the client has, or after a while; what arrives meanwhile is dropped."""
        if self._lingers or self.transport.is_closing():
            return
        self._lingers = True
        self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES:
            raise HeadTooLarge


class _Ending:
    """The transport as one answer sees it: its head goes out with the body, in one packet where both fit into one, and closed
    before the request was read, it lingers."""

    def __init__(self, protocol: BoundedProtocol, cycle: RequestResponseCycle) -> None:
        self._protocol = protocol
        self._cycle = cycle
        self._head: bytes | None = None
        self.is_closing = protocol.transport.is_closing

    def write(self, data: bytes) -> None:
        """Nothing to a client that has left: of several requests in one piece only the last is told so."""
        cycle = self._cycle
        if self._head is None and cycle.response_started and cycle.scope["method"] != "HEAD":
            self._head = data
            return
        if self._head:
            data, self._head = self._head + data, b""
        if not self.is_closing():
            self._protocol.transport.write(data)

    def close(self) -> None:
        if self._head:
            self.write(b"")
        if self._cycle.more_body:
            self._protocol.linger()
        else:
            self._protocol.transport.close()


def has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a body comes behind a head. Unread, it would hold the connection for as long as the client likes."""
    return any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in headers)
