"""Lines of the process's own log: one a request, and one for what went wrong, with names and ids of ours only."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from gateway import limits
from gateway.config import Settings
from gateway.operations.traffic import Traffic
from gateway.web.exchange import Exchange

#: How long a line may wait, so that many are written at once and no request waits for whoever reads them.
FLUSH_SECONDS = 0.25
#: How long the end of the process waits for a reader that takes nothing.
CLOSE_SECONDS = 1.0
#: Decisions that a line names; a page of rows may have more.
MOST_DECISIONS = 20

Write = Callable[[bytes], object]
RequestLine = Callable[[Exchange, int, float], str]
#: A line of a record's level, of who logs, and of what it says.
RecordLine = Callable[[str, str, str], str]
Told = Callable[[Exchange, int, float], None]


class Form(NamedTuple):
    """How lines are written."""

    request: RequestLine
    record: RecordLine


@contextmanager
def reporting(settings: Settings, traffic: Traffic) -> Iterator[Told | None]:
    """Write lines to the standard error while the block runs; yields what takes a request, or None where none is wanted."""
    form = FORMS["text" if settings.log == "text" or (settings.log is None and sys.stderr.isatty()) else "json"]
    lines = Lines(to_descriptor(sys.stderr.fileno()))
    handler, root, ours = Handler(lines, form.record), logging.getLogger(), logging.getLogger("gateway")
    before = ours.level
    traffic.lines_dropped = lambda: lines.dropped
    root.addHandler(handler)
    ours.setLevel(logging.WARNING if settings.log == "off" else logging.INFO)
    try:
        yield (
            None
            if settings.log == "off"
            else lambda exchange, status, seconds: lines.put(form.request(exchange, status, seconds))
        )
    finally:
        root.removeHandler(handler)
        ours.setLevel(before)
        lines.close()


class Lines:
    """A bounded queue and the thread that writes it out. What does not fit, or cannot be written, is dropped and counted."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: deque[str] = deque()
        self._closing = threading.Event()
        self._turn = threading.Lock()
        self.dropped = 0
        self._thread = threading.Thread(target=self._serve, name="log-lines", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Add a line; it never waits."""
        if len(self._waiting) >= limits.LOG_LINES:
            self.dropped += 1
        else:
            self._waiting.append(line)

    def flush(self) -> None:
        """Write what waits now."""
        with self._turn:
            taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not taken:
                return
            try:
                self._write("".join(f"{line}\n" for line in taken).encode("utf-8", "backslashreplace"))
            except OSError:  # nobody reads it any more, which is no reason to stop serving
                self.dropped += len(taken)

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self._closing.set()
        self._thread.join(CLOSE_SECONDS)

    def _serve(self) -> None:
        while not self._closing.wait(FLUSH_SECONDS):
            self.flush()
        self.flush()


def to_descriptor(descriptor: int) -> Write:
    """Write to an open file, to the last byte."""

    def write(data: bytes) -> None:
        while data:
            data = data[os.write(descriptor, data) :]

    return write


def as_json(exchange: Exchange, status: int, seconds: float) -> str:
    """A request as JSON. A request id and a decision's id hold nothing that JSON would escape; the rest are names of ours."""
    decisions = '","'.join(exchange.decisions[:MOST_DECISIONS])
    return (
        f'{{"time":"{now()}","level":"info","request_id":"{exchange.request_id}","operation":"{exchange.operation}",'
        f'"status":{status},"ms":{seconds * 1e3:.3f},"decisions":[{_quoted(decisions)}]}}'
    )


def as_text(exchange: Exchange, status: int, seconds: float) -> str:
    """A request for people to read."""
    decided = f" decisions={','.join(exchange.decisions[:MOST_DECISIONS])}" if exchange.decisions else ""
    return f"{now()} info {status} {exchange.operation} {seconds * 1e3:.1f} ms request={exchange.request_id}{decided}"


def record_as_json(level: str, logger: str, said: str) -> str:
    """A record as JSON."""
    return json.dumps({"time": now(), "level": level, "logger": logger, "message": said}, separators=(",", ":"))


def record_as_text(level: str, logger: str, said: str) -> str:
    """A record for people to read."""
    return f"{now()} {level} {logger}: {said}"


FORMS: dict[str, Form] = {"json": Form(as_json, record_as_json), "text": Form(as_text, record_as_text)}


class Handler(logging.Handler):
    """What the process reports, and its libraries from warnings on, as lines. Of an error its kind and where, never its
    message, which may hold content."""

    def __init__(self, lines: Lines, line: RecordLine) -> None:
        super().__init__()
        self._lines = lines
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        """Put one record into the lines."""
        if record.levelno < logging.WARNING and not record.name.startswith("gateway."):
            return
        said = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            kind, _, trace = record.exc_info
            said = f"{said} {kind.__name__ if kind else ''}\n{''.join(traceback.format_tb(trace))}"
        self._lines.put(self._line(record.levelname.lower(), record.name, said))


def now() -> str:
    """The time as lines have it: RFC 3339 in UTC with milliseconds."""
    at = time.time()
    second = int(at)
    return f"{_second(second)}.{int((at - second) * 1000):03d}Z"


@lru_cache(maxsize=4)
def _second(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


def _quoted(joined: str) -> str:
    return f'"{joined}"' if joined else ""
