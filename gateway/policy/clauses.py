"""Clauses: the `when` and `unless` of a policy as they are written, and what they join with `&&`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from cedarpy import pst

from gateway.policy import guard
from gateway.policy.source import PolicyInfo
from gateway.policy.text import tokens

OPEN, CLOSED = "([{", ")]}"
WORDS = frozenset("in has like is if then else".split())


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause; `number` and `line` count from 1, `text` is what stands between its braces, on one line."""

    policy_id: str
    number: int
    kind: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.kind} {{ {self.text} }}"


def clauses(info: PolicyInfo) -> tuple[Clause, ...]:
    """Returns the clauses of a policy in order."""
    return tuple(Clause(info.id, n, *found) for n, found in enumerate(_clauses(info), start=1))


def conjuncts(clause: Clause) -> tuple[str, ...]:
    """Returns what has to be true for a clause to be met, in order, each as Cedar text; an `unless` is one negation."""
    if clause.kind == "unless":
        return (f"!({clause.text})",)
    return tuple(_spelled(term) for term in _terms([token[0] for token in tokens(clause.text)]))


def expression(text: str) -> pst.Expr:
    """Returns Cedar text of an expression as a syntax tree; raises `ValueError`."""
    [clause] = guard.parse(f"permit (principal, action, resource) when {{ {text} }};").clauses
    return clause.expr


def _clauses(info: PolicyInfo) -> Iterator[tuple[str, int, str]]:
    depth, kind, start, body = 0, "", 0, list[str]()
    for token in tokens(info.text):
        word = token[0]
        depth -= word in CLOSED
        if depth == 0 and word in ("when", "unless"):
            kind, start, body = word, token.start(), []
        elif depth == 0 and word == "}":
            yield kind, info.line + info.text.count("\n", 0, start), _spelled(body)
        elif depth:
            body.append(word)
        depth += word in OPEN


def _terms(words: list[str]) -> Iterator[list[str]]:
    """Splits words at the `&&` that join them; brackets around a whole chain are looked into."""
    while words[0] == "(" and _closing(words) == len(words) - 1:
        words = words[1:-1]
    depth, joints = 0, list[int]()
    for at, word in enumerate(words):
        depth += (word in OPEN) - (word in CLOSED)
        if depth == 0 and word == "&&":
            joints.append(at)
        elif depth == 0 and word in ("||", "if"):  # which bind less: it is one term
            joints = []
            break
    if not joints:
        yield words
        return
    for begin, end in zip([-1, *joints], [*joints, len(words)], strict=True):
        yield from _terms(words[begin + 1 : end])


def _closing(words: Sequence[str]) -> int:
    """Where the bracket that stands first is closed."""
    return list(accumulate((word in OPEN) - (word in CLOSED) for word in words)).index(0)


def _spelled(words: Sequence[str]) -> str:
    """Words on one line, spaced as people write them."""
    text = ""
    for before, word in zip(("", *words), words, strict=False):
        tight = not text or before in ("(", "[", ".", "!", "::") or word in (")", "]", ".", ",", "::")
        call = word in "([" and re.fullmatch(r"\w+|[)\]]", before) is not None and before not in WORDS
        text += word if tight or call else f" {word}"
    return text
