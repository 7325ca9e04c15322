"""Log of decisions and changes: one hash chain, in which a row that is edited, removed, moved or added shows.

The hash of a row is SHA-256 over the hash before it, a line feed, and the row as canonical JSON: sorted keys, no spaces,
ASCII, `seq` included. Exported rows are those same lines, so anyone can walk the chain with a JSON parser and `sha256sum`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, NamedTuple

from gateway.model.evidence import LogRow

if TYPE_CHECKING:
    from gateway.store.rows import Row, Rows, Tx


class Head(NamedTuple):
    """The end of the chain: the last row's place and hash."""

    seq: int
    hash: str


ORIGIN = Head(0, hashlib.sha256(b"peergate log 1").hexdigest())


class Entry(NamedTuple):
    """A row made ready, but for its place: the canonical text around `seq`, and the columns of the table after it as one text."""

    before: str
    after: str
    columns: str
    slice_bodies: Mapping[str, str]


class Chained(NamedTuple):
    """Rows with their places and hashes as texts, the head that they lead to, and the slices that are not stored yet."""

    head: Head
    rows: Sequence[str]
    bodies: Mapping[str, str]


class Written(NamedTuple):
    """What a transaction has added to the log, to be settled when it is committed."""

    head: Head
    slices: frozenset[str]


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk along the chain found.

    `checked` rows were looked at and `verified` of them hold; the walk ends at the first that does not, named by
    `broken_at_id`. `head_seq` and `head_hash` are the last row that holds.
    """

    valid: bool
    checked: int
    verified: int
    broken_at_id: str | None
    head_seq: int
    head_hash: str


class Log:
    """The writer's end of the log: its head, and which slices are known to be stored, or never to be again."""

    SLICES_KNOWN = 10_000

    def __init__(self, head: Head) -> None:
        self.head = head
        self._known: set[str] = set()

    def chain(self, entries: Sequence[Entry]) -> Chained:
        """Chain the entries onto the head; the head itself moves with `settle`."""
        seq, last = self.head
        rows: list[str] = []
        bodies: dict[str, str] = {}
        for entry in entries:
            seq += 1
            last = link(last, f"{entry.before}{seq}{entry.after}")
            rows.append(f"{seq}{COLUMN_ENDS}{entry.columns}{COLUMN_ENDS}{last}")
            bodies.update(entry.slice_bodies)
        for known in self._known & bodies.keys():
            del bodies[known]
        return Chained(Head(seq, last), rows, bodies)

    def write(self, tx: Tx, chained: Chained) -> Written:
        """Insert what was chained: the slices first, because a row may be committed by itself."""
        if chained.bodies:
            tx.insert_many(_INSERT_SLICES, list(chained.bodies), list(chained.bodies.values()))
        if chained.rows:
            tx.run_prepared("append_to_log", ROW_ENDS.join(chained.rows))
        return Written(chained.head, frozenset(chained.bodies))

    def settle(self, written: Written) -> None:
        """Take over what has been committed."""
        self.head = written.head
        if len(self._known) + len(written.slices) > self.SLICES_KNOWN:
            self._known.clear()
        self._known |= written.slices


def read_head(rows: Rows) -> Head:
    """Return the last row's place and hash."""
    row = rows.one("SELECT seq, hash FROM log WHERE seq = (SELECT max(seq) FROM log)")
    return ORIGIN if row is None else Head(*row)


def encode(row: LogRow) -> Entry:
    """Make a row ready for the log; raise TypeError or ValueError for what JSON or the database cannot hold."""
    if row.at.tzinfo is None:
        raise ValueError(f"a time without a zone: `{row.at}`")
    at = _written(row.at)
    policies, slices, details = _list(row.policies), _list(row.slices), _json(row.details)
    columns = COLUMN_ENDS.join((
        row.kind, row.id, at, row.org_id, row.principal_type, row.principal_id, row.action, row.resource_type,
        row.resource_id, row.outcome or "", row.deny_kind or "", policies, row.bundle, str(row.data_version),
        slices, row.request_id, details,
    ))  # fmt: skip
    if columns.count(COLUMN_ENDS) != 16 or ROW_ENDS in columns:
        raise ValueError("a text holds a character that ends columns or rows")
    # A lone surrogate is refused here and not where it would fail a whole batch.
    for text in (columns, *row.slice_bodies.values()):
        if not text.isascii():
            text.encode()
    before, after = _canonical(
        (row.kind, row.id, at, row.org_id, row.principal_type, row.principal_id, row.action, row.resource_type,
         row.resource_id, row.outcome or None, row.deny_kind or None, policies, row.bundle, row.data_version, slices,
         row.request_id, details)
    )  # fmt: skip
    return Entry(before, after, columns, row.slice_bodies)


def line(stored: Row) -> str:
    """Return the canonical JSON of a row of the table, given as `SELECTED` without its hash."""
    before, after = _canonical((*stored[1:3], _written(stored[3]), *stored[4:]))
    return f"{before}{stored[0]}{after}"


def link(last: str, text: str) -> str:
    """Return the hash of the row with canonical JSON `text` that follows the hash `last`."""
    return hashlib.sha256(f"{last}\n{text}".encode()).hexdigest()


def verify(rows: Rows, *, from_seq: int = 1, limit: int | None = None, after: Head | None = None) -> Verification:
    """Walk the chain from `from_seq` over at most `limit` places, and stop at the first row that does not hold.

    A walk that does not start at the first place trusts the hash stored before its start; one that goes on `after` the head
    of the walk before trusts that head, and nothing stored.
    """
    last = read_head(rows).seq
    first = min(max(from_seq if after is None else after.seq + 1, 1), last + 1)
    stop = last if limit is None else min(last, first + limit - 1)
    head, stray = _start(rows, first) if after is None else (after, None)
    checked = 0
    if stray is None:
        for low in range(first, stop + 1, _PAGE):
            for *stored, digest in rows.all(_SELECT, low, min(low + _PAGE - 1, stop)):
                checked += 1
                if not _holds(tuple(stored), digest, head):
                    return Verification(False, checked, checked - 1, stored[2], *head)
                head = Head(stored[0], digest)
        if head.seq >= stop:
            return Verification(True, checked, checked, None, *head)
        stray = rows.value("SELECT id FROM log WHERE seq > $1 ORDER BY seq LIMIT 1", head.seq)
    return Verification(False, checked + 1, checked, stray, *head)


def _canonical(columns: Row) -> tuple[str, str]:
    """Return the canonical JSON of a row, its time as text, on either side of `seq`.

    The texts of `policies`, `slices` and `details` are JSON already and go in as they are: every byte of them counts.
    """
    (kind, id_, at, org_id, principal_type, principal_id, action, resource_type, resource_id, outcome, deny_kind,
     policies, bundle, data_version, slices, request_id, details) = columns  # fmt: skip
    before = (
        f'{{"action":{quoted(action)},"at":"{at}Z",'
        f'"bundle":{quoted(bundle)},"data_version":{data_version},"deny_kind":{_optional(deny_kind)},'
        f'"details":{details},"id":{quoted(id_)},"kind":{quoted(kind)},"org_id":{quoted(org_id)},'
        f'"outcome":{_optional(outcome)},"policies":{policies},"principal_id":{quoted(principal_id)},'
        f'"principal_type":{quoted(principal_type)},"request_id":{quoted(request_id)},'
        f'"resource_id":{quoted(resource_id)},"resource_type":{quoted(resource_type)},"seq":'
    )
    return before, f',"slices":{slices}}}'


def _written(at: datetime) -> str:
    if at.tzinfo is UTC:
        return at.isoformat(timespec="microseconds")[:26]
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def _optional(text: str | None) -> str:
    return "null" if text is None else quoted(text)


def _holds(stored: Row, digest: str, head: Head) -> bool:
    """Say whether a row of the table follows `head`.

    Only JSON that parses goes into the hashed text: a JSON value ends where it ends, so no two rows have the same text.
    """
    try:
        for text in (stored[12], stored[15], stored[17]):
            json.loads(text)
    except (ValueError, RecursionError):
        return False
    return stored[0] == head.seq + 1 and link(head.hash, line(stored)) == digest


def _start(rows: Rows, first: int) -> tuple[Head, str | None]:
    """Return what the row `first` has to follow, and the id of a row that was put in where the log has no place."""
    if first > 1:
        return Head(first - 1, rows.value("SELECT hash FROM log WHERE seq = $1", first - 1) or ""), None
    return ORIGIN, rows.value("SELECT id FROM log WHERE seq < 1 ORDER BY seq LIMIT 1")


SELECTED = (
    'seq, kind, id, "at", org_id, principal_type, principal_id, action, resource_type, resource_id, outcome, deny_kind, '
    "policies, bundle, data_version, slices, request_id, details"
)
_PAGE = 1_000
_SELECT = f"SELECT {SELECTED}, hash FROM log WHERE seq BETWEEN $1 AND $2 ORDER BY seq"  # noqa: S608  # constants only
# One text for all rows, and a plan that is made once: to pass each column as a list, and to plan the statement anew, took the
# writer five times as long.
COLUMN_ENDS, ROW_ENDS = "\x1f", "\x1e"
_READ = {1: "f[1]::BIGINT", 4: "f[4]::TIMESTAMP", 11: "nullif(f[11], '')", 12: "nullif(f[12], '')", 15: "f[15]::BIGINT"}
PREPARE = f"""PREPARE append_to_log AS INSERT INTO log ({SELECTED}, hash)
  SELECT {", ".join(_READ.get(column, f"f[{column}]") for column in range(1, 20))}
  FROM (SELECT string_split(unnest(string_split(decode(from_base64($1)), chr(30))), chr(31)) AS f)"""  # noqa: S608  # ours
# The record of a decision may come after what it was about has been erased: its slice is not stored then. A slice is
# canonical JSON of entities, in which an id stands as exactly this text, and text that looks like it is escaped.
_INSERT_SLICES = """INSERT INTO slices (hash, body)
  WITH made AS (SELECT unnest($1::VARCHAR[]) AS hash, unnest($2::VARCHAR[]) AS body),
  named AS (SELECT hash, unnest(regexp_extract_all(body, '"id":"([^"]*)"', 1)) AS id FROM made)
  SELECT hash, body FROM made WHERE hash NOT IN (SELECT hash FROM named JOIN erased USING (id)) ON CONFLICT (hash) DO NOTHING"""


_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


@lru_cache(maxsize=4_096)
def _list(texts: tuple[str, ...]) -> str:
    """The same few policies and slices decide again and again."""
    return _json(texts)
