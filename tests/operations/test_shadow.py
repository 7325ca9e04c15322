"""Policies in the shadow: asked about everything, and nothing is answered otherwise for it."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.policy.engine import PolicyEngine
from tests.builders import Gateway, done
from tests.operations.asking import stored
from tests.operations.memory_acts import remember, search, texts
from tests.operations.test_cedar_policies import PATH, confirmed, step, write

REPORT = "/v1/org/policy-shadow-report"
NO_AGENTS = 'forbid (principal is Agent, action == Action::"peer.read", resource);'
NO_AUDITORS = 'forbid (principal in Role::"auditor", action in [Action::"audit.list", Action::"audit.list_own"], resource);'


def report(gateway: Gateway) -> dict[str, Any]:
    found: dict[str, Any] = done(gateway.auditor.get(REPORT), 200)
    return found


def nobody() -> dict[str, object]:
    return {"count": 0, "principals": [], "decision_ids": []}


def details(gateway: Gateway, decision_id: str) -> dict[str, Any]:
    found: dict[str, Any] = done(gateway.owner.get(f"/v1/decisions/{decision_id}"), 200)["decision"]["details"]
    return found


def test_nothing_in_the_shadow_is_an_empty_report(gateway: Gateway) -> None:
    assert report(gateway) == {"asked": 0, "failures": 0, "directory": None, "policies": []}
    write(gateway.owner, mode="enforce")
    assert report(gateway) == {"asked": 0, "failures": 0, "directory": None, "policies": []}


def test_who_would_lose_and_who_would_gain_is_counted_by_policy_and_noted_on_the_decision(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = f"/v1/peers/{gateway.peer(observers=[agent])['id']}"
    loses, gains = write(gateway.security, NO_AGENTS), write(gateway.owner, NO_AUDITORS, mode="enforce")
    done(gateway.security.put(f"{PATH}/{gains['id']}", {"cedar_text": NO_AUDITORS.replace(";", " when { false };")}), 200)
    for _ in range(2):
        done(agent.get(peer), 200)
    refused = gateway.auditor.get("/v1/audit/events")
    assert refused.status_code == 403
    done(gateway.owner.get(peer), 200)
    read = stored(gateway, "SELECT id FROM log WHERE principal_id = $1 AND action = 'peer.read' ORDER BY seq", agent.id)
    ids = [row[0] for row in read]
    [[wider]] = stored(gateway, "SELECT id FROM log WHERE principal_id = $1 AND action = 'audit.list'", gateway.auditor.id)
    gained = {
        "count": 2,
        "principals": [{"type": "Human", "id": gateway.auditor.id, "count": 2}],
        "decision_ids": [wider, refused.json()["decision_id"]],
    }
    lost = {"count": 2, "principals": [{"type": "Agent", "id": agent.id, "count": 2}], "decision_ids": ids}
    about = {"name": "a policy", "since": "2026-03-04T10:00:00Z", "listings": 0}
    expected = [
        {**about, "version": 1, "policy_id": loses["id"], "gain": nobody(), "lose": lost},
        {**about, "version": 2, "policy_id": gains["id"], "gain": gained, "lose": nobody()},
    ]
    found = report(gateway)
    assert found["policies"] == sorted(expected, key=lambda policy: str(policy["policy_id"]))
    assert found["failures"] == 0
    noted = details(gateway, ids[0])["shadow"]
    assert (noted["decision"], noted["policies"]) == ("deny", [loses["id"]])
    assert details(gateway, refused.json()["decision_id"])["shadow"]["decision"] == "allow"
    assert stored(gateway, "SELECT count(*) FROM bundles WHERE hash = $1", noted["bundle"]) == [(1,)]


def test_what_is_asked_in_the_same_breath_is_compared_too(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = f"/v1/peers/{gateway.peer(observers=[agent])['id']}"
    text = NO_AGENTS.replace("peer.read", "peer.see_content")
    policy = write(gateway.security, text)
    done(agent.get(peer), 200)
    lost = report(gateway)["policies"][0]["lose"]
    assert (lost["count"], lost["principals"]) == (1, [{"type": "Agent", "id": agent.id, "count": 1}])
    [noted] = details(gateway, lost["decision_ids"][0])["also"]
    assert (noted["action"], noted["shadow"]["decision"]) == ("peer.see_content", "deny")
    assert noted["shadow"]["policies"] == [policy["id"]]
    done(step(gateway.security, policy, "promote"), 200)
    done(gateway.security.put(f"{PATH}/{policy['id']}", {"cedar_text": text.replace(";", " when { false };")}), 200)
    done(agent.get(peer), 200)
    gained = report(gateway)["policies"][0]["gain"]
    assert gained["count"] == 1
    assert details(gateway, gained["decision_ids"][0])["shadow"]["decision"] == "allow"


def test_a_decision_that_would_be_the_same_is_not_noted(gateway: Gateway) -> None:
    write(gateway.security, NO_AGENTS)
    done(gateway.owner.get(f"/v1/peers/{gateway.peer()['id']}"), 200)
    assert stored(gateway, "SELECT count(*) FROM log WHERE kind = 'decision' AND details LIKE '%shadow%'") == [(0,)]
    assert report(gateway)["asked"] > 0


def test_only_what_its_text_could_change_is_asked_beside(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])["id"]
    write(gateway.security, NO_AGENTS)
    done(agent.get(f"/v1/agents/{agent.id}"), 200)
    assert report(gateway)["asked"] == 0
    done(agent.get(f"/v1/peers/{peer}"), 200)
    assert report(gateway)["asked"] > 0


def test_a_new_version_is_compared_with_the_one_that_it_would_replace(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = f"/v1/peers/{gateway.peer(observers=[agent])['id']}"
    policy = write(gateway.owner, NO_AGENTS, mode="enforce")
    weaker = NO_AGENTS.replace(";", " when { false };")
    done(gateway.security.put(f"{PATH}/{policy['id']}", {"cedar_text": weaker}), 200)
    assert agent.get(peer).status_code == 403
    [found] = report(gateway)["policies"]
    assert (found["version"], found["gain"]["count"], found["lose"]["count"]) == (2, 1, 0)
    done(step(gateway.owner, policy, "promote"), 200)
    assert agent.get(peer).status_code == 200
    assert report(gateway)["policies"] == []


def test_a_listing_counts_that_it_would_show_other_rows(gateway: Gateway) -> None:
    agent = gateway.agent()
    remember(agent, "the invoice is late", project_id="alpha")
    inner = 'resource.classification == "internal"'
    text = f'forbid (principal is Agent, action == Action::"memory.search", resource) when {{ {inner} }};'
    policy = write(gateway.security, text)
    assert texts(search(agent, "invoice")) == ["the invoice is late"]
    [tally] = report(gateway)["policies"]
    assert (tally["policy_id"], tally["listings"], tally["gain"], tally["lose"]) == (policy["id"], 1, nobody(), nobody())


def test_a_failure_in_the_shadow_is_counted_and_nobody_else_s_concern(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = gateway.agent()
    peer = f"/v1/peers/{gateway.peer(observers=[agent])['id']}"
    write(gateway.security, NO_AGENTS)
    org = gateway.services.state.humans[gateway.owner.id].org_id
    shadow = gateway.services.access.engines.shadow_of(org)
    assert shadow is not None
    assert shadow.added is not None

    class Failing(PolicyEngine):
        def decide(self, *_: object) -> Any:
            raise RuntimeError("canary")

    shadow.added = Failing(shadow.added.bundle, salt=b"")
    assert agent.get(peer).status_code == 200
    assert report(gateway)["failures"] == 1


def test_a_policy_of_one_organisation_is_not_asked_about_another(gateway: Gateway) -> None:
    write(gateway.other_owner, "forbid (principal, action, resource);")
    done(gateway.owner.get("/v1/agents"), 200)
    assert report(gateway) == {"asked": 0, "failures": 0, "directory": None, "policies": []}
    done(gateway.other_owner.get("/v1/agents"), 200)
    assert done(gateway.other_owner.get(REPORT), 200)["policies"][0]["lose"]["count"] == 1


def test_who_may_read_the_report(gateway: Gateway) -> None:
    for client in (gateway.owner, gateway.admin, gateway.security, gateway.auditor):
        assert client.get(REPORT).status_code == 200
    for client in (gateway.member, gateway.agent()):
        assert client.get(REPORT).status_code == 403


def test_what_was_counted_ends_with_its_policy(gateway: Gateway) -> None:
    agent = gateway.agent()
    policy = write(gateway.security, NO_AGENTS)
    done(agent.get(f"/v1/peers/{gateway.peer(observers=[agent])['id']}"), 200)
    done(gateway.owner.delete(f"{PATH}/{policy['id']}", confirmed(gateway.owner)), 204)
    assert report(gateway) == {"asked": 0, "failures": 0, "directory": None, "policies": []}
