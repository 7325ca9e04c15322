"""Explanations of recorded decisions: what they say, under which policies, what they keep back, and from whom."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import duckdb

from gateway.operations.explanation import MISSING, NOTES, explain_recorded, shape
from gateway.policy import kept
from tests.builders import Client, Gateway, done
from tests.operations.asking import ABSENT, restart, stored
from tests.operations.connecting import allow, connect, converse
from tests.operations.evidence_rows import craft, tamper
from tests.operations.memory_acts import shared
from tests.operations.test_cedar_policies import FORBID_AGENTS, step, write
from tests.operations.test_platform import platform_of
from tests.policy.test_explain import of_the_shipped
from tests.policy.test_replay import page_of
from tests.remote import a_memory_grant, a_remote_connection
from tests.world import World, bundle_of, caller, session

FORBID_ALWAYS = 'forbid (principal is Agent, action == Action::"peer.read", resource) when { 1 < 2 };'
OVERFLOW = 'forbid (principal, action == Action::"peer.read", resource) when { context.clock.minute * 9223372036854775807 > 0 };'
ALONE = {"organisation_policy": None, "reason_code": None, "precedence": None}


def explained(gateway: Gateway, decision_id: str, *, by: Client | None = None) -> dict[str, Any]:
    """The explanation of a decision, as the security team reads it."""
    answer = done((by or gateway.security).get(f"/v1/decisions/{decision_id}"), 200)
    found: dict[str, Any] = answer["decision"]["explanation"]
    return found


def last(gateway: Gateway, **query: object) -> str:
    """The id of the newest decision of some kind."""
    found: str = done(gateway.auditor.get("/v1/decisions", **query), 200)["decisions"][0]["id"]
    return found


def unlisted(gateway: Gateway) -> tuple[Client, dict[str, Any], str]:
    """An agent that reads a peer which does not list it, and the decision that refuses it."""
    agent, peer = gateway.agent(), gateway.peer(gateway.member, [])
    return agent, peer, agent.get(f"/v1/peers/{peer['id']}").json()["decision_id"]


# -- what is said


def test_a_forbid_is_named_with_its_reason_its_file_and_its_line(gateway: Gateway) -> None:
    _, _, refused = unlisted(gateway)
    forbid = gateway.services.access.engine.bundle.policies["guardrails/observers"]
    assert explained(gateway, refused) == {
        "deny_kind": "forbidden",
        "note": NOTES["forbidden"],
        "missing": None,
        "reasons": [
            {
                "policy_id": "guardrails/observers",
                "effect": "forbid",
                "reason": forbid.reason,
                "origin": "guardrail",
                "file": "guardrails/observers.cedar",
                "line": 4,
                **ALONE,
                "precedence": 9,
            }
        ],
        "errors": [],
        "nearest": None,
    }


def test_a_deny_by_default_names_the_nearest_permit_and_what_made_its_first_clause_false(gateway: Gateway) -> None:
    assert gateway.auditor.get("/v1/org/settings").status_code == 403
    found = explained(gateway, last(gateway, decision="deny"))
    permit = gateway.services.access.engine.bundle.policies["org/read_settings/owner_or_admin"]
    org = gateway.services.state.humans[gateway.auditor.id].org_id
    assert (found["deny_kind"], found["note"], found["missing"]) == ("not_permitted", NOTES["not_permitted"], None)
    assert (found["reasons"], found["errors"]) == ([], [])
    assert found["nearest"] == {
        "policy": {
            "policy_id": permit.id,
            "effect": "permit",
            "reason": permit.reason,
            "origin": "policy",
            "file": "org/read_settings.cedar",
            "line": permit.line,
            **ALONE,
        },
        "lacking": 1,
        "unmet": {
            "text": 'principal in [Role::"owner", Role::"admin"]',
            "file": "org/read_settings.cedar",
            "line": permit.line + permit.text[: permit.text.index("when")].count("\n"),
            "reads": ["principal", "ancestors(principal)"],
            "values": {
                "principal": f'Human::"{gateway.auditor.id}"',
                "ancestors(principal)": f'Org::"{org}", Role::"auditor"',
            },
            "redacted": [],
            "erred": False,
        },
    }


def test_a_policy_that_could_not_be_evaluated_is_named_with_its_place(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    policy = write(gateway.owner, f"// why\n{OVERFLOW}", mode="enforce")
    refused = agent.get(f"/v1/peers/{peer['id']}").json()["decision_id"]
    found = explained(gateway, refused)
    assert (found["deny_kind"], found["note"], found["missing"]) == ("evaluation_error", NOTES["evaluation_error"], None)
    [failed] = found["errors"]
    about = {"id": policy["id"], "name": "a policy"}
    assert (failed["policy_id"], failed["organisation_policy"], failed["line"]) == (f"org/{policy['id']}/1", about, 2)


def test_a_pause_is_explained_as_one_and_not_as_the_forbid_that_it_is_to_cedar(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(gateway.member, [agent])
    done(gateway.member.put(f"/v1/peers/{peer['id']}/pause", {"reading": True, "learning": False}), 200)
    done(agent.get(f"/v1/peers/{peer['id']}/context"), 200)
    found = explained(gateway, last(gateway, deny_kind="paused"))
    assert (found["deny_kind"], found["note"], found["missing"]) == ("paused", NOTES["paused"], None)
    assert [(reason["policy_id"], reason["origin"]) for reason in found["reasons"]] == [
        ("guardrails/paused_reading", "guardrail")
    ]


def test_an_allow_names_the_permits_that_decided(gateway: Gateway) -> None:
    done(gateway.owner.get("/v1/agents"), 200)
    found = explained(gateway, last(gateway, action="agent.list"))
    assert (found["deny_kind"], found["note"], found["missing"], found["nearest"]) == (None, None, None, None)
    assert [(reason["policy_id"], reason["file"]) for reason in found["reasons"]] == [
        ("agent/list/owner_or_admin", "agent/list.cedar")
    ]


def test_a_policy_of_the_organisation_is_named_with_the_line_in_its_text(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    text = f'// one\n\n@id("no-agents") @reason("Agents are out.")\n{FORBID_AGENTS}'
    policy = write(gateway.owner, text, mode="enforce")
    refused = agent.get(f"/v1/peers/{peer['id']}").json()["decision_id"]
    decided = {
        "policy_id": f"org/{policy['id']}/no-agents",
        "effect": "forbid",
        "reason": "Agents are out.",
        "origin": "organisation",
        "organisation_policy": {"id": policy["id"], "name": "a policy"},
        "reason_code": None,
        "precedence": None,
        "file": None,
        "line": 3,
    }
    assert explained(gateway, refused)["reasons"] == [decided]
    # When it is not in force any more, what it decided is explained by it all the same.
    done(gateway.owner.delete(f"/v1/org/cedar-policies/{policy['id']}", {"X-Auth-Confirm": gateway.owner.password}), 204)
    gone = {"id": policy["id"], "name": None}
    found = explained(gateway, refused)
    assert (found["reasons"], found["missing"]) == ([{**decided, "organisation_policy": gone}], None)


def test_a_listing_says_that_rows_were_asked_about_and_what_is_left_to_decide_them(gateway: Gateway) -> None:
    agent = gateway.agent()
    shared(agent)
    done(agent.post("/v1/memories/search", {"query": "Sarah"}), 200)
    found = explained(gateway, last(gateway, action="memory.search"))
    assert found["note"] == "a listing: these are left to decide each row of `Memory`, and each was decided by itself"
    assert (found["deny_kind"], found["missing"], found["nearest"]) == (None, None, None)
    assert {reason["file"] for reason in found["reasons"]} == {"memory/search.cedar"}


def test_a_listing_that_could_show_nobody_s_rows_is_explained_without_a_row(gateway: Gateway) -> None:
    agent = gateway.agent()
    assert gateway.member.post("/v1/memories/search", {"query": "Sarah", "agent_id": agent.id}).status_code == 403
    found = explained(gateway, last(gateway, action="memory.search"))
    assert found["missing"] is None
    assert found["note"] == f"a listing: whatever the row of `Memory`, {NOTES['forbidden']}"
    assert [reason["policy_id"] for reason in found["reasons"]] == ["guardrails/memory/humans"]


def test_what_a_person_chose_as_a_label_is_kept_back_and_named(gateway: Gateway) -> None:
    head = '@id("p") permit (principal is Connection, action == Action::"memory.search", resource)'
    bundle = bundle_of(head + ' when { principal.projects.contains("beta") && principal.tiers.contains("pii") };')
    world = World(bundle)
    world.state.put_remote_connection(a_remote_connection())
    for state in (world.state, gateway.services.state):
        state.put_memory_grant(a_memory_grant(actions=("read",)))
    asked = session(caller("partner", "Connection"))
    world.access.plan(asked, "memory.search", world.state.agents["agent"])
    page = page_of(asked.rows, planned="Memory")
    found = explain_recorded(gateway.services, page, {bundle.hash: bundle}.get)
    assert found["missing"] is None
    assert found["nearest"]["unmet"]["text"] == 'principal.projects.contains("beta")'
    assert (found["nearest"]["unmet"]["values"], found["nearest"]["unmet"]["redacted"]) == ({}, ["principal.projects"])


def test_the_text_of_a_grant_is_told_without_its_labels() -> None:
    found = of_the_shipped("memory/grant: a row without all the tags that the grant asks for is not found")
    assert found.nearest is not None
    policy = replace(found.nearest.policy, policy_id=f"grant/{ABSENT}")
    found = replace(found, nearest=replace(found.nearest, policy=policy))
    unmet = shape(found, names={}, redacted=True)["nearest"]["unmet"]
    assert (unmet["text"], unmet["redacted"]) == ('(resource.tags).containsAll(["…", "…"])', ["resource.tags"])


# -- under the policies that decided


def test_it_is_explained_by_the_policies_that_decided_and_not_by_those_of_now(gateway: Gateway) -> None:
    agent, peer, refused = unlisted(gateway)
    whole = explained(gateway, refused)
    assert whole["missing"] is None
    policy = write(gateway.owner, FORBID_AGENTS, mode="enforce")
    now = explained(gateway, agent.get(f"/v1/peers/{peer['id']}").json()["decision_id"])
    assert [reason["policy_id"] for reason in now["reasons"]] == ["guardrails/observers", f"org/{policy['id']}/1"]
    restart(gateway)
    assert explained(gateway, refused, by=gateway.owner) == whole


def test_policies_that_are_not_kept_any_more_leave_what_the_record_holds(gateway: Gateway) -> None:
    _, _, refused = unlisted(gateway)
    tamper(gateway, refused, "bundle = 'gone'")
    found = explained(gateway, refused)
    assert (found["missing"], found["nearest"]) == (MISSING["bundle_gone"], None)
    nothing = {"effect": None, "reason": None, "file": None, "line": None, "origin": "guardrail", **ALONE}
    assert found["reasons"] == [{"policy_id": "guardrails/observers", **nothing}]


def test_policies_that_were_kept_without_their_places_are_named_without_them(gateway: Gateway) -> None:
    agent = gateway.agent()
    policy = write(gateway.owner, FORBID_AGENTS, mode="enforce")
    refused = agent.get(f"/v1/peers/{gateway.peer(observers=[agent])['id']}").json()["decision_id"]
    done(step(gateway.owner, policy, "rollback"), 409)
    done(gateway.owner.delete(f"/v1/org/cedar-policies/{policy['id']}", {"X-Auth-Confirm": gateway.owner.password}), 204)
    [(digest,)] = stored(gateway, "SELECT bundle FROM log WHERE id = $1", refused)
    [(body,)] = stored(gateway, "SELECT body FROM bundles WHERE hash = $1", digest)
    kept = {name: part for name, part in json.loads(body).items() if name != "places"}
    gateway.services.database.exclusive(
        lambda connection: connection.execute("UPDATE bundles SET body = $1 WHERE hash = $2", [json.dumps(kept), digest])
    ).result()
    found = explained(gateway, refused)
    assert found["missing"] is None
    assert [(reason["reason"], reason["line"]) for reason in found["reasons"]] == [
        ("A policy of the organisation forbids this.", None)
    ]


def test_when_the_person_was_erased_it_says_so_and_shows_the_record(gateway: Gateway) -> None:
    _, peer, refused = unlisted(gateway)
    done(gateway.owner.delete(f"/v1/peers/{peer['id']}/data", {"X-Auth-Confirm": gateway.owner.password}), 200)
    found = explained(gateway, refused)
    assert (found["missing"], found["nearest"]) == (MISSING["erased"], None)
    assert [(reason["policy_id"], reason["line"]) for reason in found["reasons"]] == [("guardrails/observers", 4)]


def test_a_record_that_says_another_answer_than_is_given_now_is_not_explained_away(gateway: Gateway) -> None:
    _, _, refused = unlisted(gateway)
    tamper(gateway, refused, """policies = '["guardrails/archived"]'""")
    found = explained(gateway, refused)
    assert (found["missing"], [reason["policy_id"] for reason in found["reasons"]]) == (
        MISSING["differs"],
        ["guardrails/archived"],
    )


def test_an_allow_that_the_record_was_turned_into_is_not_explained(gateway: Gateway) -> None:
    assert gateway.auditor.get("/v1/org/settings").status_code == 403
    refused = last(gateway, decision="deny")
    for change in ("outcome = 'allow'", "outcome = 'deny', deny_kind = 'paused'"):
        tamper(gateway, refused, change)
        assert explained(gateway, refused)["missing"] == MISSING["differs"]
    tamper(gateway, refused, "outcome = 'deny', deny_kind = 'not_permitted'")
    assert explained(gateway, refused)["missing"] is None


def test_an_error_that_the_record_leaves_out_is_not_explained_away(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    write(gateway.owner, OVERFLOW, mode="enforce")
    refused = agent.get(f"/v1/peers/{peer['id']}").json()["decision_id"]
    [(details,)] = stored(gateway, "SELECT details FROM log WHERE id = $1", refused)
    fewer = {name: value for name, value in json.loads(details).items() if name != "errors"}
    assert explained(gateway, refused)["missing"] is None
    tamper(gateway, refused, f"details = '{json.dumps(fewer)}'")
    assert explained(gateway, refused)["missing"] == MISSING["differs"]


def test_a_body_that_is_another_bundles_or_none_explains_nothing(gateway: Gateway) -> None:
    """Nor one that would give the same answer: its hash is what was recorded."""
    agent, peer, _ = unlisted(gateway)
    policy = write(gateway.owner, FORBID_ALWAYS, mode="enforce")
    refused = agent.get(f"/v1/peers/{peer['id']}").json()["decision_id"]
    done(gateway.owner.delete(f"/v1/org/cedar-policies/{policy['id']}", {"X-Auth-Confirm": gateway.owner.password}), 204)
    [(digest,)] = stored(gateway, "SELECT bundle FROM log WHERE id = $1", refused)
    [(body,)] = stored(gateway, "SELECT body FROM bundles WHERE hash = $1", digest)
    assert explained(gateway, refused)["missing"] is None
    other = json.loads(body)
    other["policies"]["more"] = '@id("more") permit (principal, action == Action::"agent.read_self", resource);'
    places = {"places": {"guardrails/observers": [1, "x"]}}
    spoiled = (
        json.dumps(other),
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        json.dumps({**json.loads(body), **places}),
        '{"schema": 1}',
    )
    for text in (*spoiled, '{"schema": "", "policies": {"a": 1}}', '{"schema": "x", "policies": {"a": "permit"}}'):
        gateway.services.database.exclusive(partial(_spoil, digest, text)).result()
        assert explained(gateway, refused)["missing"] == MISSING["bundle_gone"], text[:50]


def _spoil(digest: str, text: str, connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("UPDATE bundles SET body = $1 WHERE hash = $2", [text, digest])


def test_a_bundle_that_decides_no_more_is_made_once_for_many_explanations(gateway: Gateway) -> None:
    agent, peer, _ = unlisted(gateway)
    policy = write(gateway.owner, FORBID_ALWAYS, mode="enforce")
    refused = [agent.get(f"/v1/peers/{peer['id']}").json()["decision_id"] for _ in range(3)]
    done(gateway.owner.delete(f"/v1/org/cedar-policies/{policy['id']}", {"X-Auth-Confirm": gateway.owner.password}), 204)
    before = kept._made.cache_info()
    for decision_id in refused:
        assert explained(gateway, decision_id)["missing"] is None
    after = kept._made.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 2)
    assert after.maxsize == kept.READY


def test_what_the_gateway_withdrew_and_what_cedar_was_not_asked_are_told_as_that(gateway: Gateway) -> None:
    kinds = {"stale": "withdrawn", "deadline": "withdrawn", "invalid_request": "not_asked"}
    for number, (kind, missing) in enumerate(kinds.items(), start=1):
        bundle = gateway.services.access.engine.bundle.hash
        [row] = craft(gateway, 1, first=number, outcome="deny", deny_kind=kind, policies=(), bundle=bundle)
        found = explained(gateway, row)
        assert (found["deny_kind"], found["note"], found["missing"]) == (kind, NOTES[kind], MISSING[missing])


# -- from whom


def test_no_agent_connection_bridge_or_platform_reads_an_explanation(gateway: Gateway) -> None:
    agent, _, refused = unlisted(gateway)
    remote = connect(gateway, agent)
    allow(gateway, remote)
    bridge = done(gateway.owner.post(f"/v1/agents/{agent.id}/bridge-token"), 201)
    others = (
        agent,
        remote,
        converse(gateway, remote),
        Client(gateway.http, agent.id, bridge["token"]),
        platform_of(gateway, gateway.owner).app,
    )
    for client in (*others, gateway.member):
        answer = client.get(f"/v1/decisions/{refused}")
        assert answer.status_code == 403, client
        assert "explanation" not in answer.text
        assert "guardrails/" not in answer.text


def test_a_refused_agent_is_told_the_decision_and_the_public_reason_and_no_more(gateway: Gateway) -> None:
    agent, peer = gateway.agent(), gateway.peer(gateway.member, [])
    assert set(agent.get(f"/v1/peers/{peer['id']}").json()) == {"type", "title", "status", "detail", "decision_id"}


def test_a_decision_of_another_organisation_is_explained_to_nobody(gateway: Gateway) -> None:
    _, _, refused = unlisted(gateway)
    assert gateway.other_owner.get(f"/v1/decisions/{refused}").status_code == 404
