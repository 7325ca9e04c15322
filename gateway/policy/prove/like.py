"""Patterns of `like`: fitted to strings, and strings found for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from cedarpy import pst

Pattern = tuple[pst.PatternElem, ...]


def shown(pattern: Pattern) -> str:
    """Returns a pattern as text that stands for it and no other."""
    pieces = ["*" if isinstance(element, pst.Wildcard) else json.dumps(element.value)[1:-1] for element in pattern]
    return "".join("\\*" if piece == "*" and isinstance(e, pst.Char) else piece for piece, e in zip(pieces, pattern, strict=True))


def fits(text: str, pattern: Pattern) -> bool:
    """Whether a string fits a pattern."""
    pieces = (".*" if isinstance(element, pst.Wildcard) else re.escape(element.value) for element in pattern)
    return re.fullmatch("".join(pieces), text, re.DOTALL) is not None


def fitting(wanted: Iterable[Pattern], unwanted: Iterable[Pattern], filler: str) -> str | None:
    """Returns a string that fits some patterns and not others, or None when none is found by filling a pattern in."""
    wanted, unwanted = tuple(wanted), tuple(unwanted)
    fillers = (filler, "", *(_filled(pattern, filler) for pattern in wanted))
    for text in (filler, *(_filled(pattern, part) for pattern in wanted for part in fillers)):
        if all(fits(text, pattern) for pattern in wanted) and not any(fits(text, pattern) for pattern in unwanted):
            return text
    return None


def _filled(pattern: Pattern, filler: str) -> str:
    return "".join(filler if isinstance(element, pst.Wildcard) else element.value for element in pattern)
