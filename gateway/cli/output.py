"""What a command prints: a table for people, JSON for scripts, progress on standard error while it is a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

WIDEST_CELL = 60


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


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
        print(f"{name.ljust(width)}  {member if isinstance(member, str) else json.dumps(member, ensure_ascii=False)}")


def bold(text: str, stream: TextIO = sys.stdout) -> str:
    return f"\x1b[1m{text}\x1b[0m" if stream.isatty() else text


class Progress:
    """Rewrites one line on a terminal; elsewhere prints nothing."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._shown = sys.stderr.isatty()

    def __call__(self, done: int, total: int | None = None) -> None:
        if self._shown:
            share = f" of {total:,}" if total else ""
            print(f"\r{self._label}: {done:,}{share}", end="", file=sys.stderr, flush=True)

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


def _cell(value: object) -> str:
    text = "-" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 1] + "…"
