"""A context is whole lines and the footer, or nothing, within every budget."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derive.buckets import Bucket, fact_key
from derive.context import FOOTER, Context, Cut, render
from derive.events import rfc3339
from derive.facts import Belief, sentence

START = datetime(2026, 1, 1, tzinfo=UTC)


def inferred(recipient: str, *, count: int = 3, day: int = 0, disputed: bool = False) -> Belief:
    key = fact_key(Bucket("refund.create", "10-50", "known", recipient))
    last_at = rfc3339(START + timedelta(days=day))
    value: dict[str, object] = {"decision": "approved", "observations": count, "last_at": last_at}
    return Belief(key, value, "0.76", edited_by_human=False, disputed=disputed, updated_at=START)


def corrected(recipient: str, *, day: int = 0, **value: object) -> Belief:
    key = fact_key(Bucket("refund.create", "10-50", "new", recipient))
    at = START + timedelta(days=day)
    return Belief(key, value, None, edited_by_human=True, disputed=False, updated_at=at)


DAY_BY_DAY = [
    *(inferred(f"shop{n}@example.org", count=3 + n % 7, day=n) for n in range(55)),
    *(inferred(f"café{n}\n<b>👍", count=3, disputed=n == 0) for n in range(9)),
    *(corrected(f"friend{n}", day=n, text="Ask me first. " * (9 + n)) for n in range(9)),
    corrected("nobody", decision="rejected", last_at=["free"], observations="many"),
]
BELIEFS = st.lists(
    st.one_of(
        st.builds(
            inferred,
            st.text(min_size=1),
            count=st.integers(3, 5),
            day=st.integers(0, 3),
            disputed=st.booleans(),
        ),
        st.builds(
            corrected,
            st.text(min_size=1),
            day=st.integers(0, 3),
            text=st.text(),
            last_at=st.none() | st.text(),
        ),
    ),
    max_size=8,
    unique_by=lambda belief: belief.fact_key,
)


def lines_of(beliefs: list[Belief]) -> list[str]:
    return render(beliefs, budget=10**6).text.splitlines()[:-1]


def allowed_texts(lines: list[str]) -> list[str]:
    """Gives every text that a context of these lines may be: nothing, or the first lines and the footer."""
    return ["", *("\n".join([*lines[:n], FOOTER]) for n in range(1, len(lines) + 1))]


def check(beliefs: list[Belief], allowed: list[str], *, budget: int) -> None:
    context = render(beliefs, budget=budget)
    fitting = [text for text in allowed if len(text) <= budget]
    assert (context.text, context.characters) == (fitting[-1], len(fitting[-1]))
    assert len(context.cut) == len(beliefs) - len(fitting) + 1


def test_every_budget_from_0_to_8000_is_obeyed() -> None:
    lines = lines_of(DAY_BY_DAY)
    assert len(lines) == len(DAY_BY_DAY) - 1  # one fact is disputed
    allowed = allowed_texts(lines)
    assert len(allowed[-1]) > 8000
    for budget in range(8001):
        check(DAY_BY_DAY, allowed, budget=budget)


@given(BELIEFS, st.integers(0, 2500))
def test_hostile_facts_obey_every_budget(beliefs: list[Belief], budget: int) -> None:
    lines = lines_of(beliefs)
    assert sorted(lines) == sorted(f"- {sentence(each)}" for each in beliefs if not each.disputed)
    assert all(char <= "\uffff" for line in lines for char in line)
    check(beliefs, allowed_texts(lines), budget=budget)


@given(st.permutations(DAY_BY_DAY[-12:]), st.integers(0, 2000))
def test_any_order_of_facts_gives_the_same_bytes(beliefs: list[Belief], budget: int) -> None:
    assert render(beliefs, budget=budget) == render(DAY_BY_DAY[-12:], budget=budget)


def test_corrections_come_first_then_support_then_time_then_key() -> None:
    ranked = [
        corrected("z", text="late", day=2),
        corrected("a", text="early"),
        inferred("y", count=9),
        inferred("x", count=4, day=5),
        inferred("b", count=4, day=2),
        inferred("c", count=4, day=2),
    ]
    assert render(reversed(ranked), budget=8000).text == "\n".join([*(f"- {sentence(each)}" for each in ranked), FOOTER])


def test_a_fact_without_a_last_decision_is_as_recent_as_its_change() -> None:
    value = {"decision": "approved", "observations": 3}
    bare = Belief(inferred("b").fact_key, value, "0.76", False, False, START + timedelta(days=9))
    assert render([inferred("a"), bare], budget=len(FOOTER) + 120).cut == (Cut(inferred("a").fact_key, "budget"),)


def test_the_first_line_that_does_not_fit_ends_the_text() -> None:
    first, long, short = inferred("a", count=9), inferred("b" * 90, count=8), inferred("c")
    room = len(render([first, short], budget=8000).text)
    assert render([first, long, short], budget=room) == Context(
        f"- {sentence(first)}\n{FOOTER}",
        len(sentence(first)) + len(FOOTER) + 3,
        (Cut(long.fact_key, "budget"), Cut(short.fact_key, "budget")),
    )


def test_a_disputed_fact_is_left_out_and_named() -> None:
    kept, disputed = inferred("a"), inferred("b", count=9, disputed=True)
    context = render([kept, disputed], budget=8000)
    assert context.text == f"- {sentence(kept)}\n{FOOTER}"
    assert context.cut == (Cut(disputed.fact_key, "disputed"),)


@pytest.mark.parametrize("budget", [0, 1, 8000])
def test_no_fact_is_no_text(budget: int) -> None:
    assert render([], budget=budget) == Context("", 0, ())


def test_the_footer_needs_room_too() -> None:
    only = inferred("a")
    room = len(f"- {sentence(only)}\n{FOOTER}")
    assert render([only], budget=room).characters == room
    assert render([only], budget=room - 1) == Context("", 0, (Cut(only.fact_key, "budget"),))
