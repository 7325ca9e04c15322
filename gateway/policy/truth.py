"""Truth: when a boolean of a policy is true of a row, and when it is false, as two conditions."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.model.condition import FALSE, And, Condition, Has, Known, Not, Or, all_of, any_of, negation


@dataclass(frozen=True, slots=True)
class Truth:
    """Of the rows of neither condition the boolean errs; `sure` says that there are none, so that `false` is not `true`."""

    true: Condition
    false: Condition
    sure: bool

    @property
    def never(self) -> bool:
        """Whether it is false of every row, without an error."""
        return self.sure and self.true == FALSE

    @property
    def always(self) -> bool:
        """Whether it is true of every row, without an error."""
        return self.sure and self.false == FALSE


def sure(condition: Condition) -> Truth:
    """A boolean that never errs."""
    return Truth(condition, negation(condition), True)


def known(value: bool) -> Truth:  # the value is all that there is
    return sure(Known(value))


#: Errs, whatever the row.
ERRS = Truth(FALSE, FALSE, False)
#: Either, whatever the row: where nobody is asking yet.
EITHER = Truth(Has("?"), Not(Has("?")), True)


def reverse(a: Truth) -> Truth:
    return Truth(a.false, a.true, a.sure)


def both(a: Truth, b: Truth) -> Truth:
    """`a && b`: the right side counts only where the left is true."""
    if a.always:
        return b
    true = every(a.true, b.true)
    if a.sure and b.sure:
        return sure(true)
    return Truth(true, some(a.false, every(a.true, b.false)), False)


def either(a: Truth, b: Truth) -> Truth:
    """`a || b`: the right side counts only where the left is false."""
    true = some(a.true, b.true if a.sure else every(a.false, b.true))
    if a.sure and b.sure:
        return sure(true)
    return Truth(true, every(a.false, b.false), False)


def chosen(test: Truth, then: Truth, other: Truth) -> Truth:
    """`if test then a else b`: only one side counts, and neither where the test errs."""
    true = some(every(test.true, then.true), every(test.false, other.true))
    if test.sure and then.sure and other.sure:
        return sure(true)
    return Truth(true, some(every(test.true, then.false), every(test.false, other.false)), False)


def alike(a: Truth, b: Truth) -> Truth:
    """`a == b` of two booleans: both sides count."""
    true = some(every(a.true, b.true), every(a.false, b.false))
    if a.sure and b.sure:
        return sure(true)
    return Truth(true, some(every(a.true, b.false), every(a.false, b.true)), False)


def every(*terms: Condition) -> Condition:
    """The conjunction, flat."""
    return all_of(*[inner for term in terms for inner in (term.terms if isinstance(term, And) else (term,))])


def some(*terms: Condition) -> Condition:
    """The disjunction, flat."""
    return any_of(*[inner for term in terms for inner in (term.terms if isinstance(term, Or) else (term,))])
