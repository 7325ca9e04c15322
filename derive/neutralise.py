"""Neutralising: third-party text made into prose that is read, and does not act, inside a prompt."""

import re
from functools import lru_cache
from unicodedata import category, normalize

_REPLACEMENT = "\ufffd"
_ELLIPSIS = "…"

# Control, format (bidi, zero-width), surrogate, private use, unassigned.
_UNREADABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
# Unicode's default-ignorable characters outside those categories: joiners, fillers, variation selectors.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0").union(
    map(chr, range(0xFE00, 0xFE10))
)
# What opens fences, tags, links and templates, and what ends a quotation. The colon stands for its own wide forms, see _ROLE.
_HARMLESS = {"`": "'", '"': "'", "'": "'", "<": "(", ">": ")", "[": "(", "]": ")", "{": "(", "}": ")", ":": ":"}
# Quotation marks are the initial and final quotes of Unicode, and these of other categories.
_QUOTE_CATEGORIES = frozenset({"Pi", "Pf"})
_QUOTES = frozenset(
    "\u201a\u201e\u300c\u300d\u300e\u300f\u301d\u301e\u301f\u2e42\u02ba\u02dd\u02ee\u05f4\u2033\u2036\u275b\u275c\u275d\u275e\u3003"
)
_ROLE = re.compile(r"(?:system|assistant|user|human|developer|tool|function|model|instructions?)[\W_]*", re.IGNORECASE)
_FENCE = re.compile("~{3,}")


def neutralise(text: str, *, limit: int) -> str:
    """Gives the text as one line of at most `limit` code points of the BMP; a second pass changes nothing.

    Blanks and line ends become single spaces. What cannot be seen, or is outside the BMP, becomes U+FFFD:
    without a trace of it two different names would read alike. Backticks and all quotation marks but the plain
    double one become apostrophes; angle, square and curly brackets become parentheses; `system:` and its kin
    lose the colon. A cut text ends in an ellipsis.
    """
    line = " ".join("".join(map(_plain, text)).split())
    line = _ROLE.sub(lambda role: role.group().replace(":", "-"), line)
    line = _FENCE.sub("~~", line)
    # INVARIANT: what the rules above hold of a line they hold of each part of it, so the cut undoes none.
    if len(line) <= limit:
        return line
    return line[: limit - 1].rstrip() + _ELLIPSIS if limit > 0 else ""


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    if char.isspace():
        return " "
    if char > "\uffff" or char in _INVISIBLE or category(char) in _UNREADABLE:
        return _REPLACEMENT
    if char == '"':
        return char  # our own sentences quote with it; what is put between two of them loses its own, see facts
    folded = normalize("NFKC", char)
    if category(char) in _QUOTE_CATEGORIES or char in _QUOTES or folded in _QUOTES:
        return "'"
    return _HARMLESS.get(folded, char)
