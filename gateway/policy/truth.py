"""Truth: when a boolean of a policy is true of a row, and when it is false, as two conditions."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.model.condition import FALSE, And, Condition, Known, Not, Or, all_of, any_of, negation, weight
from gateway.policy.columns import refuse

#: What both conditions of a truth, or that of a plan, may weigh. `==` of two booleans says each side twice, so that a nesting
#: of 24 would be said sixteen million times. A connection's fifty grants weigh some 1,400.
MAX_WEIGHT = 4_000


@dataclass(frozen=True, slots=True)
class Truth:
    """Of the rows of neither condition the boolean errs; `sure` says that there are none, so that `false` is not `true`.

    Raises `Untranslatable` for conditions that weigh over `MAX_WEIGHT`.
    """

    true: Condition
    false: Condition
    sure: bool

    def __post_init__(self) -> None:
        if self.weight > MAX_WEIGHT:
            refuse(f"more than {MAX_WEIGHT} conditions on a row, each counted as often as it would stand in the query")

    @property
    def weight(self) -> int:
        """What both conditions weigh."""
        return weight(self.true) + weight(self.false)

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
#: Either, whatever the row, or an error: where nobody is asking yet. It weighs nothing, because it will be a value by then.
# INVARIANT: what is made with it weighs at least as much as with any value, or an error, in its place.
EITHER = Truth(Not(Or(())), Not(And(())), False)


def reverse(a: Truth) -> Truth:
    return Truth(a.false, a.true, a.sure)


def both(a: Truth, b: Truth) -> Truth:
    """`a && b`: the right side counts only where the left is true."""
    if a.always:
        return b
    true = every(a.true, b.true)
    if a.sure and b.sure:
        return _settled(true, some(a.false, b.false))
    return Truth(true, some(a.false, every(a.true, b.false)), False)


def either(a: Truth, b: Truth) -> Truth:
    """`a || b`: the right side counts only where the left is false."""
    true, false = some(a.true, b.true if a.sure else every(a.false, b.true)), every(a.false, b.false)
    return _settled(true, false) if a.sure and b.sure else Truth(true, false, False)


def chosen(test: Truth, then: Truth, other: Truth) -> Truth:
    """`if test then a else b`: only one side counts, and neither where the test errs."""
    true = some(every(test.true, then.true), every(test.false, other.true))
    false = some(every(test.true, then.false), every(test.false, other.false))
    return _settled(true, false) if test.sure and then.sure and other.sure else Truth(true, false, False)


def alike(a: Truth, b: Truth) -> Truth:
    """`a == b` of two booleans: both sides count."""
    true, false = some(every(a.true, b.true), every(a.false, b.false)), some(every(a.true, b.false), every(a.false, b.true))
    return _settled(true, false) if a.sure and b.sure else Truth(true, false, False)


def _settled(true: Condition, false: Condition) -> Truth:
    """A boolean that never errs: that it is false is said as the opposite, or as lightly as for one that may err."""
    opposite = negation(true)
    return Truth(true, opposite if weight(opposite) <= weight(false) else false, True)


def every(*terms: Condition) -> Condition:
    """The conjunction, flat."""
    return all_of(*[inner for term in terms for inner in (term.terms if isinstance(term, And) else (term,))])


def some(*terms: Condition) -> Condition:
    """The disjunction, flat."""
    return any_of(*[inner for term in terms for inner in (term.terms if isinstance(term, Or) else (term,))])
