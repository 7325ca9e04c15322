"""Pieces of a long text: small enough that one vector still says what each is about."""

from __future__ import annotations

import re

LONGEST = 1_000
#: No piece but the last is shorter than this, so that a text has a bounded number of them.
SHORTEST = 500
_SENTENCE_END = re.compile(r"[.!?\u2026][\"')\]\u201d\u2019\u00bb]*\s+|[\u3002\uff01\uff1f]|\n+")
_SPACE = re.compile(r"\s+")


def pieces(text: str) -> list[str]:
    """Cut a text after sentences, else after white space, else where a piece is full; together they are the text.

    Pieces of nothing but white space are left out, unless there is no other.
    """
    cut, start = [], 0
    while len(text) - start > LONGEST:
        end = _end(text, start)
        cut.append(text[start:end])
        start = end
    cut.append(text[start:])
    return [piece for piece in cut if not piece.isspace() and piece] or [text]


def _end(text: str, start: int) -> int:
    least, most = start + SHORTEST, start + LONGEST
    for boundary in (_SENTENCE_END, _SPACE):
        ends = [found.end() for found in boundary.finditer(text, least, most)]
        if ends:
            return ends[-1]
    return most
