"""Gathering: the same rows, a shorter condition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.model.condition import And, Condition, Empty, Equals, Has, Not, OneOf, Or, all_of
from gateway.model.gather import PARTS, gather
from tests.policy.conditions import holds

LEAVES = st.sampled_from(
    [
        Equals("p", "1"),
        Equals("p", "2"),
        Equals("p", "3"),
        Equals("q", "1"),
        Equals("q", "2"),
        Has("p"),
        Empty("t"),
        Equals("b", True),
    ]
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda terms: And(tuple(terms))),
        st.lists(inner, max_size=4).map(lambda terms: Or(tuple(terms))),
        inner.map(Not),
    ),
    max_leaves=24,
)
ROWS = st.fixed_dictionaries(
    {"q": st.sampled_from("123"), "t": st.sampled_from([(), ("x",)]), "b": st.booleans()}, optional={"p": st.sampled_from("1234")}
)


@given(CONDITIONS, ROWS)
def test_what_is_gathered_is_true_of_the_same_rows(condition: Condition, row: dict[str, object]) -> None:
    assert holds(gather(condition), row) is holds(condition, row)


def test_alternatives_that_differ_in_one_value_are_one() -> None:
    same = (Equals("q", "1"), OneOf("t", ("x", "y")))
    many = Or(tuple(And((same[0], Equals("p", str(n)), same[1])) for n in range(50)))
    assert gather(many) == And((*same, OneOf("p", tuple(str(n) for n in range(50)))))


def test_alternatives_that_differ_in_more_stay_apart() -> None:
    apart = Or((all_of(Equals("p", "1"), Empty("t")), all_of(Equals("p", "2"), Has("q"))))
    assert gather(apart) == apart


def test_a_condition_twice_is_a_condition_once() -> None:
    assert gather(And((Equals("p", "1"), Equals("p", "1")))) == Equals("p", "1")


def test_terms_that_ask_many_things_are_left_as_they_are() -> None:
    def terms(parts: int) -> Or:
        same = tuple(Has(str(number)) for number in range(parts - 1))
        return Or(tuple(And((*same, Equals("p", value))) for value in "12"))

    assert gather(terms(PARTS)) != terms(PARTS)
    assert gather(terms(PARTS + 1)) == terms(PARTS + 1)
