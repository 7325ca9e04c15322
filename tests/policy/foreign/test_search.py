"""Searches over random stores: what is found is what each candidate is decided to be, whether or not there is a plan.

`PEERGATE_FOREIGN_ROUNDS` asks for a longer run.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.model.asked import Named, Sought
from gateway.policy.foreign import search as searching
from gateway.policy.foreign.entities import Stored
from gateway.policy.foreign.match import Row, row_of
from gateway.policy.foreign.search import search
from gateway.policy.foreign.store import ForeignStore, Ruled
from tests.policy.foreign.stores import SCHEMA, a_store, asked, entity, ref, written

ROUNDS = int(os.environ.get("PEERGATE_FOREIGN_ROUNDS", "40"))
CONTEXTS: tuple[dict[str, object], ...] = ({}, {"late": True, "floor": 1})
PEOPLE, DOCS = [f"u{n}" for n in range(5)], [f"d{n}" for n in range(12)]


def found(store: ForeignStore, sought: Sought, *question: str, context: dict[str, object]) -> list[str]:
    one = asked(*question, context=context)  # type: ignore[arg-type]  # a subject, an action and a resource
    return [id_ for some in search(store, sought, one) for _, id_ in some.allowed]


def yes(store: ForeignStore, *question: str, context: dict[str, object]) -> bool:
    return store.decide(asked(*question, context=context)).allowed  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_search_finds_what_candidates_are_decided_to_be(tmp_path: Path, seed: int) -> None:
    store = a_store(tmp_path / "store", seed)
    for context in CONTEXTS:
        for action in ("see", "edit"):
            for person in PEOPLE:
                wanted = [doc for doc in sorted(DOCS) if yes(store, person, action, doc, context=context)]
                assert found(store, "resource", person, action, "", context=context) == wanted
            for doc in DOCS[::4]:
                wanted = [person for person in PEOPLE if yes(store, person, action, doc, context=context)]
                assert found(store, "subject", "", action, doc, context=context) == wanted
        wanted = [action for action in ("edit", "see") if yes(store, "u1", action, "d1", context=context)]
        assert found(store, "action", "u1", "", "d1", context=context) == wanted


def test_plans_are_exact_and_answer_most_random_searches(tmp_path: Path) -> None:
    planned = 0
    for seed in range(ROUNDS):
        store = a_store(tmp_path / str(seed), seed)
        for person in PEOPLE:
            one = asked(person, "see", "", context=CONTEXTS[1])
            plan = searching._planned(store, one, store.entities.ids["Doc"])
            if plan is not None:
                planned += 1
                kept = [doc for doc in sorted(DOCS) if plan(doc)]
                assert kept == [doc for doc in sorted(DOCS) if yes(store, person, "see", doc, context=CONTEXTS[1])]
    assert planned > ROUNDS * len(PEOPLE) / 4


def test_a_batch_decides_as_its_items_do_alone(tmp_path: Path) -> None:
    store = a_store(tmp_path / "store", 7)
    items = [asked(person, action, doc) for person in PEOPLE for action in ("see", "edit") for doc in DOCS]
    items[::3] = [item._replace(resource=Named("Doc", item.resource.id, {"level": 0})) for item in items[::3]]
    assert store.decide_all(items) == [store.decide(item) for item in items]


POLICY = 'permit (principal, action == Action::"see", resource) when { resource.open };'
USER = entity("User", "ann@sample.example", level=1, tags=[])
DOC = entity("Doc", "one/two", owner=ref("User", "ann@sample.example"), team=ref("Team", "t"), level=1, open=True, labels=[])


def test_ids_that_no_plan_takes_are_searched_all_the_same(tmp_path: Path) -> None:
    store = written(tmp_path / "store", SCHEMA, POLICY, [USER, DOC])
    assert searching._planned(store, asked("ann@sample.example", "see", ""), ["one/two"]) is None
    assert found(store, "resource", "ann@sample.example", "see", "", context={}) == ["one/two"]


def test_a_plan_is_held_against_some_candidates_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = {"owner": ref("User", "ann"), "team": ref("Team", "t"), "level": 1, "labels": []}
    documents = [entity("Doc", f"d{number}", **same, open=number >= 30) for number in range(10, 50)]
    store = written(tmp_path / "store", SCHEMA, POLICY, [entity("User", "ann", level=1, tags=[]), *documents])
    looked_at: list[Stored] = []

    def counted(stored: Stored) -> Row:
        looked_at.append(stored)
        return row_of(stored)

    monkeypatch.setattr(searching, "row_of", counted)
    monkeypatch.setattr(searching, "AT_ONCE", 2)
    turns = [(len(looked_at), len(some.allowed)) for some in search(store, "resource", asked("ann", "see", ""))]
    assert turns == [(20, 0), *[(40, 2)] * 10]


def test_a_group_that_is_not_stored_is_not_kept(tmp_path: Path) -> None:
    schema = """
        entity User; entity Folder in [Folder]; entity Doc in [Folder];
        action see appliesTo { principal: [User], resource: [Doc], context: { folder: Folder } };
    """
    policy = 'permit (principal, action == Action::"see", resource) when { resource in context.folder };'
    entities = [entity("User", "ann"), entity("Folder", "top"), entity("Doc", "one", ("Folder", "top"))]
    store = written(tmp_path / "store", schema, policy, entities)
    for folder, there in (("top", ["one"]), *((f"none {number}", []) for number in range(3))):
        assert found(store, "resource", "ann", "see", "", context={"folder": folder}) == there
    assert len(store.entities._below) == 1


def test_a_place_among_the_candidates_is_where_a_search_begins(tmp_path: Path) -> None:
    store = a_store(tmp_path / "store", 3)
    one = asked("u1", "see", "")
    whole = [place for some in search(store, "resource", one) for place in some.allowed]
    for start in range(len(DOCS) + 1):
        rest = [place for some in search(store, "resource", one, start) for place in some.allowed]
        assert rest == [(at, id_) for at, id_ in whole if at >= start]


def test_what_is_unknown_is_not_made_up_for_a_search(tmp_path: Path) -> None:
    schema = "entity User; entity Doc; action see appliesTo { principal: [User], resource: [Doc] };"
    store = written(
        tmp_path / "store", schema, "permit (principal, action, resource);", [entity("User", "u"), entity("Doc", "d")]
    )
    assert store.decide(asked("unheard", "see", "d")) == Ruled(True, None, ("all#1",))
    assert found(store, "resource", "unheard", "see", "", context={}) == []
    assert found(store, "resource", "u", "see", "", context={}) == ["d"]
