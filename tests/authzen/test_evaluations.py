"""Evaluations: many questions in one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gateway import limits
from gateway.model.asked import A_TURN_CHARACTERS, Asked, Unusable
from gateway.policy.foreign.store import ForeignStore, Ruled
from tests.authzen.asking import BATCH, SUBJECTS, Body, Pep, asked, rows_of, without
from tests.builders import Gateway

YES, NO = {"subject": {"type": "user", "id": "cleo"}}, {"subject": {"type": "user", "id": "nobody"}}


def batch(*items: Body, semantic: str | None = None, **members: object) -> Body:
    options = {} if semantic is None else {"options": {"evaluations_semantic": semantic}}
    return asked(**members) | {"evaluations": list(items)} | options


@pytest.mark.parametrize("items", [[], None])
def test_without_items_the_body_is_one_question(pep: Pep, items: object) -> None:
    assert pep.ask(BATCH, asked(evaluations=items)) == {"decision": True}
    assert pep.ask(BATCH, asked("nobody")) == {"decision": False}
    assert pep.client.post(BATCH, without(asked(), "resource") | {"evaluations": items}).status_code == 400


def test_an_empty_item_inherits_everything(pep: Pep) -> None:
    assert pep.decisions(batch({}, {})) == [True, True]


def test_a_member_of_an_item_takes_the_place_of_the_default_whole(pep: Pep) -> None:
    body = batch({"resource": {"type": "document", "id": "welcome"}}, {})
    body["resource"]["properties"] = {"draft": True, "labels": ["secret"]}
    assert pep.decisions(body) == [True, False], "nothing of the default is left in the item"


def test_the_context_of_an_item_replaces_that_of_the_body_whole(pep: Pep) -> None:
    body = batch({}, {"context": {"mfa": True}}, {"context": None}, context={"network": "10.0.0.1"})
    body |= asked("ben", "read", "roadmap", context={"network": "10.0.0.1"})
    assert pep.decisions(body) == [True, False, False]


def test_a_default_may_be_missing_when_each_item_brings_its_own(pep: Pep) -> None:
    items = [{"resource": {"type": "document", "id": name}} for name in ("welcome", "roadmap")]
    assert pep.decisions(without(batch(*items), "resource")) == [True, False]


def test_answers_come_in_the_order_of_the_items_and_are_as_many(pep: Pep) -> None:
    wanted = [n % 3 == 0 or n % 7 == 0 for n in range(250)]
    assert pep.decisions(batch(*(YES if yes else NO for yes in wanted))) == wanted


def test_there_is_no_decision_beside_the_evaluations(pep: Pep) -> None:
    assert list(pep.ask(BATCH, batch({}))) == ["evaluations"]


@pytest.mark.parametrize(
    ("semantic", "items", "wanted"),
    [
        ("execute_all", [YES, NO, YES], [True, False, True]),
        ("deny_on_first_deny", [YES, NO, YES], [True, False]),
        ("deny_on_first_deny", [YES, {"resource": {}}, YES], [True, False]),
        ("deny_on_first_deny", [YES, YES], [True, True]),
        ("permit_on_first_permit", [NO, YES, NO], [False, True]),
        ("permit_on_first_permit", [NO, {"action": 7}, NO], [False, False, False]),
    ],
)
def test_the_semantic_says_where_the_answer_ends(pep: Pep, semantic: str, items: list[Body], wanted: list[bool]) -> None:
    assert pep.decisions(batch(*items, semantic=semantic)) == wanted


def test_a_semantic_ends_the_answer_in_any_chunk(pep: Pep) -> None:
    assert pep.decisions(batch(*[YES] * 150, NO, *[YES] * 150, semantic="deny_on_first_deny")) == [True] * 150 + [False]


def test_all_are_executed_unless_something_else_is_said(pep: Pep) -> None:
    assert pep.decisions(batch(NO, YES) | {"options": {"colour": "blue"}}) == [False, True]


@pytest.mark.parametrize("options", [{"evaluations_semantic": "guess"}, {"evaluations_semantic": 7}, "text", [1]])
def test_a_semantic_that_is_not_known_is_a_bad_request(pep: Pep, options: object) -> None:
    assert pep.client.post(BATCH, batch({}) | {"options": options}).status_code == 400


@pytest.mark.parametrize(
    ("item", "named"),
    [
        ({"resource": {}}, "resource.type"),
        ({"resource": "text"}, "resource"),
        ({"resource": None}, "resource"),
        ({"action": {"name": 7}}, "action.name"),
        ({"context": 7}, "context"),
        ({"subject": {"type": "user", "id": "cleo", "properties": {"clearance": 1.5}}}, "subject.properties.clearance"),
    ],
)
def test_an_item_that_is_wrong_by_itself_is_a_no_that_says_why(pep: Pep, item: Body, named: str) -> None:
    before, wrong, after = pep.ask(BATCH, batch({}, item, {}))["evaluations"]
    assert (before, after) == ({"decision": True}, {"decision": True})
    error = wrong["context"]["error"]
    assert (wrong["decision"], error["status"]) == (False, 400)
    assert f"`{named}`" in error["message"]


def test_an_item_without_a_resource_anywhere_is_a_no_that_says_why(pep: Pep) -> None:
    [wrong] = pep.ask(BATCH, without(batch({}), "resource"))["evaluations"]
    assert (wrong["decision"], wrong["context"]["error"]["status"]) == (False, 400)


@pytest.mark.parametrize("items", ["text", {}, [7], [[]], [None]])
def test_items_that_are_no_list_of_objects_are_a_bad_request(pep: Pep, items: object) -> None:
    assert pep.client.post(BATCH, asked(evaluations=items)).status_code == 400


def test_a_default_of_the_wrong_type_is_a_bad_request(pep: Pep) -> None:
    assert pep.client.post(BATCH, batch(YES) | {"subject": "text"}).status_code == 400


def test_neighbours_with_one_id_and_other_properties_do_not_share_an_answer(pep: Pep) -> None:
    drafts = [None, True, None, False, True, None]
    items: list[Body] = [
        {"resource": {"type": "document", "id": "welcome", **({} if draft is None else {"properties": {"draft": draft}})}}
        for draft in drafts
    ]
    answers = pep.decisions(batch(*items) | {"action": {"name": "comment"}})
    assert answers == [draft is not True for draft in drafts]
    assert pep.decisions(batch(*reversed(items)) | {"action": {"name": "comment"}}) == answers[::-1]


def test_each_item_is_answered_as_it_is_alone(pep: Pep) -> None:
    items: list[Body] = [
        asked(subject, action, resource, context=context)
        for subject in ("ada", "cleo", "nobody")
        for action in ("read", "delete", "fly")
        for resource in ("welcome", "roadmap", "none")
        for context in ({}, {"mfa": True, "network": "10.0.0.1"})
    ]
    assert pep.decisions({"evaluations": items}) == [pep.decision(item) for item in items]


def test_more_questions_than_one_answer_takes_are_refused_whole(pep: Pep) -> None:
    refused = pep.client.post(BATCH, batch(*[{}] * (limits.EVALUATIONS + 1)))
    assert refused.status_code == 400
    assert str(limits.EVALUATIONS) in refused.json()["detail"]
    assert len(pep.decisions(batch(*[{}] * limits.EVALUATIONS))) == limits.EVALUATIONS


def test_what_the_body_says_counts_for_each_question_that_takes_it(pep: Pep) -> None:
    """Else a body of some kilobytes were a thousand times that in work and memory."""
    name = "n" * (limits.EVALUATIONS_CHARACTERS // 100)
    refused = pep.client.post(BATCH, batch(*[{}] * 101, context={"note": name}))
    assert refused.status_code == 400
    assert "`evaluations`" in refused.json()["detail"]
    assert "16 Mi characters" in refused.json()["detail"]


def test_a_question_of_a_batch_is_no_larger_than_one_alone_can_be(pep: Pep) -> None:
    long = {"resource": {"type": "document", "id": "n" * limits.BODY_BYTES}}
    answers = pep.ask(BATCH, batch(*[{}, long] * 3, {"resource": {"type": "document", "id": "welcome"}}))["evaluations"]
    assert [each["decision"] for each in answers] == [*[True, False] * 3, True], "the others are answered"
    assert "over the limit of 256 Ki" in answers[1]["context"]["error"]["message"]
    refused = pep.client.post(BATCH, asked() | long)
    assert refused.status_code == 400
    assert "over the limit of 256 Ki" in refused.json()["detail"]


def test_the_larger_the_questions_the_fewer_are_answered_before_others_get_their_turn(
    pep: Pep, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []
    decide_all = ForeignStore.decide_all

    def counted(store: ForeignStore, asked: Sequence[Asked]) -> list[Ruled | Unusable]:
        turns.append(len(asked))
        return decide_all(store, asked)

    monkeypatch.setattr(ForeignStore, "decide_all", counted)
    large = {"context": {"note": "n" * (A_TURN_CHARACTERS // 3)}}
    assert all(pep.decisions(batch(*[{}] * 150)))
    assert all(pep.decisions(batch(*[large] * 5)))
    assert all(pep.decisions(batch(*[{}] * 5, **large)))
    user = {"subject": {"type": "user"}, "action": {"name": "read"}, "resource": {"type": "document", "id": "welcome"}}
    found = len(pep.found(SUBJECTS, user | large))
    assert turns[:8] == [100, 50, 2, 2, 1, 2, 2, 1]
    assert found > 2
    assert set(turns[8:]) <= {1, 2}


def test_a_batch_is_one_row_with_its_decisions(gateway: Gateway, pep: Pep) -> None:
    before = len(rows_of(gateway, "authzen.evaluate_store"))
    pep.decisions(batch(YES, NO, {"resource": {}}))
    [row] = rows_of(gateway, "authzen.evaluate_store")[before:]
    details: Any = row["details"]
    assert (details["asked"], details["count"], details["decisions"]) == ("evaluations", 3, [True, False, False])


def test_the_digest_of_a_row_tells_batches_apart(gateway: Gateway, pep: Pep) -> None:
    for body in (batch(YES, NO), batch(YES, NO), batch(YES, {"subject": {"type": "user", "id": "somebody"}})):
        assert pep.decisions(body) == [True, False]
    one, same, other = (row["details"]["digest"] for row in rows_of(gateway, "authzen.evaluate_store")[-3:])
    assert one == same != other
