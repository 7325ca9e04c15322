"""Selection: which cases a `-k` expression chooses: words with `and`, `or`, `not` and parentheses."""

from __future__ import annotations

import re
from collections.abc import Callable

from gateway.policy.cases import Case

Choice = Callable[[str], bool]
WORD = re.compile(r'\(|\)|"[^"]*"|[^\s()]+')


def selection(expression: str) -> Callable[[Case], bool]:
    """Returns whether a case is chosen; raises `ValueError` for an expression that is none.

    A word is looked for in the name, the file, the action and the control of a case, whatever its capitals; in quotes it
    may have spaces. Nothing chooses every case.
    """
    words = WORD.findall(expression)
    if not words:
        return lambda case: True
    choice = _either(words)
    if words:
        raise ValueError(f"`{words[0]}` is not expected there")
    return lambda case: choice(f"{case.name} {case.file} {case.action} {case.control}".casefold())


def _either(words: list[str]) -> Choice:
    chosen = _both(words)
    while words[:1] == ["or"]:
        del words[0]
        chosen = _or(chosen, _both(words))
    return chosen


def _both(words: list[str]) -> Choice:
    chosen = _one(words)
    while words[:1] == ["and"]:
        del words[0]
        chosen = _and(chosen, _one(words))
    return chosen


def _one(words: list[str]) -> Choice:
    if not words or words[0] in (")", "and", "or"):
        raise ValueError("a word is missing")
    word = words.pop(0)
    if word == "not":
        inner = _one(words)
        return lambda text: not inner(text)
    if word == "(":
        inner = _either(words)
        if words[:1] != [")"]:
            raise ValueError("a `)` is missing")
        del words[0]
        return inner
    wanted = word.strip('"').casefold()
    return lambda text: wanted in text


def _and(left: Choice, right: Choice) -> Choice:
    return lambda text: left(text) and right(text)


def _or(left: Choice, right: Choice) -> Choice:
    return lambda text: left(text) or right(text)
