"""Lines: where each case stands in its file."""

from __future__ import annotations

import json
import re

SPACE = re.compile(r"[\s,]*")


def case_lines(text: str) -> list[int]:
    """Returns the line, from 1, on which each element of a JSON list begins; `text` is such a list."""
    decoder = json.JSONDecoder()
    lines: list[int] = []
    at, line, counted = text.index("[") + 1, 1, 0
    while True:
        at = _space_end(text, at)
        if text[at] == "]":
            return lines
        line, counted = line + text.count("\n", counted, at), at
        lines.append(line)
        _, at = decoder.raw_decode(text, at)


def _space_end(text: str, at: int) -> int:
    space = SPACE.match(text, at)
    return at if space is None else space.end()
