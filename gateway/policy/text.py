"""Cedar text as tokens and as single policies: strings and comments are known, nothing is parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# INVARIANT: no alternative can fail after it has scanned far, so the time is linear for any text. An unterminated
# string runs to the end, as it does for Cedar, whose parser stops there. A carriage return alone ends a comment.
TOKEN = re.compile(
    r'(?P<comment>//[^\r\n]*)|"(?:[^"\\]|\\.?)*(?:"|\Z)|[A-Za-z_][A-Za-z0-9_]*|[0-9]+|&&|\|\||::|[=!<>]=|\S',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """One policy as it is written, from its first annotation to its semicolon; `line` counts from 1."""

    line: int
    text: str


def tokens(text: str) -> Iterator[re.Match[str]]:
    """Yields the tokens of `text`, comments left out."""
    return (token for token in TOKEN.finditer(text) if token.lastgroup != "comment")


def split(text: str) -> list[Piece]:
    """Returns the policies of `text` in order; what follows the last semicolon is a piece too, for the parser to refuse."""
    pieces: list[Piece] = []
    start: int | None = None
    line, counted, end = 1, 0, 0
    for token in tokens(text):
        if start is None:
            start = token.start()
            line, counted = line + text.count("\n", counted, start), start
        end = token.end()
        if token[0] == ";":  # which nothing within a policy is
            pieces.append(Piece(line, text[start:end]))
            start = None
    if start is not None:
        pieces.append(Piece(line, text[start:end]))
    return pieces
