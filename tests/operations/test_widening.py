"""Wider policies: held until a second person has approved exactly this change, once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from gateway.operations.agents import AWAITING, NOBODY_ELSE
from gateway.store.agents import ADD_FIRST
from tests.builders import Client, Gateway, done
from tests.operations.asking import ABSENT, actions, ask, proof, second_factor, stored

WIDE = {"rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "20"}]}
WIDER = {"rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "30"}]}
NARROW = {
    "default_mode": "deny",
    "rules": [{"action_type": "refund.create", "mode": "approve", "require_for_amount_above_usd": "20"}],
}


@pytest.fixture
def guarded(gateway: Gateway) -> Gateway:
    """An organisation in which a wider policy waits for an approval."""
    done(gateway.owner.patch("/v1/org/settings", {"guardrail_changes_require_approval": "true"}), 200)
    return gateway


def widen(human: Client, agent: Client, policy: object = WIDE, **more: object) -> Any:
    return human.patch(f"/v1/agents/{agent.id}", {"action_approval_policy": policy, **more})


def policy_of(gateway: Gateway, agent: Client) -> object:
    return done(gateway.owner.get(f"/v1/agents/{agent.id}"), 200)["action_approval_policy"]


def settle(gateway: Gateway, waiting: dict[str, Any], word: str = "approve") -> None:
    """Decide a widening as the owner, with the second factor that tier 3 asks for."""
    secret = second_factor(gateway, gateway.owner)
    headers = proof(gateway, gateway.owner, secret)
    done(gateway.owner.post(f"/v1/approvals/{waiting['approval_id']}/decide", {"decision": word}, headers), 200)


def test_without_the_setting_a_wider_policy_applies_at_once(gateway: Gateway) -> None:
    agent = gateway.agent(by=gateway.member)
    assert done(widen(gateway.member, agent), 200)["action_approval_policy"] == WIDE


def test_a_wider_policy_waits_is_approved_and_is_applied_once(guarded: Gateway) -> None:
    agent = guarded.agent(by=guarded.member)
    answer = widen(guarded.member, agent, name="renamed")
    waiting = done(answer, 202)
    assert waiting == {
        "status": "awaiting_approval",
        "approval_id": waiting["approval_id"],
        "pending_approval_id": waiting["approval_id"],
        "revision_id": waiting["revision_id"],
        "message": AWAITING,
    }
    shown = done(guarded.owner.get(f"/v1/agents/{agent.id}"), 200)
    assert (shown["name"], shown["action_approval_policy"]) == ("agent", None)
    asked = done(guarded.owner.get(f"/v1/approvals/{waiting['approval_id']}"), 200)
    assert (asked["action"], asked["risk_tier"], asked["status"], asked["user_id"]) == (
        "policy_change",
        3,
        "pending",
        guarded.owner.id,
    )
    assert asked["payload"] == {"agent_id": agent.id, "action_approval_policy": WIDE}
    resumed = {"approval_id": waiting["approval_id"], "name": "renamed"}
    early = widen(guarded.member, agent, **resumed)
    assert (early.status_code, early.json()["detail"]) == (
        409,
        "the approval of this change is `pending`; only an approved one can be applied",
    )
    settle(guarded, waiting)
    assert policy_of(guarded, agent) is None
    changed = done(widen(guarded.member, agent, **resumed), 200)
    assert (changed["name"], changed["action_approval_policy"]) == ("renamed", WIDE)
    done(widen(guarded.member, agent, NARROW), 200)
    again = widen(guarded.member, agent, **resumed)
    assert (again.status_code, again.json()["detail"]) == (
        409,
        "the approval of this change was used before; each is good for one change",
    )
    assert policy_of(guarded, agent) == NARROW


def test_of_many_who_apply_one_approval_at_a_time_one_does(guarded: Gateway) -> None:
    agent = guarded.agent(by=guarded.member)
    waiting = done(widen(guarded.member, agent), 202)
    settle(guarded, waiting)
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: widen(guarded.member, agent, approval_id=waiting["approval_id"]).status_code, range(20))
        )
    assert sorted(answers) == [200] + [409] * 19


def test_a_member_does_not_wave_through_their_own_widening(guarded: Gateway) -> None:
    agent = guarded.agent(by=guarded.member)
    waiting = done(widen(guarded.member, agent), 202)
    secret = second_factor(guarded, guarded.member)
    path = f"/v1/approvals/{waiting['approval_id']}"
    refused = guarded.member.post(f"{path}/decide", {"decision": "approve"}, proof(guarded, guarded.member, secret))
    assert refused.status_code == 404
    assert guarded.member.post(f"{path}/cancel").status_code == 404
    assert policy_of(guarded, agent) is None


def test_the_agent_it_is_about_neither_sees_nor_withdraws_it(guarded: Gateway) -> None:
    agent = guarded.agent(by=guarded.member)
    path = f"/v1/approvals/{done(widen(guarded.member, agent), 202)['approval_id']}"
    assert agent.get(path).status_code == 404
    assert agent.post(f"{path}/cancel").status_code == 403
    assert agent.get(f"{path}/status").status_code == 403
    assert done(agent.get("/v1/approvals"), 200) == {"approvals": [], "total": 0}


def test_a_widening_goes_to_the_registrant_when_another_wants_it(guarded: Gateway) -> None:
    by_member, by_owner = guarded.agent(by=guarded.member), guarded.agent(by=guarded.owner)
    addressed = []
    for human, agent in ((guarded.admin, by_member), (guarded.owner, by_owner), (guarded.admin, by_owner)):
        waiting = done(widen(human, agent, WIDE if human is guarded.owner else WIDER), 202)
        addressed.append(done(guarded.owner.get(f"/v1/approvals/{waiting['approval_id']}"), 200)["user_id"])
    assert addressed == [guarded.member.id, guarded.admin.id, guarded.owner.id]


def test_whoever_asks_does_not_decide_it_whatever_their_role(guarded: Gateway) -> None:
    for asking, second in ((guarded.admin, guarded.owner), (guarded.owner, guarded.admin)):
        agent = guarded.agent(by=guarded.owner)
        waiting = done(widen(asking, agent), 202)
        path = f"/v1/approvals/{waiting['approval_id']}"
        for route in ("decide", "approve", "deny"):
            body = {"decision": "approve"} if route == "decide" else {}
            refused = done(asking.post(f"{path}/{route}", body), 403)
            assert refused["detail"] == "Whoever asked for a change does not decide it: a second owner or admin is needed."
            assert guarded.member.post(f"{path}/{route}", body).status_code == 404
        assert done(asking.get(path), 200)["status"] == "pending"
        secret = second_factor(guarded, second)
        done(second.post(f"{path}/decide", {"decision": "approve"}, proof(guarded, second, secret)), 200)
        assert done(widen(asking, agent, approval_id=waiting["approval_id"]), 200)["action_approval_policy"] == WIDE


def test_the_change_of_a_sole_owner_waits_for_a_second_person(gateway: Gateway) -> None:
    owner = gateway.other_owner
    done(owner.patch("/v1/org/settings", {"guardrail_changes_require_approval": "true"}), 200)
    agent = gateway.agent(by=owner)
    waiting = done(widen(owner, agent), 202)
    assert waiting["message"] == AWAITING + NOBODY_ELSE
    path = f"/v1/approvals/{waiting['approval_id']}"
    assert done(owner.get(path), 200)["user_id"] == owner.id
    assert owner.post(f"{path}/decide", {"decision": "approve"}).status_code == 403
    second = gateway.human("admin", by=owner)
    assert done(widen(owner, agent), 202) == {**waiting, "message": AWAITING}
    secret = second_factor(gateway, second)
    done(second.post(f"{path}/decide", {"decision": "approve"}, proof(gateway, second, secret)), 200)
    done(widen(owner, agent, approval_id=waiting["approval_id"]), 200)


def test_the_same_wish_twice_is_one_approval(guarded: Gateway) -> None:
    agent = guarded.agent(by=guarded.member)
    first, second, other = (done(widen(guarded.member, agent, policy), 202) for policy in (WIDE, WIDE, WIDER))
    assert first == second
    assert other["approval_id"] != first["approval_id"]
    assert done(guarded.owner.get("/v1/approvals", scope="org"), 200)["total"] == 2


def test_a_rejected_a_cancelled_or_an_ended_approval_applies_nothing(guarded: Gateway) -> None:
    agent = guarded.agent(by=guarded.member)
    rejected = done(widen(guarded.member, agent), 202)
    settle(guarded, rejected, "reject")
    cancelled = done(widen(guarded.member, agent), 202)
    done(guarded.owner.post(f"/v1/approvals/{cancelled['approval_id']}/cancel"), 200)
    ended = done(widen(guarded.member, agent), 202)
    assert len({one["approval_id"] for one in (rejected, cancelled, ended)}) == 3
    guarded.clock.advance(timedelta(days=7))
    statuses = []
    for one in (rejected, cancelled, ended):
        refused = widen(guarded.member, agent, approval_id=one["approval_id"])
        assert refused.status_code == 409
        statuses.append(refused.json()["detail"].split("`")[1])
    assert statuses == ["rejected", "cancelled", "expired"]
    assert policy_of(guarded, agent) is None


def test_an_approved_change_has_to_be_applied_within_the_life_of_the_approval(guarded: Gateway) -> None:
    agent = guarded.agent(by=guarded.member)
    waiting = done(widen(guarded.member, agent), 202)
    settle(guarded, waiting)
    guarded.clock.advance(timedelta(days=7))
    refused = widen(guarded.member, agent, approval_id=waiting["approval_id"])
    assert (refused.status_code, refused.json()["detail"]) == (409, "the approval of this change has ended; ask again")


def test_an_approval_is_for_one_agent_and_one_policy(guarded: Gateway) -> None:
    agent, other = guarded.agent(by=guarded.member), guarded.agent("other", by=guarded.member)
    waiting = done(widen(guarded.member, agent), 202)
    settle(guarded, waiting)
    foreign = guarded.agent("foreign", by=guarded.other_owner)
    business = ask(agent)
    cases = (
        (guarded.member, agent, WIDER, waiting["approval_id"]),
        (guarded.member, other, WIDE, waiting["approval_id"]),
        (guarded.member, agent, WIDE, business["id"]),
        (guarded.member, agent, WIDE, ABSENT),
        (guarded.member, agent, WIDE, "no-id"),
        (guarded.other_owner, foreign, WIDE, waiting["approval_id"]),
    )
    for human, target, policy, approval_id in cases:
        refused = widen(human, target, policy, approval_id=approval_id)
        assert (refused.status_code, list(refused.json()["fields"])) == (400, ["approval_id"])
    unknown = widen(guarded.other_owner, foreign, approval_id=ABSENT)
    assert widen(guarded.other_owner, foreign, approval_id=waiting["approval_id"]).content == unknown.content
    assert [policy_of(guarded, one) for one in (agent, other)] == [None, None]


def test_an_approval_without_the_policy_it_is_for_is_400(guarded: Gateway) -> None:
    agent = guarded.agent()
    refused = guarded.owner.patch(f"/v1/agents/{agent.id}", {"approval_id": ABSENT})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["action_approval_policy"])


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (WIDE, NARROW, 200),
        (WIDE, {}, 202),
        (WIDE, WIDE, 200),
        (WIDER, WIDE, 200),
        (WIDE, WIDER, 202),
        (NARROW, {}, 202),
        ({"rules": [{"action_type": "a.b", "mode": "deny"}]}, {}, 202),
        ({}, {"default_mode": "allow"}, 202),
        ({}, {"rules": [{"action_type": "a.b", "mode": "approve", "require_for_amount_above_usd": "60"}]}, 202),
        ({}, {"rules": [{"action_type": "a.b", "mode": "approve", "require_for_amount_above_usd": "40"}]}, 200),
    ],
)
def test_only_what_widens_waits(gateway: Gateway, old: object, new: object, status: int) -> None:
    agent = gateway.agent(policy=old)
    done(gateway.owner.patch("/v1/org/settings", {"guardrail_changes_require_approval": "true"}), 200)
    assert widen(gateway.owner, agent, new).status_code == status


def test_registering_anew_is_no_way_around(guarded: Gateway) -> None:
    refused = guarded.member.post("/v1/agents", {"name": "new", "action_approval_policy": WIDE})
    assert (refused.status_code, refused.json()["title"]) == (409, "conflict")
    parent = done(guarded.member.post("/v1/agents", {"name": "new", "action_approval_policy": NARROW}), 201)
    path = f"/v1/agents/{parent['id']}/children"
    assert guarded.member.post(path, {"name": "child", "action_approval_policy": WIDE}).status_code == 409
    assert guarded.member.post(path, {"name": "child"}).status_code == 201


def test_a_template_is_no_way_around(guarded: Gateway) -> None:
    path = "/v1/org/platform-templates"
    mixed = [{"name": "a", "action_approval_policy": NARROW}, {"name": "b", "action_approval_policy": WIDE}]
    refused = guarded.owner.post(path, {"name": "wide", "agents": mixed})
    assert (refused.status_code, refused.json()["detail"]) == (409, ADD_FIRST)
    assert done(guarded.owner.get(path), 200) == {"templates": []}
    assert guarded.owner.post(path, {"name": "narrow", "agents": [mixed[0], {"name": "b"}]}).status_code == 201


def test_with_the_setting_a_policy_in_a_template_is_confirmed(gateway: Gateway) -> None:
    done(gateway.owner.patch("/v1/org/settings", {"guardrail_changes_require_step_up": "true"}), 200)
    path = "/v1/org/platform-templates"
    body = {"name": "one", "agents": [{"name": "a", "action_approval_policy": NARROW}]}
    refused = gateway.owner.post(path, body)
    assert (refused.status_code, refused.json()["title"]) == (403, "step-up required")
    assert gateway.owner.post(path, body, {"X-Auth-Confirm": gateway.owner.password}).status_code == 201
    assert gateway.owner.post(path, {"name": "two", "agents": [{"name": "a"}]}).status_code == 201


def test_an_agent_never_widens_itself(guarded: Gateway) -> None:
    agent = guarded.agent()
    assert widen(agent, agent).status_code == 403
    assert done(guarded.owner.get("/v1/approvals", scope="org"), 200)["total"] == 0


def test_with_the_setting_every_edit_of_a_policy_is_confirmed(gateway: Gateway) -> None:
    member = gateway.member
    agent = gateway.agent(by=member)
    done(gateway.owner.patch("/v1/org/settings", {"guardrail_changes_require_step_up": "true"}), 200)
    path = f"/v1/agents/{agent.id}"
    for policy in (WIDE, NARROW, {}):
        refused = member.patch(path, {"action_approval_policy": policy})
        assert (refused.status_code, refused.json()["title"]) == (403, "step-up required")
    assert member.post("/v1/agents", {"name": "new", "action_approval_policy": WIDE}).status_code == 403
    assert member.post(f"{path}/children", {"name": "new", "action_approval_policy": NARROW}).status_code == 403
    confirmed = {"X-Auth-Confirm": member.password}
    assert done(member.patch(path, {"action_approval_policy": WIDE}, confirmed), 200)["action_approval_policy"] == WIDE
    body = {"method": "password", "purpose": "policy.update", "password": member.password}
    token = {"X-Auth-Confirm": done(member.post("/v1/auth/reauth/complete", body), 200)["token"]}
    assert member.patch(path, {"action_approval_policy": NARROW}, token).status_code == 200
    assert member.patch(path, {"action_approval_policy": {}}, token).status_code == 403
    assert member.patch(path, {"name": "no policy"}).status_code == 200


def test_a_widening_is_audited_and_is_evidence_about_nobody(guarded: Gateway) -> None:
    agent = guarded.agent()
    guarded.peer(person=guarded.owner, observers=[agent])
    settle(guarded, done(widen(guarded.admin, agent), 202))
    assert [action for action in actions(guarded) if action.startswith("approval.")] == ["approval.requested", "approval.decided"]
    assert stored(guarded, "SELECT id FROM events") == []


def test_deleting_the_agent_cancels_its_widening(guarded: Gateway) -> None:
    agent = guarded.agent()
    waiting = done(widen(guarded.owner, agent), 202)
    done(guarded.owner.delete(f"/v1/agents/{agent.id}"), 204)
    assert done(guarded.owner.get(f"/v1/approvals/{waiting['approval_id']}"), 200)["status"] == "cancelled"
