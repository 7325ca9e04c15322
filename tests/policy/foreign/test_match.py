"""Conditions asked of stored entities: true of exactly those that they are true of."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.model.condition import (
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
from gateway.policy.foreign import match
from gateway.policy.foreign.store import ForeignStore
from tests.policy.conditions import holds
from tests.policy.foreign.stores import entity, ref, written

SCHEMA = """
entity User;
entity Doc = {
  owner?: User, kind?: String, title: String, level?: Long, size: Long, price?: decimal, cost: decimal, open?: Bool,
  labels?: Set<String>, words: Set<String>, readers: Set<User>
};
action see appliesTo { principal: [User], resource: [Doc] };
"""
WORDS = ("", "plan", "Plan", "plans", "a\nb", "a.b", "a*b", "axb", "\\", "é", "e\u0301", "🎉", "u1")
TEXTS, SETS = ("id", "owner", "kind", "title"), ("labels", "words", "readers")
OPTIONAL = ("owner", "kind", "level", "price", "open", "labels")
Plain = dict[str, Any]


def some_docs() -> list[Plain]:
    """Documents as their attributes are: entities by their ids, and sets of texts."""
    chance, docs = random.Random(7), []
    for number in range(40):
        doc: Plain = {
            "id": WORDS[number] if number < len(WORDS) else f"d{number}",
            "owner": chance.choice(["u1", "u2"]),
            "kind": chance.choice(WORDS),
            "title": chance.choice(WORDS),
            "level": chance.randrange(-1, 3),
            "size": chance.randrange(-1, 3),
            "price": Decimal(chance.randrange(4)) / 2,
            "cost": Decimal(chance.randrange(4)) / 2,
            "open": chance.random() < 0.5,
            "labels": frozenset(chance.sample(WORDS, chance.randrange(4))),
            "words": frozenset(chance.sample(WORDS, chance.randrange(4))),
            "readers": frozenset(chance.sample(["u1", "u2", "u3"], chance.randrange(4))),
        }
        docs.append({name: value for name, value in doc.items() if name not in OPTIONAL or chance.random() < 0.7})
    return docs


DOCS = some_docs()


def stored(name: str, value: object) -> object:
    """The value of an attribute in Cedar's JSON."""
    match value:
        case Decimal():
            return {"__extn": {"fn": "decimal", "arg": f"{value:.4f}"}}
        case frozenset():
            return [ref("User", each) if name == "readers" else each for each in sorted(value)]
        case _:
            return ref("User", str(value)) if name == "owner" else value


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ForeignStore:
    docs = [entity("Doc", doc["id"], **{n: stored(n, v) for n, v in doc.items() if n != "id"}) for doc in DOCS]
    return written(tmp_path_factory.mktemp("match") / "store", SCHEMA, "permit (principal, action, resource);", docs)


def kept(store: ForeignStore, condition: Condition) -> list[str]:
    test = match.test_of(condition)
    answered = {one.uid.id: test(match.row_of(one)) for one in store.entities.by_uid.values()}
    assert {type(answer) for answer in answered.values()} == {bool}
    return sorted(id_ for id_, answer in answered.items() if answer)


texts = st.sampled_from(WORDS)
numbers = st.integers(-2, 3)
decimals = st.integers(-1, 4).map(lambda halves: Decimal(halves) / 2)
orders = st.sampled_from(("<", "<=", ">", ">="))
values = st.lists(texts, max_size=4).map(tuple)
leaves = st.one_of(
    st.builds(Known, st.booleans()),
    st.builds(Has, st.sampled_from((*TEXTS, *SETS, *OPTIONAL, "size", "cost"))),
    st.builds(Equals, st.sampled_from(TEXTS), texts),
    st.builds(Equals, st.sampled_from(("level", "size")), numbers),
    st.builds(Equals, st.sampled_from(("price", "cost")), decimals),
    st.builds(Equals, st.just("open"), st.booleans()),
    st.builds(Same, st.sampled_from(TEXTS), st.sampled_from(TEXTS)),
    st.builds(Same, st.sampled_from(SETS), st.sampled_from(SETS)),
    st.builds(Same, st.sampled_from(("level", "size")), st.sampled_from(("level", "size"))),
    st.builds(Compare, st.sampled_from(("level", "size")), orders, numbers),
    st.builds(Compare, st.sampled_from(("price", "cost")), orders, decimals),
    st.builds(OneOf, st.sampled_from(TEXTS), values),
    st.builds(OneOf, st.sampled_from(("level", "size")), st.lists(numbers, max_size=3).map(tuple)),
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
def test_a_store_keeps_the_entities_that_plain_python_keeps(store: ForeignStore, condition: Condition) -> None:
    assert kept(store, condition) == sorted(doc["id"] for doc in DOCS if holds(condition, doc))


@pytest.mark.parametrize("name", [*TEXTS, *SETS, *OPTIONAL])
def test_each_attribute_is_there_where_it_was_written(store: ForeignStore, name: str) -> None:
    found = kept(store, Has(name))
    assert found == sorted(doc["id"] for doc in DOCS if name in doc)
    assert (len(found) < len(DOCS)) == (name in OPTIONAL)


@pytest.mark.parametrize("pieces", [*((word,) for word in WORDS), ("a", "b"), ("plan", ""), ("", "\n", "")], ids=ascii)
def test_the_pieces_of_a_pattern_are_just_texts(store: ForeignStore, pieces: tuple[str, ...]) -> None:
    condition = Like("id", pieces)
    assert kept(store, condition) == sorted(doc["id"] for doc in DOCS if holds(condition, doc)) != []
