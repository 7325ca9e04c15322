"""The one door: what it asks, what it records, and what it gives or raises."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.errors import Forbidden, NotFound
from gateway.model.caller import Caller
from gateway.model.evidence import LogRow
from gateway.model.grant import Grant
from gateway.model.records import Pause
from gateway.store.entities import Missing
from tests.access.asked import AGENT, MEMBER, OWNER, entities_of
from tests.builders import Client, Gateway, done
from tests.world import HOME, NOW, PERMIT_ALL, ROOT, World, a_proposal, agent_caller, an_approval, bundle_of, caller, session

# -- what it gives


def test_an_allowed_action_gives_a_grant_over_its_target_and_one_row(world: World) -> None:
    asked = session(AGENT)
    grant = world.access.authorize(asked, "peer.read", world.peer)
    [row] = asked.rows
    assert (grant.session, grant.action, str(grant.resource), grant.target) == (asked, "peer.read", 'Peer::"peer"', world.peer)
    assert grant.decision is row
    assert (grant.now, grant.caller) == (NOW, AGENT)


def test_a_row_holds_the_question_the_answer_and_what_it_was_decided_over(world: World) -> None:
    asked = session(AGENT)
    world.access.authorize(asked, "peer.read", world.peer)
    [row] = asked.rows
    assert row == LogRow(
        kind="decision",
        id=row.id,
        at=NOW,
        org_id=HOME,
        principal_type="Agent",
        principal_id="agent",
        action="peer.read",
        resource_type="Peer",
        resource_id="peer",
        outcome="allow",
        deny_kind=None,
        policies=("peer/read/observer",),
        bundle=world.engine.bundle.hash,
        data_version=world.state.version,
        slices=row.slices,
        request_id="request",
        details={"context": {"now": "2026-03-04T10:00:00Z", "clock": {"minute": 600, "weekday": 3, "date": "2026-03-04"}}},
    )
    assert list(row.slice_bodies) == list(row.slices)
    assert sorted(entities_of(row)) == [
        "Agent::agent",
        "Human::member",
        "Observers::peer",
        "Org::home",
        "Peer::peer",
        "Role::member",
    ]


def test_a_denial_by_a_forbid_says_its_reason_and_names_the_decision(world: World) -> None:
    asked = session(agent_caller("other"))
    with pytest.raises(Forbidden) as refused:
        world.access.authorize(asked, "peer.read", world.peer)
    [row] = asked.rows
    sentence = "This agent is not on the observer list of this peer."
    assert (refused.value.detail, refused.value.decision_id) == (sentence, row.id)
    assert (row.outcome, row.deny_kind, row.policies) == ("deny", "forbidden", ("guardrails/observers",))


def test_a_denial_by_default_says_that_no_policy_permits(world: World) -> None:
    asked = session(caller("auditor"))
    with pytest.raises(Forbidden) as refused:
        world.access.authorize(asked, "peer.list", world.org)
    [row] = asked.rows
    assert refused.value.detail == "no policy permits this"
    assert (row.outcome, row.deny_kind, row.policies) == ("deny", "not_permitted", ())


def test_a_policy_that_fails_denies_and_is_named_without_its_message() -> None:
    failing = '@id("odd") forbid (principal, action, resource) when { context.clock.minute + 9223372036854775807 > 0 };'
    world = World(bundle_of(PERMIT_ALL, failing))
    asked = session(OWNER)
    with pytest.raises(Forbidden, match="no policy permits this"):
        world.access.authorize(asked, "approval.read", an_approval())
    [row] = asked.rows
    assert (row.outcome, row.deny_kind, row.details["errors"]) == ("deny", "evaluation_error", ["odd"])


def test_hiding_turns_a_refusal_into_not_found_and_still_records_it(world: World) -> None:
    asked = session(agent_caller("other"))
    with pytest.raises(NotFound):
        world.access.authorize(asked, "peer.read", world.peer, hide=True)
    assert [row.outcome for row in asked.rows] == ["deny"]
    assert world.access.authorize(session(AGENT), "peer.read", world.peer, hide=True).target is world.peer


# -- the boundary


def test_an_unknown_and_a_foreign_target_leave_the_same_row_but_for_the_id(world: World) -> None:
    rows = []
    for peer_id in ("unknown", "abroad"):
        asked = session(AGENT)
        with pytest.raises(NotFound) as refused:
            world.access.authorize(asked, "peer.read", Missing("Peer", peer_id))
        assert refused.value.detail == NotFound().detail
        [row] = asked.rows
        [body] = row.slice_bodies.values()
        same = body.replace(peer_id, "ID")
        rows.append((replace(row, id="", resource_id="ID", slices=(), slice_bodies={}), sorted(json.loads(same), key=str)))
    assert rows[0] == rows[1]
    assert rows[0][0].outcome == "deny"


@pytest.mark.parametrize("hide", [False, True])
def test_what_is_missing_is_not_found_also_when_every_policy_would_permit_it(hide: bool) -> None:
    world = World(bundle_of(PERMIT_ALL))
    asked = session(AGENT)
    with pytest.raises(NotFound):
        world.access.authorize(asked, "peer.read", Missing("Peer", "abroad"), hide=hide)
    with pytest.raises(NotFound):
        world.access.authorize_first(asked, ("agent.read", "agent.read_self"), Missing("Agent", "foreign"))
    assert [(row.resource_id, row.outcome) for row in asked.rows] == [("abroad", "allow"), ("foreign", "allow")]


def test_a_foreign_object_that_slips_through_is_refused_by_the_guardrail(world: World) -> None:
    ruling = world.access.ask(session(OWNER), "peer.read", world.state.peers["abroad"])
    assert (ruling.allowed, ruling.row.policies) == (False, ("guardrails/organisation",))


# -- several questions


def test_the_widest_allowed_action_is_the_one_that_is_granted_and_recorded(world: World) -> None:
    for who, action in ((OWNER, "peer.list"), (MEMBER, "peer.list_own")):
        asked = session(who)
        grant = world.access.authorize_first(asked, ("peer.list", "peer.list_own"), world.org)
        assert (grant.action, [row.action for row in asked.rows]) == (action, [action])


def test_when_none_is_allowed_only_the_last_refusal_is_recorded(world: World) -> None:
    asked = session(AGENT)
    with pytest.raises(Forbidden, match="Only a human does this"):
        world.access.authorize_first(asked, ("peer.list", "peer.list_own"), world.org)
    assert [(row.action, row.outcome) for row in asked.rows] == [("peer.list_own", "deny")]


def test_a_second_yes_is_noted_on_the_row_of_the_grant(world: World) -> None:
    asked = session(AGENT)
    grant, also = world.access.authorize_with(asked, "peer.read", "peer.see_content", world.peer)
    assert (grant.action, also) == ("peer.read", True)
    [row] = asked.rows
    assert row.details["also"] == [{"action": "peer.see_content", "policies": ["peer/see_content/observer"]}]


def test_a_second_no_is_a_row_of_its_own_that_names_the_grant_it_is_within(world: World) -> None:
    world.change_peer(pause=Pause(reading=True))
    asked = session(AGENT)
    _, also = world.access.authorize_with(asked, "peer.read", "peer.see_content", world.peer)
    first, second = asked.rows
    assert (also, "also" in first.details) == (False, False)
    assert (second.action, second.outcome, second.deny_kind) == ("peer.see_content", "deny", "paused")
    assert second.details["within"] == "peer.read"
    assert second.slice_bodies == first.slice_bodies


def test_without_a_first_yes_there_is_no_second_answer(world: World) -> None:
    world.observe()
    asked = session(AGENT)
    with pytest.raises(Forbidden):
        world.access.authorize_with(asked, "peer.read", "peer.see_content", world.peer)
    assert [(row.action, row.outcome) for row in asked.rows] == [("peer.read", "deny")]


def test_two_questions_about_nothing_are_one_refusal(world: World) -> None:
    asked = session(AGENT)
    with pytest.raises(NotFound):
        world.access.authorize_with(asked, "peer.read", "peer.see_content", Missing("Peer", "-"))
    assert [(row.action, row.outcome) for row in asked.rows] == [("peer.read", "deny")]


@pytest.mark.parametrize("caller", [AGENT, OWNER])
@pytest.mark.parametrize("pause", [Pause(), Pause(reading=True)])
def test_two_questions_at_once_are_answered_as_one_by_one(world: World, caller: Caller, pause: Pause) -> None:
    world.change_peer(pause=pause)
    together, apart = session(caller), session(caller)
    _, also = world.access.authorize_with(together, "peer.predict", "peer.see_content", world.peer)
    world.access.authorize(apart, "peer.predict", world.peer)
    assert world.access.ask(apart, "peer.see_content", world.peer).allowed == also
    assert [row.policies for row in together.rows][:1] == [apart.rows[0].policies]


def test_a_proposal_is_refused_with_its_reason(world: World) -> None:
    with pytest.raises(Forbidden, match="Only an agent asks for an approval"):
        world.access.authorize_proposal(session(OWNER), "approval.request", a_proposal())


# -- questions for another


def test_a_question_for_another_principal_says_who_asked(world: World) -> None:
    asked = session(OWNER)
    for_agent = world.access.ask(asked, "peer.see_content", world.peer, principal=AGENT)
    for_self = world.access.ask(asked, "peer.see_content", world.peer, principal=caller("owner"))
    assert (for_agent.allowed, for_agent.reason, for_self.allowed) == (True, None, True)
    assert [row.details.get("asked_by") for row in asked.rows] == ['Human::"owner"', None]
    assert [(row.principal_type, row.principal_id) for row in asked.rows] == [("Agent", "agent"), ("Human", "owner")]
    assert asked.rows == [for_agent.row, for_self.row]


def test_a_question_that_is_denied_does_not_raise(world: World) -> None:
    ruling = world.access.ask(session(agent_caller("other")), "peer.read", world.peer)
    assert (ruling.allowed, ruling.reason and ruling.reason.policy_id) == (False, "guardrails/observers")
    by_default = world.access.ask(session(caller("auditor")), "peer.list", world.org)
    assert (by_default.allowed, by_default.reason) == (False, None)


# -- the grant


def test_an_audit_event_is_about_the_grant_and_names_its_decision(world: World) -> None:
    asked = session(OWNER)
    grant = world.access.authorize(asked, "peer.read", world.peer)
    event = grant.audit("peer.touched", {"count": 2})
    assert event == LogRow(
        kind="audit",
        id=event.id,
        at=NOW,
        org_id=HOME,
        principal_type="Human",
        principal_id="owner",
        action="peer.touched",
        resource_type="Peer",
        resource_id="peer",
        outcome=None,
        deny_kind=None,
        policies=(),
        bundle=grant.decision.bundle,
        data_version=grant.decision.data_version,
        slices=(),
        request_id="request",
        details={"count": 2, "decision_id": grant.decision.id, "request_id": "request"},
    )
    other = grant.audit("peer.touched", {}, resource=caller("member").uid)
    assert (other.resource_type, other.resource_id) == ("Human", "member")


def test_a_session_forgets_only_what_is_in_the_log(world: World) -> None:
    asked = session(OWNER)
    world.access.ask(asked, "peer.read", world.peer)
    written = tuple(asked.rows)
    world.access.ask(asked, "peer.list", world.org)
    asked.written(written)
    assert [row.action for row in asked.rows] == ["peer.list"]


def test_only_the_door_makes_a_grant() -> None:
    makers = set()
    for file in sorted((ROOT / "gateway").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if called == Grant.__name__:
                    makers.add(str(file.relative_to(ROOT)))
    assert makers == {"gateway/access/door.py", "gateway/access/rows.py"}


# -- no word of a person in the evidence


CANARY = "canary"


def test_no_name_address_recipient_or_text_is_in_the_log_or_in_its_slices(gateway: Gateway) -> None:
    rules = {"rules": [{"action_type": "refund.create", "mode": "allow", "summary_template": "canary {{recipient}}"}]}
    agent = gateway.agent(f"{CANARY} agent", rules)
    human = gateway.human("member", email=f"{CANARY}@sample.example")
    peer = gateway.peer(human, [agent])
    ref = done(
        gateway.owner.post("/v1/peers", {"peer_type": "external", "peer_ref": f"{CANARY}-ref", "display_name": CANARY}), 201
    )
    _use(gateway, agent, peer, ref["peer"])
    rows = gateway.services.database.read_sync(lambda rows: rows.all("SELECT * FROM log"))
    bodies = gateway.services.database.read_sync(lambda rows: rows.all("SELECT body FROM slices"))
    assert len(rows) > 20
    assert [row for row in (*rows, *bodies) if CANARY in repr(row).lower()] == []


def _use(gateway: Gateway, agent: Client, *peers: dict[str, Any]) -> None:
    """Say the word wherever one can be said."""
    payload = {"amount_usd": "5", "recipient": f"{CANARY}@canary.example", "note": CANARY}
    content = {"action": "refund.create", "decision": "approved", "payload": payload}
    wish = {"action": "refund.create", "target_type": CANARY, "target_id": CANARY, "summary": CANARY, "reason": CANARY}
    asked = done(agent.post("/v1/approvals/request", {**wish, "payload": payload}), 202)
    gateway.owner.post(
        f"/v1/approvals/{asked['id']}/decide",
        {"decision": "approve", "reason": CANARY},
        {"X-Auth-Confirm": gateway.owner.password},
    )
    for peer in peers:
        path = f"/v1/peers/{peer['id']}"
        for client in (agent, gateway.owner, gateway.other_owner, gateway.security):
            client.post(f"{path}/events", {"event_type": "approval", "content": content})
            client.post(f"{path}/events", {"event_type": "message", "content": {"text": CANARY}})
            client.get(path)
            client.get(f"{path}/context")
            client.post(
                f"{path}/predict-approval", {"action_type": "refund.create", "effective_risk_tier": 1, "payload": payload}
            )
            client.patch(
                f"{path}/facts",
                {"fact_key": f"approval_tendency:refund.create|0-10|new|{CANARY}", "fact_value": {"text": CANARY}},
            )
        gateway.owner.post(f"{path}/facts/{CANARY}/dispute", {"reason": CANARY})
