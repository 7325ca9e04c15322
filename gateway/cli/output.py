"""What a command prints: a table for people, JSON for scripts, progress on standard error while it is a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

WIDEST_CELL = 60


def print_json(value: object, *, to: TextIO | None = None) -> None:
    """Indented JSON, in which no character moves the cursor of a terminal."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text), file=to)


def note(sentence: str) -> None:
    """What is worth knowing and no error, beside the answer: on standard error."""
    print(f"note: {_plain(sentence)}", file=sys.stderr)


def print_page(answer: Mapping[str, Any], rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    """A table of the rows of an answer, and how to go on when there are more."""
    print_rows(rows, columns)
    total, cursor = answer.get("total"), answer.get("next_cursor")
    more = f"--cursor {cursor} shows more" if cursor else "--limit and --offset show more"
    if total is not None and total > len(rows):
        print(f"{len(rows)} of {total}; {more}")


def print_rows(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    """A plain table with a heading; nothing but the heading when there are no rows."""
    lines = [[column.upper() for column in columns], *([_cell(_at(row, column)) for column in columns] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_fields(value: Mapping[str, object]) -> None:
    """One `name  value` line a member."""
    width = max((len(name) for name in value), default=0)
    for name, member in value.items():
        print(f"{name.ljust(width)}  {_plain(member)}")


def print_prose(text: str) -> None:
    """Lines as they are, but for what is not printable."""
    for line in text.split("\n"):
        print(_plain(line))


def counted(number: int, thing: str) -> str:
    """A number and what is counted, of which one is one: `1 change`, `2 changes`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def bold(text: str) -> str:
    """Emphasis on a terminal that wants it."""
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else text


class Progress:
    """Rewrites one line on a terminal; elsewhere prints nothing."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._shown = sys.stderr.isatty()

    def __call__(self, done: int | str, total: int | None = None) -> None:
        if self._shown:
            share = f" of {total:,}" if total else ""
            so_far = f"{done:,}" if isinstance(done, int) else done
            print(f"\r\x1b[K{self._label}: {so_far}{share}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print(file=sys.stderr)


@contextmanager
def progress(label: str) -> Iterator[Progress]:
    """A progress line that ends with its block."""
    shown = Progress(label)
    try:
        yield shown
    finally:
        shown.end()


def _at(row: Mapping[str, object], column: str) -> object:
    value: object = row
    for part in column.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _plain(value: object) -> str:
    """One line of text that a terminal shows and does not obey: an agent may have written it."""
    text = "-" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else "?" for c in text)


def _cell(value: object) -> str:
    text = _plain(value)
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 1] + "…"
