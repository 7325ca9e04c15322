"""The decision log as it is read: who may, which rows, in pages, and why each was decided so."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from gateway.errors import NotFound
from gateway.model.decision import DenyKind
from gateway.model.grant import Session
from gateway.operations.explanation import MISSING
from gateway.operations.replay import replay_data
from gateway.operations.wire.records import DENY_KINDS
from gateway.store import evidence
from gateway.store.entities import LogEntry
from tests.builders import START, Gateway, done
from tests.operations.evidence_rows import craft, org_of, tamper, uuid
from tests.world import caller

UNKNOWN = "00000000-0000-4000-8000-999999999999"


def listed(gateway: Gateway, **query: object) -> tuple[list[str], int]:
    body = done(gateway.auditor.get("/v1/decisions", **query), 200)
    return [decision["id"] for decision in body["decisions"]], body["total"]


def test_a_decision_is_listed_with_all_that_was_recorded(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(gateway.member, [agent])
    done(agent.get(f"/v1/peers/{peer['id']}/context"), 200)
    [found] = done(gateway.auditor.get("/v1/decisions", principal=agent.id), 200)["decisions"]
    services = gateway.services
    assert found == {
        "id": found["id"],
        "seq": found["seq"],
        "at": "2026-03-04T10:00:00Z",
        "principal": {"type": "Agent", "id": agent.id},
        "action": "peer.read_context",
        "resource": {"type": "Peer", "id": peer["id"]},
        "decision": "allow",
        "deny_kind": None,
        "policies": ["peer/read_context/observer"],
        "bundle": services.access.engine.bundle.hash,
        "data_version": found["data_version"],
        "slices": found["slices"],
        "request_id": found["request_id"],
        "details": {
            "context": {"now": "2026-03-04T10:00:00Z", "clock": {"minute": 600, "weekday": 3, "date": "2026-03-04"}},
            "also": [{"action": "peer.see_content", "policies": ["peer/see_content/observer"]}],
            "kind": "context",
            "facts_served": 0,
        },
    }
    stored = services.database.read_sync(lambda rows: rows.all("SELECT hash FROM slices"))
    assert set(found["slices"]) <= {digest for (digest,) in stored}


# -- who


def test_security_auditors_owners_and_admins_read_decisions_and_nobody_else(gateway: Gateway) -> None:
    [row_id] = craft(gateway, 1)
    agent = gateway.agent()
    answers = {
        "owner": (200, 200),
        "admin": (200, 200),
        "security": (200, 200),
        "auditor": (200, 200),
        "member": (403, 403),
    }
    for role, expected in answers.items():
        client = getattr(gateway, role)
        assert (client.get("/v1/decisions").status_code, client.get(f"/v1/decisions/{row_id}").status_code) == expected, role
    assert [agent.get(path).status_code for path in ("/v1/decisions", f"/v1/decisions/{row_id}")] == [403, 403]


def test_decisions_of_another_organisation_are_never_listed(gateway: Gateway) -> None:
    craft(gateway, 3, other=True)
    assert listed(gateway, principal="crafted") == ([], 0)
    assert done(gateway.other_owner.get("/v1/decisions", principal="crafted"), 200)["total"] == 3


def test_an_unknown_a_foreign_and_a_malformed_id_have_the_same_answer_byte_for_byte(gateway: Gateway) -> None:
    [foreign] = craft(gateway, 1, other=True)
    event = craft(gateway, 1, first=2, kind="audit", outcome=None)[0]
    ids = (UNKNOWN, foreign, event, "x", UNKNOWN.upper().replace("9", "A"), "%00", "a'b")
    for client in (gateway.auditor, gateway.member, gateway.agent()):
        answers = [client.request("GET", f"/v1/decisions/{row_id}", headers={"X-Request-Id": "same"}) for row_id in ids]
        assert {(answer.status_code, answer.content, tuple(answer.headers.items())) for answer in answers} == {
            (404, answers[0].content, tuple(answers[0].headers.items()))
        }


def test_asking_for_an_unknown_and_for_a_foreign_decision_leaves_the_same_row(gateway: Gateway) -> None:
    [foreign] = craft(gateway, 1, other=True)
    for row_id in (UNKNOWN, foreign):
        assert gateway.auditor.request("GET", f"/v1/decisions/{row_id}", headers={"X-Request-Id": "same"}).status_code == 404
    rows = done(gateway.owner.get("/v1/decisions", action="decision.read"), 200)["decisions"]
    left = [{key: value for key, value in row.items() if key not in {"id", "seq", "slices"}} for row in rows]
    for row in left:
        row["resource"]["id"] = row["resource"]["id"].replace(foreign, "ID").replace(UNKNOWN, "ID")
    assert left[0] == left[1]
    assert (left[0]["resource"], left[0]["decision"]) == ({"type": "Decision", "id": "ID"}, "deny")


# -- which


def test_every_filter_narrows_and_together_they_narrow_further(gateway: Gateway) -> None:
    shapes: list[dict[str, Any]] = [
        {},
        {"principal_id": "other"},
        {"action": "peer.read_context"},
        {"resource_id": "elsewhere"},
        {"outcome": "deny", "deny_kind": "forbidden", "policies": ("guardrails/observers", "guardrails/paused_reading")},
        {"outcome": "deny", "deny_kind": "paused", "policies": ("guardrails/paused_reading",)},
        {"outcome": "deny", "deny_kind": "not_permitted", "policies": ()},
        {"policies": ("peer/read", "peer/read/observer_too")},
    ]
    ids = [craft(gateway, 1, first=n + 1, request_id="r", bundle="b", **shape)[0] for n, shape in enumerate(shapes)]
    window = {"from": stamp(1), "to": stamp(len(ids) + 1)}
    cases: list[tuple[dict[str, object], list[int]]] = [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"principal": "crafted"}, [0, 2, 3, 4, 5, 6, 7]),
        ({"principal": "craft"}, []),
        ({"principal": "%"}, []),
        ({"action": "peer.read"}, [0, 1, 3, 4, 5, 6, 7]),
        ({"resource": "elsewhere"}, [3]),
        ({"decision": "allow"}, [0, 1, 2, 3, 7]),
        ({"decision": "deny"}, [4, 5, 6]),
        ({"deny_kind": "paused"}, [5]),
        ({"decision": "allow", "deny_kind": "paused"}, []),
        ({"policy": "guardrails/paused_reading"}, [4, 5]),
        ({"policy": "peer/read/observer"}, [0, 1, 2, 3]),
        ({"policy": "peer/read"}, [7]),
        ({"policy": "read"}, []),
        ({"policy": 'peer/read","peer/read/observer_too'}, []),
        ({"policy": "[]"}, []),
        ({"from": stamp(3)}, [2, 3, 4, 5, 6, 7]),
        ({"to": stamp(3)}, [0, 1]),
        ({"from": stamp(3), "to": stamp(3)}, []),
        ({"from": stamp(4), "to": stamp(3)}, []),
        (
            {
                "principal": "crafted",
                "decision": "deny",
                "deny_kind": "forbidden",
                "policy": "guardrails/observers",
                "action": "peer.read",
            },
            [4],
        ),
        ({"principal": "other", "resource": "elsewhere"}, []),
    ]
    for query, positions in cases:
        expected = [ids[position] for position in reversed(positions)]
        assert listed(gateway, **{**window, **query}) == (expected, len(expected)), query


def stamp(minutes: int) -> str:
    return (START + timedelta(minutes=minutes)).isoformat()


def test_the_words_for_a_denial_are_those_of_the_record() -> None:
    assert set(DENY_KINDS) == set(DenyKind)


@pytest.mark.parametrize(
    "query",
    [
        {"decision": "Deny"},
        {"deny_kind": "no"},
        {"from": "2026-03-04"},
        {"to": "2026-03-04T10:00:00"},
        {"limit": "0"},
        {"limit": "201"},
        {"limit": "ten"},
        {"offset": "-1"},
        {"principal": "x" * 257},
        {"outcome": "deny"},
        {"Principal": "x"},
    ],
    ids=str,
)
def test_a_filter_that_is_not_understood_is_refused_and_leaves_no_record(gateway: Gateway, query: dict[str, object]) -> None:
    answer = gateway.auditor.get("/v1/decisions", **query)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, list(query))
    assert listed(gateway, action="decision.list") == ([], 0)


# -- pages


@pytest.mark.parametrize("count", [0, 1, 50, 51, 200, 201])
def test_every_page_is_reached_and_the_total_is_the_whole(gateway: Gateway, count: int) -> None:
    ids = craft(gateway, count)[::-1]
    assert listed(gateway, principal="crafted") == (ids[:50], count)
    assert listed(gateway, principal="crafted", limit=200) == (ids[:200], count)
    found: list[str] = []
    while page := listed(gateway, principal="crafted", limit=67, offset=len(found))[0]:
        found += page
    assert found == ids
    assert listed(gateway, principal="crafted", offset=count) == ([], count)


def test_a_decision_is_read_by_its_id_with_what_the_list_shows(gateway: Gateway) -> None:
    [row_id] = craft(gateway, 1)
    [shown] = done(gateway.auditor.get("/v1/decisions", principal="crafted"), 200)["decisions"]
    read = done(gateway.auditor.get(f"/v1/decisions/{row_id}"), 200)["decision"]
    del read["explanation"]
    assert read == shown
    assert (row_id, org_of(gateway)) == (uuid(1), gateway.services.state.humans[gateway.auditor.id].org_id)


def test_a_decision_that_was_pruned_between_the_two_looks_is_not_found(gateway: Gateway) -> None:
    [row_id] = craft(gateway, 1)
    who = caller(gateway.auditor.id, org_id=org_of(gateway))
    grant = gateway.services.access.authorize(Session(who, "r", START), "decision.read", LogEntry(row_id, org_of(gateway)))
    tamper(gateway, row_id, "id = 'gone'")
    with pytest.raises(NotFound):
        gateway.services.database.read_sync(lambda rows: evidence.decision(rows, grant, row_id))


def test_a_grant_for_a_decision_of_one_organisation_reads_none_of_another(gateway: Gateway) -> None:
    [own], [foreign] = craft(gateway, 1), craft(gateway, 1, first=2, other=True)
    who = caller(gateway.auditor.id, org_id=org_of(gateway))
    grant = gateway.services.access.authorize(Session(who, "r", START), "decision.read", LogEntry(own, org_of(gateway)))
    with pytest.raises(NotFound):
        gateway.services.database.read_sync(lambda rows: evidence.decision(rows, grant, foreign))
    assert gateway.services.database.read_sync(lambda rows: evidence.decision(rows, grant, own)).id == own


# -- damaged


@pytest.mark.parametrize(
    "change",
    [
        """details = '{"context": []}'""",
        """details = '{"context": {"now": "then"}}'""",
        """details = '{"context": {"now": []}}'""",
        """details = '{"errors": 1}'""",
        """details = '{"errors": [{}]}'""",
        """details = '{"planned": []}'""",
        """details = '{"also": {}}'""",
        """details = '{"also": [1]}'""",
        """details = '{"also": [{"action": "x"}]}'""",
        """details = '{"not_allowed": "x"}'""",
        "details = '[]'",
        "details = 'null'",
        "details = '{'",
        "details = ''",
        "details = repeat('[', 100000)",
        "policies = '{}'",
        "policies = '[1]'",
        "slices = '[[]]'",
        "slices = 'x'",
    ],
)
def test_a_damaged_row_is_listed_and_told_as_what_cannot_be_read(gateway: Gateway, change: str) -> None:
    assert gateway.auditor.get("/v1/org/settings").status_code == 403
    [decision] = done(gateway.auditor.get("/v1/decisions", action="org.read_settings"), 200)["decisions"]
    tamper(gateway, decision["id"], change)
    found = done(gateway.auditor.get(f"/v1/decisions/{decision['id']}"), 200)["decision"]
    assert found["explanation"]["missing"] == MISSING["unreadable"]
    [shown] = done(gateway.auditor.get("/v1/decisions", action="org.read_settings"), 200)["decisions"]
    assert {name: found[name] for name in shown} == shown
    report = asyncio.run(replay_data(gateway.services, gateway.services.access.engine.bundle, since=None))
    assert report.not_replayable == 1


def test_of_a_row_that_cannot_be_read_the_details_say_so(gateway: Gateway) -> None:
    [row_id] = craft(gateway, 1)
    event = craft(gateway, 1, first=2, kind="audit", outcome=None)[0]
    for damaged in (row_id, event):
        tamper(gateway, damaged, "details = '{'")
    found = done(gateway.auditor.get(f"/v1/decisions/{row_id}"), 200)["decision"]
    assert (found["details"], found["policies"], found["slices"]) == ({"unreadable": True}, [], [])
    events = done(gateway.owner.get("/v1/audit/events"), 200)
    assert {"unreadable": True} in [entry["details"] for entry in events["events"]]
