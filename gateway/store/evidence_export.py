"""Export of evidence: the rows of the log as the lines that were hashed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from gateway.model.grant import Grant
from gateway.store import log
from gateway.store.entities import Installation
from gateway.store.rows import Rows

LINES_A_TURN = 5_000
FIRST_SINCE = 'SELECT min(seq) FROM log WHERE $1::TIMESTAMP IS NULL OR "at" >= $1'
HASH = "SELECT hash FROM log WHERE seq = $1"
LINES = f"SELECT {log.SELECTED}, hash FROM log WHERE seq > $1 AND seq <= $2 ORDER BY seq"  # noqa: S608  # constants only


def stretch(rows: Rows, grant: Grant[Installation], since: datetime | None) -> tuple[log.Head, log.Head]:
    """Return the rows between which everything since a time stands: the last one before it, and the end of the log."""
    end = log.read_head(rows)
    first = rows.value(FIRST_SINCE, since)
    if first is None:
        return end, end
    if first <= 1:
        return log.ORIGIN, end
    return log.Head(first - 1, rows.value(HASH, first - 1) or ""), end


def lines(rows: Rows, grant: Grant[Installation], after: int, until: int) -> list[tuple[int, str, str]]:
    """Return, of at most `LINES_A_TURN` rows after a place and up to another, the place, the line and the hash."""
    found = rows.all(LINES, after, min(until, after + LINES_A_TURN))
    return [(stored[0], log.line(tuple(stored)), digest) for *stored, digest in found]


def linked(last: str, stretch: list[tuple[int, str, str]]) -> Iterator[bool]:
    """Yield for each line whether its hash follows from the one before; `last` is that of the row before the first."""
    for _, text, digest in stretch:
        yield log.link(last, text) == digest
        last = digest
