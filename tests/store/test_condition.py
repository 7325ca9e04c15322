"""Conditions as SQL: true of exactly the rows that they are true of, and never unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.model.condition import (
    FALSE,
    TRUE,
    And,
    Compare,
    Condition,
    Empty,
    Equals,
    Has,
    HeldBy,
    HoldsAll,
    HoldsAny,
    Known,
    Like,
    Not,
    OneOf,
    Or,
    Same,
)
from gateway.model.memory import LAYERS, TIERS, Memory, Source
from gateway.store.condition import MAX_WEIGHT, MEMORY, Column, filled, render
from gateway.store.db import Database
from tests.policy.conditions import holds
from tests.store.remembered import a_memory, remember
from tests.store.samples import NOON

TICK = timedelta(microseconds=1)
HOSTILE = (
    "alpha", "alpha2", "ALPHA", "a_b", "axb", "a%b", "%", "_", "\\", "", "'", "''; DROP TABLE memories; --", "$1", "🎉", "é",
    "e\u0301", "{where}",
)  # fmt: skip
TEXTS = ("project", "layer", "classification", "id", "org", "agent")
SETS = ("tags", "sources")
FLAGS = ("retracted", "superseded", "expired")


def some_rows() -> list[Memory]:
    rows = []
    for number in range(60):
        ends = (None, NOON - TICK, NOON, NOON + TICK, datetime(9999, 12, 31, tzinfo=UTC))[number % 5]
        came = [HOSTILE[(number * 5 + place) % len(HOSTILE)] or "c" for place in range(number % 3)]
        rows.append(
            a_memory(
                f"m{number}",
                project_id=(None, *HOSTILE)[number % 18],
                tags=tuple(sorted({HOSTILE[(number * 7 + place * 3) % len(HOSTILE)] for place in range(number % 4)})),
                layer=LAYERS[number % 4],
                classification=TIERS[number // 4 % 4],
                provenance=tuple(sorted({Source(way, None) for way in came})),
                expires_at=ends,
                retracted_at=NOON if number % 7 == 0 else None,
                superseded_by="" if number % 11 == 0 else "m0" if number % 13 == 0 else None,
                org_id="org" if number % 6 else "agent",
            )
        )
    return rows


ROWS = some_rows()


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database.create(tmp_path_factory.mktemp("conditions") / "data")
    remember(made, ROWS)
    yield made
    made.close()


def attributes(row: Memory) -> dict[str, Any]:
    """What a row has, as a policy sees it."""
    found = {
        "id": row.id,
        "org": row.org_id,
        "agent": row.agent_id,
        "layer": row.layer,
        "classification": row.classification,
        "tags": frozenset(row.tags),
        "sources": frozenset(row.sources),
        "retracted": row.retracted_at is not None,
        "superseded": row.superseded_by is not None,
        "expired": row.expired_at(NOON),
    }
    return found if row.project_id is None else found | {"project": row.project_id}


def kept(database: Database, condition: Condition) -> list[str]:
    """The rows for which it is true; that it is null of none is made sure of."""
    text, params = render(condition, MEMORY, NOON)
    answered = database.read_sync(lambda rows: rows.all(f"SELECT id, {text} FROM memories", *params))
    assert {type(answer) for _, answer in answered} == {bool}
    sql, bound = filled("SELECT id FROM memories WHERE {where}", condition, MEMORY, NOON)
    found = [row[0] for row in database.read_sync(lambda rows: rows.all(sql, *bound))]
    assert sorted(found) == sorted(row for row, answer in answered if answer)
    return sorted(found)


def wanted(condition: Condition) -> list[str]:
    return sorted(row.id for row in ROWS if holds(condition, attributes(row)))


texts = st.sampled_from((*HOSTILE, *LAYERS, *TIERS, "org", "agent", "m0", "c")) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4
)
values = st.lists(texts, max_size=4).map(tuple)
leaves = st.one_of(
    st.builds(Known, st.booleans()),
    st.builds(Has, st.sampled_from((*TEXTS, *SETS, *FLAGS))),
    st.builds(Equals, st.sampled_from(TEXTS), texts),
    st.builds(Equals, st.sampled_from(FLAGS), st.booleans()),
    st.builds(Same, st.sampled_from(TEXTS), st.sampled_from(TEXTS)),
    st.builds(Same, st.sampled_from(SETS), st.sampled_from(SETS)),
    st.builds(Same, st.sampled_from(FLAGS), st.sampled_from(FLAGS)),
    st.builds(OneOf, st.sampled_from(TEXTS), values),
    st.builds(OneOf, st.sampled_from(FLAGS), st.lists(st.booleans(), max_size=2).map(tuple)),
    st.builds(Like, st.sampled_from(TEXTS), st.lists(texts, min_size=1, max_size=3).map(tuple)),
    st.builds(HoldsAny, st.sampled_from(SETS), values),
    st.builds(HoldsAll, st.sampled_from(SETS), values),
    st.builds(HeldBy, st.sampled_from(SETS), values),
    st.builds(Empty, st.sampled_from(SETS)),
)


def compound(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    terms = st.lists(inner, max_size=3).map(tuple)
    return st.builds(And, terms) | st.builds(Or, terms) | st.builds(Not, inner)


@given(st.recursive(leaves, compound, max_leaves=12))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sql_keeps_the_rows_that_plain_python_keeps(memories: Database, condition: Condition) -> None:
    assert kept(memories, condition) == wanted(condition)


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_is_just_a_string(memories: Database, value: str) -> None:
    for condition in (
        Equals("project", value),
        OneOf("project", (value,)),
        Like("project", (value,)),
        HoldsAny("tags", (value,)),
    ):
        assert kept(memories, condition) == wanted(condition)


def test_projects_that_look_alike_are_others(memories: Database) -> None:
    assert [wanted(Equals("project", name)) for name in ("alpha", "alpha2", "a_b", "axb")] == [
        kept(memories, Like("project", (name,))) for name in ("alpha", "alpha2", "a_b", "axb")
    ]
    assert len({tuple(kept(memories, Equals("project", name))) for name in ("alpha", "alpha2", "ALPHA", "a_b", "axb")}) == 5


def test_none_of_the_values_matches_nothing_and_all_of_none_everything(memories: Database) -> None:
    found = [
        len(kept(memories, test)) for test in (OneOf("layer", ()), HoldsAny("tags", ()), HoldsAll("tags", ()), Or(()), And(()))
    ]
    assert found == [0, 0, len(ROWS), 0, len(ROWS)]


def test_a_row_has_expired_at_the_moment_itself() -> None:
    ends = [NOON - TICK, NOON, NOON + TICK, None]
    assert [a_memory("m", expires_at=end).expired_at(NOON) for end in ends] == [True, True, False, False]


def test_what_has_expired_for_the_model_has_expired_in_the_store(memories: Database) -> None:
    expired = sorted(row.id for row in ROWS if row.expired_at(NOON))
    assert kept(memories, Equals("expired", True)) == expired
    assert kept(memories, Equals("expired", False)) == sorted({row.id for row in ROWS} - set(expired))


def test_numbers_are_compared_exactly_and_a_missing_one_is_false(memories: Database) -> None:
    numbers = {"n": Column("n", "number", optional=True)}
    select = "SELECT n FROM (VALUES (1), (2), (NULL)) AS t (n) WHERE {where}"

    def found(condition: Condition) -> list[int]:
        sql, params = filled(select, condition, numbers, NOON)
        return sorted(row[0] for row in memories.read_sync(lambda rows: rows.all(sql, *params)) if row[0] is not None)

    below = [Compare("n", order, Decimal("2")) for order in ("<", "<=", ">", ">=")]
    assert [found(each) for each in below] == [[1], [1, 2], [], [2]]
    assert [found(Equals("n", 2)), found(Not(Equals("n", 2))), found(Has("n"))] == [[2], [1], [1, 2]]


@pytest.mark.parametrize(
    "condition",
    [
        Has("nothing"),
        Equals("nothing", "x"),
        Same("project", "nothing"),
        Same("project", "tags"),
        Same("project", "expired"),
        Equals("tags", "x"),
        Equals("project", True),
        Equals("project", 1),
        Equals("expired", "true"),
        Equals("expired", 1),
        OneOf("layer", ("fact", 1)),
        HoldsAny("layer", ("fact",)),
        HoldsAny("tags", ("x", 1)),
        Like("tags", ("x",)),
        Like("expired", ("x",)),
        Compare("layer", "<", 1),
        Empty("project"),
    ],
)
def test_what_cannot_be_asked_is_refused(condition: Condition) -> None:
    with pytest.raises(ValueError, match=r"there is no attribute|cannot be"):
        render(condition, MEMORY, NOON)


def test_an_order_that_is_none_is_refused() -> None:
    compare = replace(Compare("n", "<", 1), order="= 1 OR 1")  # type: ignore[arg-type]  # what a mistake would be
    with pytest.raises(ValueError, match="is no order"):
        render(compare, {"n": Column("n", "number")}, NOON)


def test_conditions_that_differ_in_their_values_alone_have_one_text() -> None:
    one = And((Equals("project", "alpha"), OneOf("layer", ("fact",)), Equals("expired", False)))
    other = And((Equals("project", "beta"), OneOf("layer", ("chunk", "fact", "session")), Equals("expired", False)))
    text, params = render(one, MEMORY, NOON, first=3)
    assert render(other, MEMORY, NOON, first=3)[0] == text
    assert params == ("alpha", ["fact"], NOON, False)
    assert text == (
        "((project_id IS NOT NULL AND project_id = $3::VARCHAR) AND (layer = ANY($4::VARCHAR[]))"
        " AND ((expires_at IS NOT NULL AND expires_at <= $5::TIMESTAMP) = $6::BOOLEAN))"
    )


def test_the_moment_is_bound_once() -> None:
    _, params = render(Or((Equals("expired", False), Same("expired", "retracted"))), MEMORY, NOON)
    assert params.count(NOON) == 1


def test_a_long_chain_is_no_deep_nest(memories: Database) -> None:
    chain: Condition = FALSE
    for number in range(2_000):
        chain = Or((chain, Equals("id", f"m{number}")))
    assert kept(memories, chain) == sorted(row.id for row in ROWS)


def test_a_statement_keeps_its_own_parameters_first(memories: Database) -> None:
    sql, params = filled("SELECT id FROM memories WHERE {where} LIMIT $1", TRUE, MEMORY, NOON, 2)
    assert (sql, params) == ("SELECT id FROM memories WHERE TRUE LIMIT $1", (2,))
    assert len(memories.read_sync(lambda rows: rows.all(sql, *params))) == 2


def test_a_condition_that_would_be_said_too_often_is_not_rendered() -> None:
    condition: Condition = Equals("layer", "fact")
    for _ in range(40):  # which shares its parts, so that it takes no more room, and would be of 10^15 parts as a text
        condition = Or((And((condition, Has("project"))), And((Not(condition), Has("project")))))
    with pytest.raises(ValueError, match=f"more than {MAX_WEIGHT} conditions in one query"):
        render(condition, MEMORY, NOON)
    values = tuple(map(str, range(100 * MAX_WEIGHT)))
    with pytest.raises(ValueError, match="conditions in one query"):
        render(OneOf("layer", values), MEMORY, NOON)
