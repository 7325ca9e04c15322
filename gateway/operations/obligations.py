"""Obligations: what the network asks to be done to an answer before it leaves; one that is not understood is refused."""

from __future__ import annotations

import copy
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from gateway.errors import GatewayError, echo
from gateway.operations.recall import BETWEEN

Answer = dict[str, Any]

WINDOWS: dict[str, timedelta] = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
#: What an answer says of itself.
ALWAYS = frozenset({"ok", "redactions_applied"})
#: The frame of an answer: emptied where it is to be withheld, and never taken away.
STRUCTURE = frozenset({"items", "item", "answer", "sources"})
#: Where an answer holds the text of rows.
TEXTS = frozenset({"answer", "content"})
#: The names of what an `answer` is made of.
CONTENT = frozenset({"content", "sources.content"})
#: A run of characters without a space counts as a word for each so many.
WORD_CHARACTERS = 64
MEGABYTE = 1_000_000

_FIELD = re.compile(r"[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,15}")
_RUN = re.compile(r"\S+")


class Unsatisfiable(GatewayError):
    """An obligation is unknown, malformed or cannot be met, so that nothing is answered."""

    status = 422
    title = "obligation unsatisfiable"


@dataclass(frozen=True, slots=True)
class Obligations:
    """What is to be done to an answer; of several of one type, the strictest.

    `rates` is the most requests a window, `hidden` the fields to take out; of each list in `shown`, no others are left in.
    """

    max_words: int | None = None
    max_bytes: int | None = None
    rates: Mapping[str, int] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    shown: tuple[frozenset[str], ...] = ()


def read_obligations(entries: object) -> Obligations:
    """The obligations of a request.

    Raises:
        Unsatisfiable: not a list, or one of them is unknown, malformed, or has a parameter more or less than it takes.
    """
    if not isinstance(entries, list):
        raise Unsatisfiable(f"`obligations` must be a list, got {echo(entries)}")
    words: list[int] = []
    sizes: list[int] = []
    rates: dict[str, int] = {}
    hidden: frozenset[str] = frozenset()
    shown: list[frozenset[str]] = []
    for index, entry in enumerate(entries):
        kind, given = _entry(entry, f"obligations[{index}]")
        match kind:
            case "summarize_only":
                words.append(given["max_words"])
            case "max_size_mb":
                sizes.append(given["max"])
            case "rate_limit":
                rates[given["window"]] = min(given["max"], rates.get(given["window"], given["max"]))
            case "redact_fields":
                hidden |= given["fields"]
            case "redact_fields_except":
                shown.append(given["allowlist"])
            case "audit_level":  # every decision is recorded, at every level
                pass
    return Obligations(min(words, default=None), min(sizes, default=None), rates, hidden, tuple(shown))


def apply_obligations(made: Answer, asked: Obligations) -> Answer:
    """An answer after its obligations: fields taken out, then words, then bytes; `redactions_applied` names the fields.

    Raises:
        Unsatisfiable: not even an empty answer would be small enough.
    """
    withheld: set[str] = set()
    left = _redacted(made, (), asked, withheld)
    if withheld or "redactions_applied" in made:
        left["redactions_applied"] = sorted(withheld)
    if asked.max_words is not None:
        left = _summarized(left, asked.max_words)
    return left if asked.max_bytes is None else _shortened(left, asked.max_bytes)


# -- reading


def _entry(entry: object, place: str) -> tuple[str, dict[str, Any]]:
    if not isinstance(entry, dict) or set(entry) != {"type", "params"}:
        raise Unsatisfiable(f"`{place}` must be an object of `type` and `params`, got {_members(entry)}")
    kind, params = entry["type"], entry["params"]
    readers = _PARAMETERS.get(kind) if isinstance(kind, str) else None
    if readers is None:
        raise Unsatisfiable(f"`{place}.type` must be one of {', '.join(_PARAMETERS)}, got {echo(kind)}")
    if not isinstance(params, dict) or set(params) != set(readers):
        raise Unsatisfiable(f"`{place}.params` must hold {', '.join(readers)} and nothing else, got {_members(params)}")
    return kind, {name: read(params[name], f"{place}.params.{name}") for name, read in readers.items()}


def _members(value: object) -> str:
    """What was sent, with the names of an object's members."""
    return f"members {', '.join(map(echo, value)) or 'none'}" if isinstance(value, dict) else echo(value)


def _count(value: object, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Unsatisfiable(f"`{place}` must be a whole number of 1 or more, got {echo(value)}")
    return value


def _size(value: object, place: str) -> int:
    """Megabytes, as whole bytes."""
    number = Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else Decimal(0)
    if not number.is_finite() or number <= 0:
        raise Unsatisfiable(f"`{place}` must be a number above 0, got {echo(value)}")
    return int(number * MEGABYTE)


def _window(value: object, place: str) -> str:
    if not isinstance(value, str) or value not in WINDOWS:
        raise Unsatisfiable(f"`{place}` must be one of {', '.join(WINDOWS)}, got {echo(value)}")
    return value


def _level(value: object, place: str) -> str:
    if not isinstance(value, str) or not _FIELD.fullmatch(value):
        raise Unsatisfiable(f"`{place}` must be a word, got {echo(value)}")
    return value


def _fields(value: object, place: str) -> frozenset[str]:
    if not isinstance(value, list):
        raise Unsatisfiable(f"`{place}` must be a list of fields, got {echo(value)}")
    for index, name in enumerate(value):
        # A pattern, or a template that nobody filled in, names no field: taken literally it would withhold nothing.
        if not isinstance(name, str) or not _FIELD.fullmatch(name):
            raise Unsatisfiable(f"`{place}[{index}]` must be a name or names joined by dots, got {echo(name)}")
    return frozenset(value)


_PARAMETERS: dict[str, dict[str, Callable[[object, str], Any]]] = {
    "summarize_only": {"max_words": _count},
    "rate_limit": {"window": _window, "max": _count},
    "redact_fields": {"fields": _fields},
    "redact_fields_except": {"allowlist": _fields},
    "max_size_mb": {"max": _size},
    "audit_level": {"level": _level},
}


# -- applying


def _redacted(value: Answer, above: tuple[str, ...], asked: Obligations, withheld: set[str]) -> Answer:
    left: Answer = {}
    for name, member in value.items():
        path = (*above, name)
        names = _withheld_as(path, asked)
        withheld |= names
        if not names:
            left[name] = _below(member, path, asked, withheld)
        elif path[0] == name and name in STRUCTURE:
            left[name] = type(member)()
    return left


def _below(value: Any, path: tuple[str, ...], asked: Obligations, withheld: set[str]) -> Any:
    match value:
        case dict():
            return _redacted(value, path, asked, withheld)
        case list():
            return [_below(member, path, asked, withheld) for member in value]
    return value


def _withheld_as(path: tuple[str, ...], asked: Obligations) -> set[str]:
    """The names under which the field at a path is withheld; none when it stays.

    What is to be hidden is looked for at the end of the path, what may be shown is all of it or a bare name: both the
    stricter way.
    """
    dotted, name = ".".join(path), path[-1]
    if dotted in ALWAYS:
        return set()
    found = {field for field in asked.hidden if dotted == field or dotted.endswith(f".{field}")}
    if dotted == "answer":
        # It is made of the `content` of rows: what withholds that withholds this, unless this is named as well.
        found |= asked.hidden & CONTENT
        if any(not shown & {"answer", *CONTENT} for shown in asked.shown):
            found.add(name)
    elif dotted not in STRUCTURE and any(not shown & {name, dotted} for shown in asked.shown):
        found.add(name)
    return found


def _summarized(made: Answer, most: int) -> Answer:
    """Its texts, in order, up to so many words in all; where they end, rows stay without a text."""
    left = most

    def cut(value: Any, name: str) -> Any:
        nonlocal left
        match value:
            case dict():
                return {key: cut(member, key) for key, member in value.items()}
            case list():
                return [cut(member, name) for member in value]
            case str() if name in TEXTS:
                kept, used = first_words(value, left)
                left -= used
                return kept
        return value

    return {name: cut(member, name) for name, member in made.items()}


def first_words(text: str, most: int) -> tuple[str, int]:
    """The beginning of a text that holds at most so many words, and how many it holds."""
    used = end = 0
    for run in _RUN.finditer(text):
        words = -(-len(run[0]) // WORD_CHARACTERS)
        if used + words > most:
            room = (most - used) * WORD_CHARACTERS
            return (text[: run.start() + room] if room else text[:end]), most
        used, end = used + words, run.end()
    return text, used


def _shortened(made: Answer, most: int) -> Answer:
    """Rows are left out from the end until the rest is small enough; of a last one, the text is cut."""
    made = copy.deepcopy(made)
    rows: list[Answer] = next((made[name] for name in ("items", "sources") if name in made), [])
    over = encoded_bytes(made) - most
    while over > 0 and len(rows) > 1:
        row = rows.pop()
        over -= encoded_bytes(row) + len(",")
        tail = BETWEEN + row.get("content", "")
        if tail != BETWEEN and made.get("answer", "").endswith(tail):
            made["answer"] = made["answer"][: -len(tail)]
            over -= encoded_bytes(tail) - len('""')
    for row, name in ((made, "answer"), *((row, "content") for row in (*rows, made.get("item", {})))):
        if over > 0 and name in row:
            row[name] = _cut(row[name], over)
            over = encoded_bytes(made) - most
    if over > 0:
        rows.clear()
    if encoded_bytes(made) > most:
        raise Unsatisfiable(f"no answer is as small as {most} bytes")
    return made


def _cut(text: str, over: int) -> str:
    """The longest beginning of a text whose JSON form is shorter by so many bytes."""
    most = encoded_bytes(text) - over
    return text[: max(0, bisect_right(range(len(text) + 1), most, key=lambda end: encoded_bytes(text[:end])) - 1)]


def encoded_bytes(value: object) -> int:
    """How long a value is as the JSON that is sent."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
