"""The HTTP parser's connection with the two limits it lacks: the size of a request's head and the time it may take."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Request line and headers together.
HEAD_BYTES = 64 * 1024
#: From a connection's opening, or a request's first byte, to the end of its headers.
HEAD_SECONDS = 15.0


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed when the head of a request is too large or too slow."""

    def __init__(self, *args: Any, **kw: Any) -> None:
        super().__init__(*args, **kw)
        self._head_since: float | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the class above has it
        self._head_since = self.loop.time()
        super().connection_made(transport)

    def on_message_begin(self) -> None:
        if self._head_since is None:
            self._head_since = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_since = None
        self._head_bytes = 0
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        # Counted only when all of it belongs to one head: a piece may also end a body or hold a whole request.
        since = self._head_since
        super().data_received(data)
        if since is not None and self._head_since == since:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The head of the request is too large.")

    def close_if_slow(self, now: float) -> None:
        """Close when the head has been under way for too long; called from time to time."""
        if self._head_since is not None and now - self._head_since > HEAD_SECONDS and not self.transport.is_closing():
            self.transport.close()
