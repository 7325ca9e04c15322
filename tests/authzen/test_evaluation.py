"""Evaluation: the information model, one question at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.authzen.asking import DOCUMENTS, SINGLE, Pep, asked, rows_of, without
from tests.builders import Gateway

CASES = json.loads((DOCUMENTS / "cases.json").read_text("utf-8"))
REQUIRED = (
    "subject", "action", "resource", "subject.type", "subject.id", "action.name", "resource.type", "resource.id",
)  # fmt: skip


@pytest.mark.parametrize("case", CASES["evaluations"], ids=lambda case: case["name"])
def test_the_sample_store_decides_as_its_cases_say(pep: Pep, case: dict[str, Any]) -> None:
    assert pep.decision(case["request"]) is case["decision"]


@pytest.mark.parametrize("member", REQUIRED)
def test_a_missing_member_is_a_bad_request_that_names_it(pep: Pep, member: str) -> None:
    refused = pep.client.post(SINGLE, without(asked(), member))
    assert refused.status_code == 400
    assert f"`{member}`" in refused.json()["detail"]


@pytest.mark.parametrize("member", ["subject", "action", "resource"])
def test_an_empty_object_is_as_good_as_a_missing_one(pep: Pep, member: str) -> None:
    assert pep.client.post(SINGLE, asked() | {member: {}}).status_code == 400


@pytest.mark.parametrize("value", ["text", 7, True, ["a"]])
@pytest.mark.parametrize("place", ["subject", "action", "resource"])
def test_properties_that_are_no_object_are_a_bad_request(pep: Pep, place: str, value: object) -> None:
    body = asked()
    body[place]["properties"] = value
    assert pep.client.post(SINGLE, body).status_code == 400
    assert pep.client.post(SINGLE, asked(context=value)).status_code == 400


def test_the_context_may_be_left_out_or_null(pep: Pep) -> None:
    assert pep.decision(asked()) is pep.decision(asked(context=None)) is pep.decision(asked(context={})) is True


@pytest.mark.parametrize("value", ["text", 7, 7.25, -(2**70), True, None, [1, "a", None, {"b": []}], {"c": {"d": [None]}}])
def test_properties_and_context_of_any_kind_that_are_not_declared_break_nothing(pep: Pep, value: object) -> None:
    body = asked(context={"unheard": value})
    for member in ("subject", "action", "resource"):
        body[member]["properties"] = {"unheard": value}
    assert pep.decision(body) is True


def test_what_is_sent_of_the_subject_decides(pep: Pep) -> None:
    body = asked("cleo", "read", "roadmap", context={"network": "10.0.0.1"})
    assert pep.decision(body) is False
    body["subject"]["properties"] = {"clearance": 3}
    assert pep.decision(body | {"action": {"name": "read"}}) is False, "she is no reader of it"
    body["resource"]["properties"] = {"readers": "staff"}
    assert pep.decision(body) is True


def test_what_is_sent_of_the_resource_decides(pep: Pep) -> None:
    body = asked("cleo", "comment", "welcome")
    assert pep.decision(body) is True
    body["resource"]["properties"] = {"draft": True}
    assert pep.decision(body) is False


def test_what_is_sent_of_the_action_decides(pep: Pep) -> None:
    body = asked("cleo", "print")
    assert pep.decision(body) is False
    body["action"]["properties"] = {"copies": 2, "reason": "a meeting"}
    assert pep.decision(body) is True


def test_the_same_question_has_the_same_answer(pep: Pep) -> None:
    questions = [asked(), asked("nobody"), asked("ben", "read", "roadmap", context={"network": "10.0.0.1"})]
    answers = [[pep.client.post(SINGLE, question).content for question in questions] for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        ("subject", "clearance", 1.5),
        ("subject", "clearance", 2**63),
        ("subject", "clearance", -(2**63) - 1),
        ("subject", "clearance", "3"),
        ("subject", "guest", "yes"),
        ("subject", "manager", 7),
        ("subject", "manager", {"type": "team", "id": "staff"}),
        ("resource", "labels", "secret"),
        ("resource", "labels", [1]),
        ("resource", "price", 1.23456),
        ("resource", "price", 10**15),
        ("resource", "price", "1e3"),
    ],
)
def test_a_declared_property_of_another_type_is_a_bad_request_that_names_it(
    pep: Pep, place: str, name: str, value: object
) -> None:
    body = asked()
    body[place]["properties"] = {name: value}
    refused = pep.client.post(SINGLE, body)
    assert refused.status_code == 400
    assert f"`{place}.properties.{name}" in refused.json()["detail"]


@pytest.mark.parametrize("context", [{"network": "somewhere"}, {"mfa": 1}, {"network": 7}])
def test_a_declared_member_of_the_context_of_another_type_is_a_bad_request(pep: Pep, context: dict[str, object]) -> None:
    refused = pep.client.post(SINGLE, asked(context=context))
    assert refused.status_code == 400
    assert f"`context.{next(iter(context))}`" in refused.json()["detail"]


@pytest.mark.parametrize("price", [99, 99.5, "99.5", 0.0001])
def test_a_number_is_a_decimal_where_the_schema_says_so(pep: Pep, price: object) -> None:
    body = asked("cleo", "buy", "archive")
    body["resource"]["properties"] = {"price": price}
    assert pep.decision(body) is True


def test_a_null_is_as_good_as_nothing(pep: Pep) -> None:
    body = asked("cleo", "comment")
    body["resource"]["properties"] = {"draft": None, "labels": ["a", None]}
    assert pep.decision(body) is True


def test_what_the_context_calls_the_action_is_not_its_properties(pep: Pep) -> None:
    said = {"copies": 2, "reason": "a meeting"}
    assert pep.decision(asked("cleo", "print", context={"action": said})) is False


def test_parents_cannot_be_sent(pep: Pep) -> None:
    body = asked("dan", "read", "travel-rules")
    body["subject"] |= {"parents": [{"type": "Team", "id": "staff"}], "properties": {"parents": ["staff"]}}
    assert pep.decision(body) is False


def test_unknown_names_are_a_no_and_no_error(pep: Pep) -> None:
    for changed in ({"subject": {"type": "robot", "id": "a"}}, {"action": {"name": "fly"}}, {"resource": {"type": "", "id": ""}}):
        assert pep.decision(asked() | changed) is False


def test_asking_is_one_recorded_decision_without_what_was_asked_about(gateway: Gateway, pep: Pep) -> None:
    before = len(rows_of(gateway, "authzen.evaluate_store"))
    assert pep.decision(asked("cleo")) is True
    [row] = rows_of(gateway, "authzen.evaluate_store")[before:]
    assert (row["type"], row["id"], row["outcome"]) == ("Human", gateway.owner.id, "allow")
    details = row["details"]
    assert (details["asked"], details["count"], details["decisions"]) == ("evaluation", 1, [True])
    assert details["answered_by"] == ["handbook", "readers"]
    assert len(details["digest"]) == 64
    assert "cleo" not in json.dumps(row)
