"""The connectives, with constants folded: what is decided by types alone leaves nothing for a solver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import z3

#: A term of the solver, which has no types of its own.
Term = Any
TRUE, FALSE = z3.BoolVal(True), z3.BoolVal(False)


def known(value: bool) -> Term:
    """Returns a constant."""
    return TRUE if value else FALSE


def always(term: Term) -> bool:
    """Whether a term is the constant `TRUE`."""
    return bool(z3.is_true(term))


def never(term: Term) -> bool:
    """Whether a term is the constant `FALSE`."""
    return bool(z3.is_false(term))


def no(term: Term) -> Term:
    """Returns the negation."""
    if always(term) or never(term):
        return known(never(term))
    return z3.Not(term)


def every(*terms: Term) -> Term:
    """Returns the conjunction; of nothing, `TRUE`."""
    return _joined(terms, z3.And, TRUE, FALSE)


def some(*terms: Term) -> Term:
    """Returns the disjunction; of nothing, `FALSE`."""
    return _joined(terms, z3.Or, FALSE, TRUE)


def same(left: Term, right: Term) -> Term:
    """Returns the equality; values of two sorts are never equal."""
    if left.sort() != right.sort():
        return FALSE
    return TRUE if left.eq(right) else left == right


def chosen(test: Term, left: Term, right: Term) -> Term:
    """Returns `left` where the test holds, else `right`; they are of one sort."""
    if always(test) or left.eq(right):
        return left
    return right if never(test) else z3.If(test, left, right)


def _joined(terms: Iterable[Term], join: Any, neutral: Term, decisive: Term) -> Term:
    left = [term for term in terms if not term.eq(neutral)]
    if any(term.eq(decisive) for term in left):
        return decisive
    if len(left) < 2:
        return left[0] if left else neutral
    return join(*left)
