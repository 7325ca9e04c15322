"""What is refused before Cedar sees it: text that would crash its parser, and text that it takes and then fails over."""

from __future__ import annotations

import re
from collections.abc import Iterable

import cedarpy
from cedarpy import pst

from gateway.policy.text import tokens

#: Cedar's parser recurses: at a nesting of about 570 the process dies of a stack overflow.
MAX_NESTING = 50
#: A flat chain of 1,800 terms passes validation and fails when evaluated; one of 2,000 kills `policies_to_pst`.
MAX_OPERATORS = 600
MAX_BYTES = 2 * 1024 * 1024
MAX_POLICIES = 5_000
#: `like` takes the length of a text times that of its pattern, and no other request is answered meanwhile.
MAX_STRING = 1_024
MAX_WILDCARDS = 8
#: All lists of one policy together: each is put together again for each decision.
MAX_ELEMENTS = 1_000

OPENING, CLOSING = "([{", ")]}"
#: In a pattern `\x2a` and `\u{2a}` are wildcards too, so that each character that is written as a number is taken for one.
ESCAPED = re.compile(r"\\(.)|\*", re.DOTALL)
#: Everything that becomes a node over other nodes, clauses included: Cedar joins them with `&&`.
OPERATORS = frozenset("&& || == != <= >= < > + - * ! . [ if in is has like when unless".split())


class GuardError(ValueError):
    """A text is refused unparsed; the message names the limit."""


def check_size(text: str) -> None:
    """Raises `GuardError` when `text` is longer than `MAX_BYTES` in UTF-8, or is not Unicode text."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise GuardError("not unicode text") from error
    if size > MAX_BYTES:
        raise GuardError(f"longer than {MAX_BYTES} bytes")


def check(text: str) -> None:
    """Raises `GuardError` when one policy is too long, nests deeper than `MAX_NESTING` or has over `MAX_OPERATORS`; or when a
    string, a pattern or the lists in it are over their limits.

    Brackets, runs of `!` or `-`, and `if` (whose `else` is nested in it until the bracket around it closes) all nest.
    """
    check_size(text)
    words = [token[0] for token in tokens(text)]
    _check_literals(words)
    operators = depth = run = 0
    branches = [0]
    for word in words:
        operators += word in OPERATORS
        run = run + 1 if word in "!-" else 0
        if word in OPENING:
            depth += 1
            branches.append(0)
        elif word in CLOSING and len(branches) > 1:
            depth -= 1 + branches.pop()
        elif word == "if":
            depth += 1
            branches[-1] += 1
        if depth + run > MAX_NESTING:
            raise GuardError(f"nested deeper than {MAX_NESTING}")
        if operators > MAX_OPERATORS:
            raise GuardError(f"more than {MAX_OPERATORS} operators")


def _check_literals(words: Iterable[str]) -> None:
    elements, before, open_ = 0, "", [""]
    for word in words:
        if word[0] == '"':
            if len(word) - 2 > MAX_STRING:
                raise GuardError(f"a string longer than {MAX_STRING} characters")
            if before == "like" and _wildcards(word) > MAX_WILDCARDS:
                raise GuardError(f"a pattern with more than {MAX_WILDCARDS} wildcards")
        elif word in OPENING:
            open_.append(word)
        elif word in CLOSING and len(open_) > 1:
            open_.pop()
        elements += word == "," and open_[-1] == "["
        if elements >= MAX_ELEMENTS:
            raise GuardError(f"more than {MAX_ELEMENTS} elements in lists")
        before = word


def _wildcards(pattern: str) -> int:
    return sum(found[1] in (None, "x", "u") for found in ESCAPED.finditer(pattern))


def check_schema(text: str) -> None:
    """Raises `GuardError` when a schema nests deeper than `MAX_NESTING`; in a schema `<` and `>` are brackets."""
    check_size(text)
    depth = 0
    for token in tokens(text):
        depth += (token[0] in OPENING + "<") - (token[0] in CLOSING + ">")
        if depth > MAX_NESTING:
            raise GuardError(f"nested deeper than {MAX_NESTING}")


def parse(text: str) -> pst.Template:
    """Returns the one static policy that `text` holds; raises `GuardError` or `ValueError` for anything else.

    `policies_to_pst` is the gate because it refuses `unknown(...)`, which strict validation lets pass, and which makes a
    forbid err and so be skipped.
    """
    check(text)
    parsed = cedarpy.policies_to_pst(text)
    if parsed.templates:
        raise GuardError("a template: slots are not used here")
    [policy] = parsed.static_policies.values()
    return policy
