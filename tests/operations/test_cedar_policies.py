"""Policies of an organisation: written, tried, promoted, taken back, and never more than the guardrails leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gateway.operations import cedar_policies, policy_shape
from gateway.policy.engines import Engines, Own, Staged
from tests.builders import Client, Gateway, Response, done
from tests.operations.asking import ABSENT, actions, restart, stored
from tests.operations.connecting import connect
from tests.operations.memory_acts import remember

PATH = "/v1/org/cedar-policies"
PERMIT_ALL = "permit (principal, action, resource);"
FORBID_AGENTS = 'forbid (principal is Agent, action == Action::"peer.read", resource);'
FORBID_ALL = "forbid (principal, action, resource);"
ERRING = "forbid (principal, action, resource) when { 9223372036854775807 + context.clock.weekday > 0 };"
NOTE = "A policy of an organisation only narrows: the permits in this text open nothing."


def confirmed(human: Client) -> dict[str, str]:
    return {"X-Auth-Confirm": human.password}


def write(human: Client, text: str = FORBID_AGENTS, **body: object) -> dict[str, Any]:
    made: dict[str, Any] = done(human.post(PATH, {"name": "a policy", "cedar_text": text, **body}, confirmed(human)), 201)
    return made


def step(human: Client, policy: dict[str, Any], verb: str) -> Response:
    """Takes a step from the version at which the policy is."""
    path = f"{PATH}/{policy['id']}"
    return human.post(f"{path}/{verb}", {"version": done(human.get(path), 200)["version"]}, confirmed(human))


def test_a_policy_starts_in_the_shadow_and_shows_every_field(gateway: Gateway) -> None:
    made = write(gateway.security, description="why")
    assert made == {
        "id": made["id"],
        "org_id": gateway.services.state.humans[gateway.owner.id].org_id,
        "name": "a policy",
        "cedar_text": FORBID_AGENTS,
        "policy_text": FORBID_AGENTS,
        "description": "why",
        "note": None,
        "is_active": True,
        "enforcement_status": "shadow",
        "version": 1,
        "enforced_version": None,
        "written_by": gateway.security.id,
        "created_by": gateway.security.id,
        "created_at": "2026-03-04T10:00:00Z",
        "updated_at": "2026-03-04T10:00:00Z",
    }
    for reader in (gateway.owner, gateway.admin, gateway.security, gateway.auditor):
        assert done(reader.get(PATH), 200) == {"policies": [made]}
        assert done(reader.get(f"{PATH}/{made['id']}"), 200) == made


def test_the_other_spelling_is_the_same_policy(gateway: Gateway) -> None:
    made = done(gateway.owner.post(PATH, {"policy_text": FORBID_AGENTS, "description": "no agents"}), 201)
    assert (made["name"], made["cedar_text"], made["description"]) == ("no agents", FORBID_AGENTS, "no agents")
    both = gateway.owner.post(PATH, {"policy_text": FORBID_AGENTS, "cedar_text": FORBID_AGENTS})
    assert (both.status_code, list(both.json()["fields"])) == (400, ["policy_text"])


def test_in_the_shadow_it_decides_nothing_and_in_force_it_does_and_taken_back_it_does_not(gateway: Gateway) -> None:
    agent = gateway.agent()
    path = f"/v1/peers/{gateway.peer(observers=[agent])['id']}"
    policy = write(gateway.security)
    assert agent.get(path).status_code == 200
    promoted = done(step(gateway.security, policy, "promote"), 200)
    assert (promoted["enforcement_status"], promoted["version"], promoted["enforced_version"]) == ("enforce", 2, 2)
    refused = agent.get(path)
    assert (refused.status_code, refused.json()["detail"]) == (403, "A policy of the organisation forbids this.")
    back = done(step(gateway.admin, policy, "rollback"), 200)
    assert (back["enforcement_status"], back["version"], back["enforced_version"]) == ("shadow", 1, None)
    assert agent.get(path).status_code == 200
    names = ("policy.created", "policy.promoted", "policy.rolled_back")
    assert [name for name in actions(gateway) if name.startswith("policy.")] == [*names]


def test_a_policy_that_is_written_in_force_decides_at_once_and_until_it_is_deleted(gateway: Gateway) -> None:
    agent = gateway.agent()
    path = f"/v1/peers/{gateway.peer(observers=[agent])['id']}"
    policy = write(gateway.owner, mode="enforce")
    assert agent.get(path).status_code == 403
    restart(gateway)
    assert gateway.http.get(path, headers={"Authorization": f"Bearer {agent.key}"}).status_code == 403
    done(gateway.owner.delete(f"{PATH}/{policy['id']}", confirmed(gateway.owner)), 204)
    assert gateway.http.get(path, headers={"Authorization": f"Bearer {agent.key}"}).status_code == 200
    assert done(gateway.owner.get(PATH), 200) == {"policies": []}
    assert stored(gateway, "SELECT count(*) FROM org_policy_versions") == [(0,)]


def test_a_new_version_leaves_what_is_in_force_until_it_is_promoted(gateway: Gateway) -> None:
    agent = gateway.agent()
    path = f"/v1/peers/{gateway.peer(observers=[agent])['id']}"
    policy = write(gateway.owner, mode="enforce")
    none = "forbid (principal, action, resource) when { false };"
    changed = done(gateway.security.put(f"{PATH}/{policy['id']}", {"cedar_text": none}), 200)
    assert (changed["enforcement_status"], changed["version"], changed["enforced_version"]) == ("shadow", 2, 1)
    assert agent.get(path).status_code == 403
    done(step(gateway.owner, policy, "promote"), 200)
    assert agent.get(path).status_code == 200
    done(step(gateway.owner, policy, "rollback"), 200)
    assert agent.get(path).status_code == 403
    done(step(gateway.owner, policy, "rollback"), 200)
    assert step(gateway.owner, policy, "rollback").status_code == 409
    listed = done(gateway.auditor.get(f"{PATH}/{policy['id']}/versions"), 200)["versions"]
    shown = [(v["version"], v["previous"], v["enforcement_status"], v["enforced_version"], v["current"]) for v in listed]
    assert shown == [(1, None, "enforce", 1, True), (2, 1, "shadow", 1, False), (3, 2, "enforce", 3, False)]
    again = done(gateway.owner.put(f"{PATH}/{policy['id']}", {"cedar_text": none, "name": "other"}), 200)
    assert (again["version"], again["name"]) == (4, "other")


def test_it_is_the_organisation_s_own_and_nobody_else_s(gateway: Gateway) -> None:
    policy = write(gateway.owner, FORBID_ALL, mode="enforce")
    assert gateway.owner.get("/v1/agents").status_code == 403
    assert gateway.other_owner.get("/v1/agents").status_code == 200
    assert done(gateway.other_owner.get(PATH), 200) == {"policies": []}
    own, far = f"{PATH}/{policy['id']}", gateway.other_owner
    confirm = confirmed(far)
    made = [far.get(own), far.put(own, {"cedar_text": PERMIT_ALL}), far.delete(own, confirm), far.get(f"{own}/versions")]
    made += [far.post(f"{own}/{verb}", {"version": 1}, confirm) for verb in ("promote", "rollback")]
    assert {answer.status_code for answer in made} == {404}
    assert {answer.text for answer in made} == {far.get(f"{PATH}/{ABSENT}").text}


@pytest.mark.parametrize("text", [FORBID_ALL, ERRING])
def test_no_policy_locks_its_writers_out(gateway: Gateway, text: str) -> None:
    policy = write(gateway.security, text, mode="enforce")
    for human in (gateway.owner, gateway.security):
        assert human.get("/v1/org/settings").status_code == 403
    done(gateway.security.get(PATH), 200)
    done(gateway.security.delete(f"{PATH}/{policy['id']}", confirmed(gateway.security)), 204)
    assert gateway.owner.get("/v1/org/settings").status_code == 200


def test_a_permit_opens_nothing_and_its_writer_is_told_so(gateway: Gateway) -> None:
    agent, outsider = gateway.agent(), gateway.agent()
    peer = gateway.peer(observers=[agent])
    remember(agent, "the invoice is late")
    partner = connect(gateway, agent)
    order = {"action": "refund.create", "target_type": "order", "target_id": "1", "summary": "s", "payload": {"amount_usd": "5"}}
    approval = done(agent.post("/v1/approvals", order), 202)
    asked: list[tuple[Client, str]] = [(outsider, f"/v1/peers/{peer['id']}/context"), (gateway.security, "/v1/org/members")]
    asked += [(client, f"/v1/peers/{peer['id']}/context") for client in (gateway.security, gateway.auditor)]
    asked += [(client, f"/v1/approvals/{approval['id']}") for client in (outsider, gateway.security, gateway.auditor)]
    asked += [(gateway.security, f"/v1/connections/{partner.id}/grants"), (partner, "/v1/agents")]
    asked += [(gateway.other_owner, f"/v1/peers/{peer['id']}"), (gateway.auditor, "/v1/org/settings"), (agent, PATH)]
    before = [client.get(path).status_code for client, path in asked]
    policy = write(gateway.owner, PERMIT_ALL, mode="enforce")
    assert (policy["enforcement_status"], policy["note"]) == ("enforce", NOTE)
    assert [client.get(path).status_code for client, path in asked] == before
    assert set(before) == {403, 404}
    for client in (gateway.auditor, gateway.member, agent):
        assert client.post(PATH, {"name": "n", "cedar_text": PERMIT_ALL}).status_code == 403


def test_a_text_is_read_for_permits_once_however_often_it_is_shown(gateway: Gateway) -> None:
    write(gateway.owner, PERMIT_ALL)
    policy_shape._permits.cache_clear()
    for _ in range(3):
        assert [policy["note"] for policy in done(gateway.auditor.get(PATH), 200)["policies"]] == [NOTE]
    assert policy_shape._permits.cache_info().misses == 1


def test_a_step_is_taken_from_the_version_that_was_read_or_not_at_all(gateway: Gateway) -> None:
    policy = write(gateway.security)
    own = f"{PATH}/{policy['id']}"
    done(gateway.admin.put(own, {"cedar_text": FORBID_ALL}), 200)
    for verb in ("promote", "rollback"):
        for other in (1, 3, 7):
            late = gateway.owner.post(f"{own}/{verb}", {"version": other}, confirmed(gateway.owner))
            assert (late.status_code, "at version 2: read it first" in late.json()["detail"]) == (409, True)
        blind = gateway.owner.post(f"{own}/{verb}", {}, confirmed(gateway.owner))
        assert (blind.status_code, list(blind.json()["fields"])) == (400, ["version"])
    assert done(gateway.owner.get(own), 200)["enforced_version"] is None


def test_an_organisation_has_so_many_policies_and_no_more(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cedar_policies, "POLICIES_PER_ORG", 1)
    write(gateway.owner)
    more = gateway.owner.post(PATH, {"name": "n", "cedar_text": FORBID_AGENTS})
    assert (more.status_code, more.json()["detail"]) == (409, "an organisation has at most 1 policies: a text may hold several")


@pytest.mark.parametrize("verb", ["promote", "rollback", "delete"])
def test_whoever_writes_while_another_s_password_is_checked_is_not_overrun(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    policy = write(gateway.security, mode="enforce")
    own = f"{PATH}/{policy['id']}"
    done(gateway.security.put(own, {"cedar_text": FORBID_ALL}), 200)
    written: list[Any] = []
    checked = cedar_policies.confirm

    async def confirm_meanwhile(*given: Any, **more: Any) -> None:
        if not written:
            written.append(await asyncio.to_thread(gateway.security.put, own, {"cedar_text": PERMIT_ALL}))
        await checked(*given, **more)

    monkeypatch.setattr(cedar_policies, "confirm", confirm_meanwhile)
    owner, proof = gateway.owner, confirmed(gateway.owner)
    late = owner.delete(own, proof) if verb == "delete" else owner.post(f"{own}/{verb}", {"version": 2}, proof)
    assert (written[0].status_code, late.status_code) == (200, 204 if verb == "delete" else 409)
    if verb != "delete":
        restart(gateway)
        kept = gateway.services.state.org_policies[policy["id"]]
        assert (kept.current.number, kept.current.cedar_text, kept.enforced and kept.enforced.number) == (3, PERMIT_ALL, 1)


def meanwhile(gateway: Gateway, change: Callable[[], object]) -> None:
    """Have something happen once, when what will decide has been built aside and is not yet in place."""
    engines, left = gateway.services.access.engines, [change]

    def build(*args: Any, **kw: Any) -> Own:
        built = Engines.build(engines, *args, **kw)
        if left:
            left.pop()()
        return built

    engines.build = build  # type: ignore[method-assign]


def test_a_policy_has_so_many_versions_and_can_still_be_taken_back(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cedar_policies, "VERSIONS_PER_POLICY", 2)
    policy = write(gateway.owner)
    done(gateway.owner.put(f"{PATH}/{policy['id']}", {"cedar_text": FORBID_ALL}), 200)
    more = [gateway.owner.put(f"{PATH}/{policy['id']}", {"cedar_text": FORBID_ALL}), step(gateway.owner, policy, "promote")]
    assert {(answer.status_code, answer.json()["detail"]) for answer in more} == {
        (409, "a policy has at most 2 versions: write it anew")
    }
    assert done(step(gateway.owner, policy, "rollback"), 200)["version"] == 1
    done(gateway.owner.delete(f"{PATH}/{policy['id']}"), 204)


def test_of_two_policies_that_are_written_at_once_none_is_lost(gateway: Gateway) -> None:
    meanwhile(gateway, lambda: write(gateway.owner))
    policy = write(gateway.owner)
    shadow = gateway.services.access.engines.own(policy["org_id"]).shadow
    assert shadow is not None
    assert len(shadow.tallies) == len(done(gateway.owner.get(PATH), 200)["policies"]) == 2


@pytest.mark.parametrize("waits", [False, True])
def test_a_policy_is_laid_over_what_was_loaded_while_it_was_built(gateway: Gateway, waits: bool) -> None:
    engines = gateway.services.access.engines
    other = engines.base.sibling(engines.base.bundle.without("session/end/human"))
    if waits:
        meanwhile(gateway, lambda: engines.stage(Staged(other, gateway.clock()), {}))
    else:
        meanwhile(gateway, lambda: engines.replace(other, {}, gateway.clock()))
    policy = write(gateway.owner, mode="enforce")
    own = engines.own(policy["org_id"])
    laid = own.shadow.engine if waits and own.shadow is not None else own.engine
    assert "session/end/human" not in laid.bundle.policies
    assert f"org/{policy['id']}/1" in laid.bundle.policies


def test_who_may_do_what_with_policies(gateway: Gateway) -> None:
    policy = write(gateway.owner)
    own = f"{PATH}/{policy['id']}"
    agent = gateway.agent()
    writes: list[Callable[[Client], Response]] = [
        lambda c: c.post(PATH, {"name": "n", "cedar_text": FORBID_AGENTS}),
        lambda c: c.put(own, {"cedar_text": FORBID_AGENTS}),
        lambda c: c.post(f"{own}/promote", {"version": 1}, confirmed(c)),
        lambda c: c.post(f"{own}/rollback", {"version": 1}, confirmed(c)),
        lambda c: c.delete(own),
    ]
    reads: list[Callable[[Client], Response]] = [lambda c: c.get(PATH), lambda c: c.get(own), lambda c: c.get(f"{own}/versions")]
    for client in (gateway.auditor, gateway.member, agent):
        assert {ask(client).status_code for ask in writes} == {403}
    for client in (gateway.member, agent):
        assert {ask(client).status_code for ask in reads} == {403}
    assert {ask(gateway.auditor).status_code for ask in reads} == {200}


def test_what_changes_what_decides_has_its_writer_confirm_who_they_are(gateway: Gateway) -> None:
    policy = write(gateway.security)
    own = f"{PATH}/{policy['id']}"
    in_force = {"name": "n", "cedar_text": FORBID_AGENTS, "mode": "enforce"}
    for path, body in ((PATH, in_force), (f"{own}/promote", {"version": 1}), (f"{own}/rollback", {"version": 1})):
        answer = gateway.security.post(path, body)
        assert (answer.status_code, answer.json()["title"]) == (403, "step-up required")
    done(step(gateway.security, policy, "promote"), 200)
    answer = gateway.security.delete(own)
    assert (answer.status_code, answer.json()["title"]) == (403, "step-up required")
    shadow = write(gateway.security)
    done(gateway.security.delete(f"{PATH}/{shadow['id']}"), 204)


def test_with_two_needed_whoever_wrote_a_version_does_not_promote_it(gateway: Gateway) -> None:
    done(gateway.owner.patch("/v1/org/settings", {"policy_promotions_need_two": "true"}), 200)
    reason = "Whoever wrote a policy does not put it in force here: a second person is needed."
    policy = write(gateway.security)
    refused = step(gateway.security, policy, "promote")
    assert (refused.status_code, refused.json()["detail"]) == (403, reason)
    at_once = gateway.owner.post(PATH, {"name": "n", "cedar_text": FORBID_AGENTS, "mode": "enforce"}, confirmed(gateway.owner))
    assert (at_once.status_code, at_once.json()["detail"]) == (403, reason)
    done(step(gateway.admin, policy, "promote"), 200)
    done(gateway.admin.put(f"{PATH}/{policy['id']}", {"cedar_text": PERMIT_ALL}), 200)
    assert step(gateway.admin, policy, "promote").status_code == 403
    done(step(gateway.security, policy, "promote"), 200)
    assert step(gateway.owner, policy, "promote").status_code == 409
    assert step(gateway.security, policy, "rollback").status_code == 403  # it is their text that would be in force again
    done(step(gateway.admin, policy, "rollback"), 200)
    off = {"policy_promotions_need_two": "false"}
    assert gateway.owner.patch("/v1/org/settings", off).status_code == 403
    done(gateway.owner.patch("/v1/org/settings", off, confirmed(gateway.owner)), 200)


def test_with_two_needed_nobody_brings_back_or_lifts_alone_what_they_wrote(gateway: Gateway) -> None:
    kept, lifted = write(gateway.security, mode="enforce"), write(gateway.security, mode="enforce")
    done(gateway.security.put(f"{PATH}/{kept['id']}", {"cedar_text": FORBID_ALL}), 200)
    done(gateway.owner.patch("/v1/org/settings", {"policy_promotions_need_two": "true"}), 200)
    done(step(gateway.owner, kept, "promote"), 200)
    assert step(gateway.security, kept, "rollback").status_code == 403
    done(step(gateway.owner, kept, "rollback"), 200)
    done(step(gateway.security, kept, "rollback"), 200)  # what is in force stays the same
    first = write(gateway.security)
    done(step(gateway.owner, first, "promote"), 200)
    assert step(gateway.security, first, "rollback").status_code == 403  # nothing of it would be in force
    lifting = gateway.security.delete(f"{PATH}/{lifted['id']}", confirmed(gateway.security))
    assert (lifting.status_code, lifting.json()["title"]) == (403, "forbidden")
    done(gateway.owner.delete(f"{PATH}/{lifted['id']}", confirmed(gateway.owner)), 204)


@pytest.mark.parametrize(
    "text",
    [
        "permit",
        "permit (principal, action, resource)",
        "permit (principal, action, resource) when { resource.nothing == 1 };",
        "permit (principal, action, resource) when { unknown(\"x\") };",
        'permit (principal, action == Action::"policy.read", resource);',
        'permit (principal, action == Action::"memory.read", resource) when { resource.agent.active };',
        '@id("guardrails/observers") permit (principal, action, resource);',
        '@id("grant/x") permit (principal, action, resource);',
        '@id("a") permit (principal, action, resource); @id("a") forbid (principal, action, resource);',
        '@precedence("0") forbid (principal, action, resource);',
        '@reason_code("paused") forbid (principal, action, resource);',
        "permit (principal == ?principal, action, resource);",
        f"permit (principal, action, resource) when {{ {'(' * 600}true{')' * 600} }};",
        f"permit (principal, action, resource) when {{ {' || '.join(['true'] * 2_000)} }};",
    ],
)  # fmt: skip
def test_a_text_that_must_not_decide_is_a_400_and_kept_nowhere(gateway: Gateway, text: str) -> None:
    refused = gateway.owner.post(PATH, {"name": "n", "cedar_text": text})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["cedar_text"])
    assert done(gateway.owner.get(PATH), 200) == {"policies": []}


def test_a_text_that_is_too_long_is_a_400(gateway: Gateway) -> None:
    refused = gateway.owner.post(PATH, {"name": "n", "cedar_text": FORBID_AGENTS + " " * 256 * 1024})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["cedar_text"])


@pytest.mark.parametrize(("body", "field"), [({"name": "n"}, "cedar_text"), ({"cedar_text": 1}, "cedar_text"),
    ({"cedar_text": FORBID_AGENTS, "mode": "off"}, "mode"), ({"cedar_text": FORBID_AGENTS, "name": 1}, "name")])  # fmt: skip
def test_a_malformed_policy_is_a_400(gateway: Gateway, body: dict[str, object], field: str) -> None:
    refused = gateway.owner.post(PATH, body)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


def test_a_trial_says_what_would_be_decided_and_records_no_decision_of_anybody(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    body = {"principal": f'Agent::"{agent.id}"', "action": "peer.read", "resource": f'Peer::"{peer["id"]}"'}
    tried = done(gateway.auditor.post(f"{PATH}/test", body), 200)
    assert tried == {
        "decision": "allow",
        "backend": "cedar",
        "enforcement_status": "enforce",
        "note": "allowed by the policies that are named",
        "reasons": ["peer/read/observer"],
        "deny_kind": None,
        "errors": [],
    }
    other = {
        "principal_type": "agent",
        "principal_id": agent.id,
        "action": 'Action::"peer.read"',
        "resource_path": f"Peer/{peer['id']}",
        "vault_id": None,
        "cedar_text": FORBID_AGENTS,
    }
    tried = done(gateway.auditor.post(f"{PATH}/test", other), 200)
    assert (tried["decision"], tried["enforcement_status"], tried["reasons"]) == ("deny", "shadow", ["org/candidate/1"])
    assert tried["note"] == "A policy of the organisation forbids this."
    asked = "SELECT count(*) FROM log WHERE principal_id = $1 AND action = 'peer.read'"
    assert stored(gateway, asked, agent.id) == [(0,)]
    assert agent.get(f"/v1/peers/{peer['id']}").status_code == 200


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"principal": "Agent"}, "principal"),
        ({"principal": 'Operator::"local"'}, "principal"),
        ({"action": "a b"}, "action"),
        ({"resource": 'Memory::"x"'}, "resource"),
        ({"context": {"now": {"fn": "unknown", "arg": "x"}}}, "context"),
        ({"cedar_text": "permit"}, "cedar_text"),
    ],
)
def test_a_malformed_trial_is_a_400(gateway: Gateway, changes: dict[str, object], field: str) -> None:
    body = {"principal": f'Agent::"{ABSENT}"', "action": "peer.read", "resource": f'Peer::"{ABSENT}"', **changes}
    refused = gateway.owner.post(f"{PATH}/test", body)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


def test_a_trial_shows_nothing_of_another_organisation(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    asked = [
        {"principal": f'Agent::"{agent.id}"', "action": "peer.read", "resource": f'Peer::"{found}"'}
        for found in (peer["id"], ABSENT)
    ]
    answers = [done(gateway.other_owner.post(f"{PATH}/test", body), 200) for body in asked]
    assert answers[0] == answers[1]
    assert answers[0]["decision"] == "deny"


def test_a_trial_knows_no_principal_of_another_organisation(gateway: Gateway) -> None:
    other = gateway.other_owner
    agent = gateway.agent(by=other)
    app = done(other.post("/v1/org/platform-apps", {"name": "app", "slug": "app"}), 201)["app"]
    theirs = f'Org::"{gateway.services.state.humans[other.id].org_id}"'
    candidates = (
        'forbid (principal in Role::"owner", action, resource);',
        f"forbid (principal in {theirs}, action, resource);",
        f"forbid (principal, action, resource) when {{ principal has org && principal.org == {theirs} }};",
        "forbid (principal is Agent, action, resource) when { principal.active };",
        "forbid (principal is Bridge, action, resource) when { principal.agent.active };",
    )
    body = {"action": "session.end", "resource": f'Org::"{gateway.services.state.humans[gateway.owner.id].org_id}"'}
    for kind, found in (("Human", other.id), ("Agent", agent.id), ("Bridge", agent.id), ("Platform", app["id"])):
        named = f'{kind}::"{found}"'
        text = " ".join((*candidates, f"forbid (principal == {named}, action, resource);"))
        tried = [
            done(gateway.auditor.post(f"{PATH}/test", {**body, "principal": principal, "cedar_text": text}), 200)
            for principal in (named, f'{kind}::"{ABSENT}"')
        ]
        assert tried[0] == tried[1]
    mine = {**body, "principal": f'Human::"{gateway.owner.id}"', "cedar_text": candidates[0]}
    assert done(gateway.auditor.post(f"{PATH}/test", mine), 200)["reasons"] == ["org/candidate/1"]


def test_a_decision_by_an_organisation_s_policy_is_explained_by_it(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    policy = write(gateway.owner, f'@id("no-agents") @reason("Agents are out.") {FORBID_AGENTS}', mode="enforce")
    refused = agent.get(f"/v1/peers/{peer['id']}").json()
    assert refused["detail"] == "Agents are out."
    explained = done(gateway.security.get(f"/v1/decisions/{refused['decision_id']}"), 200)["decision"]
    assert explained["policies"] == [f"org/{policy['id']}/no-agents"]
    assert [reason["reason"] for reason in explained["explanation"]["reasons"]] == ["Agents are out."]
    assert stored(gateway, "SELECT count(*) FROM bundles WHERE hash = $1", explained["bundle"]) == [(1,)]
