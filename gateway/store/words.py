"""Words: what a text is found by in the keyword search. Pure; any text, in time linear in its length."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from gateway.limits import TOKEN_CHARACTERS

# A character's kind: w letter, digit or mark; u letter of a script that is written without spaces; s symbol; + and #
# themselves; p punctuation; x what is not seen, and is left out; a space for whatever else parts one chunk from the next.
_UNSPACED: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FDF),  # radicals
    (0x3005, 0x3007),  # marks that repeat or stand for an ideograph
    (0x3021, 0x3029),  # numerals
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),  # Katakana extensions
    (0x3400, 0x4DBF),  # ideographs
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),  # Myanmar extensions
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),  # ideographs for compatibility
    (0x1AFF0, 0x1B16F),  # Kana supplements
    (0x20000, 0x3FFFF),  # ideographs of the planes beyond
)
#: Marks that only choose how the character before them looks.
_SELECTORS: Final = ((0x034F, 0x034F), (0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_UNSEEN: Final = re.compile("x+")
#: More marks than that on one letter are not language, and putting marks in order takes the square of their number.
_HEAP: Final = re.compile("(?<=m{30})m+")
_PIECE: Final = re.compile(r"w+|[us+]")
_EXACT: Final = re.compile(r"w(?:[wsp+#]*w)?[+#]*")


def tokens(text: str) -> list[str]:
    """The tokens of a text, each as often as it stands there.

    Words without regard to case or width, one token a character where words are not spaced, one a symbol; and each chunk
    between white space that is more than one word, from its first to its last letter with the `+` and `#` after it:
    `foo-bar`, `3.11`, `c++`. A token is cut after `TOKEN_CHARACTERS`.
    """
    folded = _folded(text)
    kinds = folded.translate(_KINDS)
    found = [folded[match.start() : match.end()][:TOKEN_CHARACTERS] for match in _PIECE.finditer(kinds)]
    for match in _EXACT.finditer(kinds):
        if match.group().strip("w"):
            found.append(folded[match.start() : match.end()][:TOKEN_CHARACTERS])
    return found


def terms(query: str) -> list[str]:
    """The tokens of a query, each once."""
    return list(dict.fromkeys(tokens(query)))


def _folded(text: str) -> str:
    """The text without regard to case and width, and without what is not seen."""
    if text.isascii():
        return text.casefold()
    # What is left out comes first: a letter and its mark are one only when nothing is between them.
    seen = _without(_UNSEEN, text.translate(_KINDS), text)
    plain = _without(_HEAP, seen.translate(_STACKED), seen)
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", plain).casefold())


def _without(left_out: re.Pattern[str], kinds: str, text: str) -> str:
    """The text without the characters whose kinds match."""
    spans = [match.span() for match in left_out.finditer(kinds)]
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)]
    return "".join([text[start:end] for start, end in zip(starts, ends, strict=True)])


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)


def _kind(code: int) -> str:
    character = chr(code)
    if character in "+#":
        return character
    category = unicodedata.category(character)
    if category == "Cf" or _within(code, _SELECTORS):
        return "x"
    match category[0]:
        case "L" | "N" | "M":
            return "u" if _within(code, _UNSPACED) else "w"
        case "P":
            return "p"
        case "S":
            return "s"
        case _:
            # What this version of Unicode does not know is most likely an emoji.
            return "s" if category in ("Cn", "Co") else " "


def _stacked(code: int) -> str:
    return "m" if unicodedata.combining(chr(code)) else "."


class _Table(dict[int, str]):
    """A table for `str.translate` that fills itself, with what is below `KEPT`: it is bounded whatever the texts are."""

    KEPT = 0x10000

    def __init__(self, of: Callable[[int], str]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, code: int) -> str:
        made = self._of(code)
        if code < self.KEPT:
            self[code] = made
        return made


_KINDS: Final = _Table(_kind)
_STACKED: Final = _Table(_stacked)
