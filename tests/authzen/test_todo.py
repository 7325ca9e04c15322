"""The todo scenario of the AuthZEN interop: people of five roles, and todos that are sent with their owners.

`AUTHZEN_TODO_VECTORS` names the directory of the public vectors (`decisions-authorization-api-1_0-*.json`), which are run too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.authzen.asking import BATCH, SINGLE, SUBJECTS, Body, Pep
from tests.builders import Gateway

STORE = Path(__file__).parent / "todo"
VECTORS = "AUTHZEN_TODO_VECTORS"
STORED = json.loads((STORE / "entities.json").read_text("utf-8"))
EMAILS = {each["attrs"]["email"]: each["uid"]["id"] for each in STORED if each["uid"]["type"] == "User"}
PEOPLE = {email.split("@")[0]: (id_, email) for email, id_ in EMAILS.items()}


@pytest.fixture(scope="module")
def pep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pep]:
    gateway = Gateway(tmp_path_factory.mktemp("gateway") / "data", store=STORE)
    yield Pep(gateway.member)
    gateway.close()


def asked(who: str, action: str, owner: str | None = None) -> Body:
    """May somebody do this to a todo of somebody?"""
    resource: Body = {"type": "todo", "id": f"todo of {owner}"}
    if owner is not None:
        resource["properties"] = {"ownerID": PEOPLE[owner][1]}
    return {"subject": {"type": "user", "id": PEOPLE[who][0]}, "action": {"name": action}, "resource": resource}


@pytest.mark.parametrize(
    ("who", "action", "owner", "decision"),
    [
        ("jerry", "can_read_todos", None, True),
        ("jerry", "can_create_todo", None, False),
        ("summer", "can_create_todo", None, True),
        ("summer", "can_update_todo", "summer", True),
        ("summer", "can_delete_todo", "summer", True),
        ("summer", "can_update_todo", "jerry", False),
        ("summer", "can_update_todo", None, False),
        ("jerry", "can_update_todo", "jerry", False),
        ("rick", "can_update_todo", "jerry", True),
        ("rick", "can_delete_todo", "jerry", True),
        ("rick", "can_burn_todo", "rick", False),
    ],
)
def test_what_somebody_may_do_to_a_todo(pep: Pep, who: str, action: str, owner: str | None, decision: bool) -> None:
    assert pep.decision(asked(who, action, owner)) is decision


def test_everybody_who_is_known_reads_about_anybody(pep: Pep) -> None:
    about = {"action": {"name": "can_read_user"}, "resource": {"type": "user", "id": "beth@the-smiths.com"}}
    assert all(pep.decision({"subject": {"type": "user", "id": id_}, **about}) for id_ in EMAILS.values())
    assert not pep.decision({"subject": {"type": "user", "id": "nobody"}, **about})


def test_todos_of_one_id_and_different_owners_are_told_apart_in_a_batch(pep: Pep) -> None:
    owners = ("morty", "rick", "morty", "summer", "morty")
    todos = [{"resource": {"type": "todo", "id": "one", "properties": {"ownerID": PEOPLE[owner][1]}}} for owner in owners]
    assert pep.decisions({**asked("morty", "can_update_todo"), "evaluations": todos}) == [True, False, True, False, True]


def test_who_may_update_a_todo_is_found(pep: Pep) -> None:
    question = asked("jerry", "can_update_todo", "summer") | {"subject": {"type": "user"}}
    assert pep.found(SUBJECTS, question) == [{"type": "user", "id": PEOPLE[who][0]} for who in ("rick", "summer")]


@pytest.mark.parametrize("number", ["01", "02"])
def test_every_public_vector_is_answered_as_it_expects(pep: Pep, number: str) -> None:
    if VECTORS not in os.environ:
        pytest.skip(f"the public vectors of the todo scenario were NOT run: {VECTORS} does not name their directory")
    file = Path(os.environ[VECTORS]) / f"decisions-authorization-api-1_0-{number}.json"
    vectors = json.loads(file.read_text("utf-8"))
    single = vectors["evaluation"]
    assert [pep.ask(SINGLE, each["request"]) for each in single] == [{"decision": each["expected"]} for each in single]
    many = vectors.get("evaluations", [])
    assert [pep.ask(BATCH, each["request"]) for each in many] == [{"evaluations": each["expected"]} for each in many]
    assert len(single) == 40
