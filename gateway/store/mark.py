"""Mark beside the database: the last row of the log that was acknowledged, so that a lost end of the log is noticed.

DuckDB drops a damaged end of its write-ahead log without a word; the mark is what knows better. It is written after
each commit that added to the log: one of two slots in turn, each in its own block with a checksum, written through to
the disk (54 microseconds; a rename and two `fsync` took 283). A torn write spoils one slot, never both.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from gateway.store.faults import StoreBehind, StoreRefused
from gateway.store.files import sync
from gateway.store.log import ORIGIN, Head, read_head
from gateway.store.rows import Rows

_BLOCK = 4_096
_BODY = 20 + 1 + 64
_SLOT = _BODY + 1 + 8 + 1


class Mark:
    """The open side file. It is made when it is missing, and then says nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_DSYNC, 0o600)
        self._slot = 0
        sync(path.parent)

    def read(self) -> Head | None:
        """Return the newest head that a slot holds, or None when neither slot does."""
        heads = [_parse(os.pread(self._descriptor, _SLOT, slot * _BLOCK)) for slot in (0, 1)]
        newest = max((head for head in heads if head is not None), default=None)
        self._slot = 1 - heads.index(newest) if newest is not None else 0
        return newest

    def write(self, head: Head) -> None:
        """Put `head` on disk in place of the older slot; raise OSError when that fails."""
        os.pwrite(self._descriptor, render(head), self._slot * _BLOCK)
        self._slot = 1 - self._slot

    def close(self) -> None:
        os.close(self._descriptor)


def render(head: Head) -> bytes:
    """Return the text of a slot: place, hash, checksum of both."""
    body = f"{head.seq:020d} {head.hash}".encode()
    return body + _checksum(body)


def check(mark: Mark, rows: Rows, *, accept_missing: bool) -> Head:
    """Compare the mark with the log, move it up to the log's head, and return that.

    A mark behind the log is what a crash between commit and mark leaves. `StoreBehind` is raised when the log ends before
    the mark or has another row there, `StoreRefused` when the log has rows and there is no mark, unless `accept_missing`.
    """
    marked = mark.read()
    head = compare(marked, rows, accept_missing=accept_missing)
    if head != marked:
        mark.write(head)
    return head


def compare(marked: Head | None, rows: Rows, *, accept_missing: bool) -> Head:
    """The log's head, after the comparison that `check` describes; nothing is written."""
    head = read_head(rows)
    if marked is None:
        if head != ORIGIN and not accept_missing:
            raise StoreRefused(
                "the mark beside the database is missing or damaged, so nothing shows that the log is whole: restore "
                "`peergate.mark`, or accept the log as it is (`accept_missing_mark`) once `audit verify` finds it sound"
            )
    elif head.seq < marked.seq:
        raise StoreBehind(
            f"the log ends at record {head.seq}, but record {marked.seq} was acknowledged: {marked.seq - head.seq} records "
            "are missing; restore the write-ahead log or a backup",
            missing=marked.seq - head.seq,
        )
    elif marked != ORIGIN and rows.value("SELECT hash FROM log WHERE seq = $1", marked.seq) != marked.hash:
        raise StoreBehind(
            f"record {marked.seq} of the log is not the one that was acknowledged: the log was changed; restore a backup",
            missing=0,
        )
    return head


def _parse(slot: bytes) -> Head | None:
    body, checksum = slot[:_BODY], slot[_BODY:]
    if checksum != _checksum(body):
        return None
    return Head(int(body[:20]), body[21:].decode())


def _checksum(body: bytes) -> bytes:
    return f" {zlib.crc32(body):08x}\n".encode()
