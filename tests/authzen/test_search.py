"""Searches: what is found, on which pages, and that each result is what an evaluation says."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from gateway import limits
from gateway.operations.authzen_page import LIFETIME
from gateway.operations.registry import OPERATIONS
from gateway.web.app import create_app
from tests.authzen.asking import ACTIONS, BATCH, DOCUMENTS, RESOURCES, SINGLE, SUBJECTS, Body, Pep, asked, rows_of, without
from tests.builders import Gateway

CASES = json.loads((DOCUMENTS / "cases.json").read_text("utf-8"))
PATHS = {"subject": SUBJECTS, "resource": RESOURCES, "action": ACTIONS}
INSIDE = {"network": "10.0.0.1", "mfa": True}
USER, DOCUMENT = {"type": "user", "id": "ben"}, {"type": "document", "id": "roadmap"}
SEARCHES: dict[str, Body] = {
    "subject": {"subject": {"type": "user"}, "action": {"name": "read"}, "resource": DOCUMENT, "context": INSIDE},
    "resource": {"subject": USER, "action": {"name": "read"}, "resource": {"type": "document"}, "context": INSIDE},
    "action": {"subject": USER, "resource": DOCUMENT, "context": INSIDE},
}
KINDS = pytest.mark.parametrize("sought", SEARCHES)


def pages(pep: Pep, sought: str, body: Body, limit: int) -> list[list[Any]]:
    """Every page of a search; the follow-up says no limit."""
    found, page = [], {"limit": limit}
    while True:
        answer = pep.ask(PATHS[sought], body | {"page": page})
        found.append(answer["results"])
        if not answer["page"]["next_token"]:
            return found
        page = {"token": answer["page"]["next_token"]}


@pytest.mark.parametrize("case", CASES["searches"], ids=lambda case: case["name"])
def test_the_sample_store_is_searched_as_its_cases_say(pep: Pep, case: dict[str, Any]) -> None:
    found = pep.found(PATHS[case["search"]], case["request"])
    assert [each["name" if case["search"] == "action" else "id"] for each in found] == case["results"]


@KINDS
@pytest.mark.parametrize("subject", ["ada", "ben", "cleo", "dan"])
@pytest.mark.parametrize("context", [{}, INSIDE])
def test_what_is_found_is_exactly_what_evaluates_to_yes(pep: Pep, sought: str, subject: str, context: Body) -> None:
    people = ["ada", "ben", "cleo", "dan"]
    documents = ["archive", "price-list", "roadmap", "roadmap-draft", "travel-rules", "welcome"]
    actions = ["buy", "comment", "delete", "edit", "print", "read"]
    for resource in documents if sought != "resource" else documents[:1]:
        body = asked(subject, "comment", resource, context=context)
        candidates: list[Body] = {
            "subject": [{"subject": {"type": "user", "id": each}} for each in people],
            "resource": [{"resource": {"type": "document", "id": each}} for each in documents],
            "action": [{"action": {"name": each}} for each in actions],
        }[sought]
        allowed = pep.decisions(body | {"evaluations": candidates})
        wanted = [next(iter(each.values())) for each, yes in zip(candidates, allowed, strict=True) if yes]
        sent = body if sought != "action" else without(body, "action")
        assert pep.found(PATHS[sought], sent) == wanted


@KINDS
def test_an_id_of_what_is_searched_for_changes_nothing(pep: Pep, sought: str) -> None:
    body = SEARCHES[sought]
    named = (
        body | {sought: {"type": body[sought]["type"], "id": "dan"}} if sought != "action" else body | {"action": {"name": "x"}}
    )
    assert pep.found(PATHS[sought], named) == pep.found(PATHS[sought], body) != []


@KINDS
def test_the_page_comes_first_and_results_are_of_the_kind_that_was_asked_for(pep: Pep, sought: str) -> None:
    answer = pep.ask(PATHS[sought], SEARCHES[sought])
    assert list(answer) == ["page", "results"]
    keys = {"name"} if sought == "action" else {"type", "id"}
    assert all(each.keys() == keys for each in answer["results"])
    assert answer["page"] == {"next_token": "", "count": len(answer["results"])}


@KINDS
@pytest.mark.parametrize("part", ["id", "type"])
def test_an_unknown_name_finds_nothing(pep: Pep, sought: str, part: str) -> None:
    for member in {"subject", "resource"} - {sought if part == "id" else ""}:
        body = SEARCHES[sought] | {member: SEARCHES[sought][member] | {part: "unheard"}}
        assert pep.found(PATHS[sought], body) == []
    if sought != "action":
        assert pep.found(PATHS[sought], SEARCHES[sought] | {"action": {"name": "unheard"}}) == []


@pytest.mark.parametrize(
    ("sought", "missing"),
    [
        *((kind, member) for kind in ("subject", "resource") for member in ("subject", "action", "resource", "action.name")),
        *(("subject", member) for member in ("subject.type", "resource.type", "resource.id")),
        *(("resource", member) for member in ("resource.type", "subject.type", "subject.id")),
        *(("action", member) for member in ("subject", "resource", "subject.id", "resource.id", "subject.type", "resource.type")),
    ],
)
def test_a_missing_input_is_a_bad_request(pep: Pep, sought: str, missing: str) -> None:
    assert pep.client.post(PATHS[sought], without(SEARCHES[sought], missing)).status_code == 400


def test_one_body_can_be_right_for_one_search_and_wrong_for_another(pep: Pep) -> None:
    answers = [pep.client.post(path, SEARCHES["subject"]).status_code for path in (SUBJECTS, RESOURCES, ACTIONS, SINGLE)]
    assert answers == [200, 400, 400, 400]


def test_groups_of_groups_count(pep: Pep) -> None:
    body = {"subject": {"type": "user"}, "action": {"name": "comment"}, "resource": {"type": "document", "id": "welcome"}}
    assert [each["id"] for each in pep.found(SUBJECTS, body)] == ["ada", "ben", "cleo", "dan"]


@KINDS
def test_the_context_counts(pep: Pep, sought: str) -> None:
    assert pep.found(PATHS[sought], SEARCHES[sought]) != pep.found(PATHS[sought], without(SEARCHES[sought], "context"))


def test_what_is_sent_of_the_inputs_counts(pep: Pep) -> None:
    body = SEARCHES["resource"] | {"subject": USER | {"properties": {"clearance": 0}}}
    assert [each["id"] for each in pep.found(RESOURCES, body)] == ["archive", "travel-rules", "welcome"]
    open_to_all = DOCUMENT | {"properties": {"level": 0, "readers": "everyone"}}
    found = pep.found(SUBJECTS, SEARCHES["subject"] | {"resource": open_to_all})
    assert [each["id"] for each in found] == ["ada", "ben", "cleo", "dan"]


def test_an_input_that_is_sent_whole_needs_not_be_stored(pep: Pep) -> None:
    sent = {"type": "user", "id": "new", "properties": {"clearance": 3, "guest": False}}
    found = pep.found(RESOURCES, {"subject": sent, "action": {"name": "read"}, "resource": {"type": "document"}})
    assert [each["id"] for each in found] == ["travel-rules", "welcome"]


@KINDS
def test_a_value_that_the_store_cannot_take_is_a_bad_request(pep: Pep, sought: str) -> None:
    other = "resource" if sought == "subject" else "subject"
    name = "level" if other == "resource" else "clearance"
    body = SEARCHES[sought] | {other: SEARCHES[sought][other] | {"properties": {name: 1.5}}}
    answered = pep.client.post(PATHS[sought], body)
    assert (answered.status_code, answered.json()["fields"].keys()) == (400, {f"{other}.properties.{name}"})


@KINDS
@pytest.mark.parametrize("limit", [1, 2, 3, 100, 10**30])
def test_pages_hold_together_what_one_answer_holds(pep: Pep, sought: str, limit: int) -> None:
    whole, split = pep.found(PATHS[sought], SEARCHES[sought]), pages(pep, sought, SEARCHES[sought], limit)
    assert [each for page in split for each in page] == whole
    assert all(len(page) == limit for page in split[:-1])


def test_a_page_of_nothing_leads_to_the_first_result(pep: Pep) -> None:
    answer = pep.ask(RESOURCES, SEARCHES["resource"] | {"page": {"limit": 0}})
    assert answer["results"] == []
    assert answer["page"]["next_token"]
    nothing = SEARCHES["resource"] | {"subject": {"type": "user", "id": "unheard"}}
    assert pep.ask(RESOURCES, nothing | {"page": {"limit": 0}})["page"]["next_token"] == ""


def test_an_empty_token_is_a_first_page(pep: Pep) -> None:
    assert pep.found(RESOURCES, SEARCHES["resource"] | {"page": {"token": ""}}) == pep.found(RESOURCES, SEARCHES["resource"])


def first_token(pep: Pep, **page: object) -> str:
    token = pep.ask(RESOURCES, SEARCHES["resource"] | {"page": {"limit": 1, **page}})["page"]["next_token"]
    assert isinstance(token, str)
    assert token
    return token


@pytest.mark.parametrize(
    "changed",
    [
        {"subject": {"type": "user", "id": "ada"}},
        {"subject": USER | {"properties": {"clearance": 3}}},
        {"action": {"name": "comment"}},
        {"action": {"name": "read", "properties": {"copies": 1}}},
        {"resource": {"type": "folder"}},
        {"context": {"network": "10.0.0.2"}},
        {"page": {"limit": 2}},
        {"page": {"properties": {"sort": "name"}}},
    ],
)
def test_a_token_with_another_request_is_a_bad_request(pep: Pep, changed: Body) -> None:
    token = first_token(pep)
    page = {"token": token, **changed.get("page", {})}
    refused = pep.client.post(RESOURCES, SEARCHES["resource"] | changed | {"page": page})
    assert (refused.status_code, refused.json()["fields"].keys()) == (400, {"page.token"})


def test_the_limit_may_be_said_again_or_not(pep: Pep) -> None:
    token = first_token(pep)
    answers = [pep.ask(RESOURCES, SEARCHES["resource"] | {"page": {"token": token, **said}}) for said in ({}, {"limit": 1})]
    assert answers[0]["results"] == answers[1]["results"]
    assert len(answers[0]["results"]) == 1


def test_a_forged_token_is_a_bad_request(pep: Pep) -> None:
    token = first_token(pep)
    raw = bytearray(base64.urlsafe_b64decode(token))
    raw[-3] ^= 1
    for forged in (base64.urlsafe_b64encode(raw).decode(), token[:-4], token + "A", "x", "é", "a" * 10_000):
        assert pep.client.post(RESOURCES, SEARCHES["resource"] | {"page": {"token": forged}}).status_code == 400


def test_a_token_of_somebody_else_or_of_another_search_is_a_bad_request(gateway: Gateway, pep: Pep) -> None:
    body = asked("ben", "read", "roadmap", context=INSIDE) | {"page": {"token": first_token(pep)}}
    assert gateway.admin.post(RESOURCES, SEARCHES["resource"] | {"page": body["page"]}).status_code == 400
    assert pep.client.post(SUBJECTS, body).status_code == 400


def test_a_token_of_one_search_is_none_of_another_with_the_same_body(pep: Pep) -> None:
    body = asked("ben", "read", "roadmap", context=INSIDE)
    token = pep.ask(RESOURCES, body | {"page": {"limit": 1}})["page"]["next_token"]
    assert pep.client.post(RESOURCES, body | {"page": {"token": token}}).status_code == 200
    assert pep.client.post(SUBJECTS, body | {"page": {"token": token}}).status_code == 400


def test_a_token_does_not_outlive_the_policies_it_was_given_by(gateway: Gateway, pep: Pep) -> None:
    body = SEARCHES["resource"] | {"page": {"token": first_token(pep)}}
    assert gateway.services.foreign is not None
    served = gateway.services.foreign
    changed = replace(gateway.services, foreign=replace(served, store=replace(served.store, hash="of other policies")))
    http = TestClient(create_app(changed, OPERATIONS))
    headers = {"Authorization": f"Bearer {pep.client.key}"}
    assert http.post(RESOURCES, json=without(body, "page"), headers=headers).status_code == 200
    assert http.post(RESOURCES, json=body, headers=headers).status_code == 400


def test_a_token_ends(gateway: Gateway, pep: Pep) -> None:
    body = SEARCHES["resource"] | {"page": {"token": first_token(pep)}}
    gateway.clock.advance(LIFETIME - timedelta(seconds=1))
    try:
        assert pep.client.post(RESOURCES, body).status_code == 200
        gateway.clock.advance(timedelta(seconds=1))
        assert pep.client.post(RESOURCES, body).status_code == 400
    finally:
        gateway.clock.advance(-LIFETIME)


@pytest.mark.parametrize("page", [7, [], {"limit": -1}, {"limit": 1.5}, {"limit": True}, {"token": 7}, {"properties": []}])
def test_a_page_of_the_wrong_kind_is_a_bad_request(pep: Pep, page: object) -> None:
    assert pep.client.post(RESOURCES, SEARCHES["resource"] | {"page": page}).status_code == 400


def test_a_search_is_one_row_that_counts_what_was_found(gateway: Gateway, pep: Pep) -> None:
    before = len(rows_of(gateway, "authzen.search_store"))
    found = pep.found(RESOURCES, SEARCHES["resource"])
    [row] = rows_of(gateway, "authzen.search_store")[before:]
    details = row["details"]
    assert (details["asked"], details["sought"], details["count"]) == ("search", "resource", len(found))
    assert "roadmap" not in json.dumps(row)


def test_a_batch_of_searches_is_not_a_thing(pep: Pep) -> None:
    assert pep.client.post(BATCH, SEARCHES["resource"]).status_code == 400
    assert limits.SEARCH_PAGE >= 1
