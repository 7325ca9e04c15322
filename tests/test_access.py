"""The one door: what it asks, what it keeps, what it records, and what it gives or raises."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway import moment
from gateway.access import questions
from gateway.errors import Forbidden, NotFound
from gateway.model.caller import Caller
from gateway.model.decision import DenyKind
from gateway.model.evidence import LogRow
from gateway.model.grant import Grant
from gateway.model.records import OrgSettings, Pause
from gateway.store.entities import Missing
from tests.builders import Client, Gateway, done
from tests.world import (
    HOME,
    HOUR,
    NOW,
    PERMIT_ALL,
    ROOT,
    TICK,
    World,
    a_connection,
    a_human,
    a_peer,
    a_proposal,
    agent_caller,
    an_agent,
    an_approval,
    bundle_of,
    caller,
    session,
)

AGENT, OWNER, MEMBER = agent_caller(), caller("owner"), caller("member")
ALLOW = {"rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "20"}]}


@pytest.fixture
def world() -> World:
    return World()


def reads(world: World, now: datetime = NOW, action: str = "peer.read") -> bool:
    """Whether the observing agent may, at some time."""
    return world.access.ask(session(AGENT, now), action, world.peer).allowed


def entities_of(row: LogRow) -> dict[str, Any]:
    """The entities that a decision was taken over, by `Type::id`."""
    bodies = [json.loads(row.slice_bodies[digest]) for digest in row.slices]
    return {f"{e['uid']['type']}::{e['uid']['id']}": e for body in bodies for e in body}


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


# -- automatic


REASONS: list[tuple[str, dict[str, Any], dict[str, Any], str | None]] = [
    ("agent.delete", {"rules": [{"action_type": "agent.delete", "mode": "approve"}]}, {}, "action_is_sensitive"),
    ("refund.create", {"default_mode": "allow"}, {"amount_usd": "900"}, "no_matching_rule"),
    (
        "refund.create",
        {"rules": [{"action_type": "refund.create", "mode": "approve"}]},
        {"amount_usd": "900"},
        "rule_requires_approval",
    ),
    ("refund.create", ALLOW, {"amount_usd": "20"}, "above_configured_threshold"),
    ("refund.create", ALLOW, {}, "above_configured_threshold"),
    (
        "refund.create",
        {"rules": [{"action_type": "refund.create", "mode": "allow"}]},
        {"amount_usd": "50"},
        "risk_tier_requires_step_up",
    ),
    ("refund.create", ALLOW, {"amount_usd": "19.9999"}, None),
]


@pytest.mark.parametrize(("action", "rules", "payload", "code"), REASONS)
def test_an_action_that_is_not_automatic_has_exactly_one_reason(
    world: World, action: str, rules: dict[str, Any], payload: dict[str, Any], code: str | None
) -> None:
    world.state.put_agent(an_agent("agent", policy=rules))
    proposal = a_proposal(action, rules=rules, **payload)
    ruling = world.access.ask_automatic(session(AGENT), proposal, principal=AGENT, person_paused=False)
    assert (ruling.allowed, ruling.reason.code if ruling.reason else None) == (code is None, code)


def test_a_pause_takes_a_yes_back_and_changes_no_other_answer(world: World) -> None:
    for action, rules, payload, code in REASONS:
        world.state.put_agent(an_agent("agent", policy=rules))
        ruling = world.access.ask_automatic(
            session(AGENT), a_proposal(action, rules=rules, **payload), principal=AGENT, person_paused=True
        )
        assert ruling.reason is not None
        assert ruling.reason.code == (code or "rule_requires_approval")


def test_nothing_from_any_history_is_in_the_question_whether_an_action_is_automatic(world: World) -> None:
    world.state.put_agent(an_agent("agent", policy=ALLOW))
    asked = session(OWNER)
    proposal = a_proposal(rules=ALLOW, amount_usd="19.99", recipient="canary@canary.example", reason="canary")
    ruling = world.access.ask_automatic(asked, proposal, principal=AGENT, person_paused=False)
    assert ruling.allowed
    org = {"__entity": {"type": "Org", "id": "home"}}
    entities = entities_of(ruling.row)
    assert {name: (entity["attrs"], entity["tags"]) for name, entity in entities.items()} == {
        "Org::home": ({}, {}),
        "Role::member": ({}, {}),
        "Human::member": ({"org": org}, {}),
        "Agent::agent": (
            {
                "org": org,
                "active": True,
                "registered_by": {"__entity": {"type": "Human", "id": "member"}},
                "approval": {"__entity": {"type": "ApprovalPolicy", "id": "agent"}},
            },
            {},
        ),
        "ApprovalPolicy::agent": (
            {"default_mode": "approve"},
            {"refund.create": {"__entity": {"type": "ApprovalRule", "id": "agent/refund.create"}}},
        ),
        "ApprovalRule::agent/refund.create": (
            {"mode": "allow", "require_for_amount_above_usd": {"__extn": {"fn": "decimal", "arg": "20.0000"}}},
            {},
        ),
        "ProposedAction::refund.create": (
            {
                "org": org,
                "action_type": "refund.create",
                "amount_usd": {"__extn": {"fn": "decimal", "arg": "19.9900"}},
                "risk_tier": 1,
                "sensitive": False,
                "platform_made": False,
                "asked_always": False,
                "person_paused": False,
            },
            {},
        ),
    }
    text = json.dumps([list(ruling.row.slice_bodies.values()), ruling.row.details])
    words = (
        "canary",
        "likelihood",
        "confidence",
        "fact",
        "histor",
        "approved",
        "rejected",
        "observ",
        "recipient",
        "known",
        "bucket",
    )
    assert [word for word in words if word in text] == []
    assert ruling.row.details == {
        "context": {"now": "2026-03-04T10:00:00Z", "clock": {"minute": 600, "weekday": 3, "date": "2026-03-04"}},
        "asked_by": 'Human::"owner"',
    }


def test_a_known_recipient_reaches_the_question_as_a_tier_and_as_nothing_else(world: World) -> None:
    rows = []
    for known in (True, False):
        proposal = a_proposal(known=known, declared=2, recipient="canary@canary.example")
        rows.append(world.access.ask_automatic(session(AGENT), proposal, principal=AGENT, person_paused=False).row)
    assert rows[0].slice_bodies == rows[1].slice_bodies


# -- what it keeps


def test_a_slice_is_built_once_while_nothing_changes(world: World) -> None:
    assert [reads(world), reads(world, NOW + HOUR), reads(world, action="peer.predict")] == [True, True, True]
    assert world.engine.built == 1


def test_a_slice_is_built_again_when_the_state_has_moved_on(world: World) -> None:
    reads(world)
    world.state.put_human(a_human("newcomer"))
    reads(world)
    assert world.engine.built == 2


def test_a_removed_observer_is_refused_on_the_next_line(world: World) -> None:
    assert reads(world)
    world.observe()
    assert not reads(world)
    world.observe("agent")
    assert reads(world)


def test_a_lease_ends_exactly_at_its_end(world: World) -> None:
    world.observe("agent", until=NOW + HOUR)
    assert [reads(world), reads(world, NOW + HOUR - TICK)] == [True, True]
    assert world.engine.built == 1
    assert [reads(world, NOW + HOUR), reads(world, NOW + 2 * HOUR)] == [False, False]
    assert world.engine.built == 2


def test_a_pause_ends_exactly_at_its_end_and_begins_on_the_next_line(world: World) -> None:
    assert reads(world, action="peer.see_content")
    world.change_peer(pause=Pause(reading=True, until=NOW + HOUR))
    seen = [reads(world, NOW + after, "peer.see_content") for after in (timedelta(0), HOUR - TICK, HOUR)]
    assert seen == [False, False, True]
    assert world.engine.built == 3


def test_the_earliest_end_bounds_a_slice(world: World) -> None:
    world.observe("agent", until=NOW + 2 * HOUR)
    world.change_peer(pause=Pause(reading=True, until=NOW + HOUR))
    seen = [reads(world, NOW + hours * HOUR, "peer.see_content") for hours in (0, 1, 2)]
    assert seen == [False, True, False]


def test_an_approval_is_decided_over_as_it_was_read(world: World) -> None:
    asked = session(MEMBER)
    answers = [
        world.access.ask(asked, "approval.decide", an_approval(human=human)).allowed for human in ("member", "owner", "member")
    ]
    assert answers == [True, False, True]


def test_a_peer_as_it_would_be_is_not_taken_for_the_peer_that_is(world: World) -> None:
    world.state.put_connection(a_connection("link"))
    linked = replace(world.peer, connection_id="link")
    answers = [world.access.ask(session(OWNER), "peer.link", peer).allowed for peer in (world.peer, linked, world.peer)]
    assert answers == [False, True, False]


def test_what_was_missing_and_is_there_now_is_not_taken_for_missing(world: World) -> None:
    with pytest.raises(NotFound):
        world.access.authorize(session(OWNER), "approval.read", Missing("Approval", "approval"))
    assert world.access.authorize(session(OWNER), "approval.read", an_approval()).target == an_approval()


def test_only_so_many_slices_are_kept_and_the_least_recent_goes_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "CACHED_SLICES", 2)
    peers = [a_peer(f"peer-{n}") for n in range(3)]

    def ask(number: int) -> int:
        world.access.ask(session(MEMBER), "peer.read", peers[number])
        return world.engine.built

    assert [ask(0), ask(1), ask(0), ask(2), ask(0), ask(1)] == [1, 2, 2, 3, 3, 4]


def test_a_decision_carries_the_version_its_entities_were_compiled_under(world: World) -> None:
    before = world.access.ask(session(AGENT), "peer.read", world.peer).row.data_version
    world.observe("agent", "other")
    after = world.access.ask(session(AGENT), "peer.read", world.peer).row.data_version
    assert (before, after) == (world.state.version - 1, world.state.version)


# -- the moment


def test_an_organisation_has_its_own_clock_on_the_wall(world: World) -> None:
    world.state.put_org(replace(world.org, settings=OrgSettings(time_zone="Asia/Kathmandu")))
    moment = datetime(2026, 12, 31, 18, 59, 59, 999_999, tzinfo=UTC)
    row = world.access.ask(session(OWNER, moment), "org.read_settings", world.org).row
    assert row.details["context"] == {
        "now": "2026-12-31T18:59:00Z",
        "clock": {"minute": 44, "weekday": 5, "date": "2027-01-01"},
    }


@pytest.mark.parametrize(
    ("at", "minute"),
    [
        ("2026-03-29T00:59:59+00:00", 119),  # the last minute before clocks go forward
        ("2026-03-29T01:00:00+00:00", 180),
        ("2026-10-25T00:59:00+00:00", 179),  # the hour that comes twice
        ("2026-10-25T01:00:00+00:00", 120),
        ("2026-10-25T02:00:00+00:00", 180),
    ],
)
def test_the_clock_follows_daylight_saving(world: World, at: str, minute: int) -> None:
    world.state.put_org(replace(world.org, settings=OrgSettings(time_zone="Europe/Berlin")))
    row = world.access.ask(session(OWNER, datetime.fromisoformat(at)), "org.read_settings", world.org).row
    assert row.details["context"]["clock"]["minute"] == minute  # type: ignore[index]


def test_seconds_never_reach_a_policy(world: World) -> None:
    late = '@id("late") forbid (principal, action, resource) when { context.now > datetime("2026-03-04T10:00:00Z") };'
    world = World(bundle_of(PERMIT_ALL, late))
    assert reads(world, NOW.replace(second=59, microsecond=999_999))
    assert not reads(world, NOW.replace(minute=1, second=0, microsecond=0))


def test_only_so_many_moments_are_kept(world: World) -> None:
    for minutes in range(200):
        reads(world, NOW + timedelta(minutes=minutes))
        assert len(world.access._moments._kept) <= moment.CACHED_MOMENTS


def test_an_organisation_that_vanished_has_the_clock_of_utc_and_grants_nothing(world: World) -> None:
    gone = caller("nobody", org_id="gone")
    row = world.access.ask(session(gone), "peer.read", world.peer).row
    assert (row.org_id, row.outcome) == ("gone", "deny")
    assert row.details["context"]["clock"]["minute"] == 600  # type: ignore[index]


# -- paused


def test_a_paused_peer_is_recorded_as_paused(world: World) -> None:
    world.change_peer(pause=Pause(reading=True))
    ruling = world.access.ask(session(AGENT), "peer.see_content", world.peer)
    assert (ruling.row.deny_kind, ruling.row.policies) == (DenyKind.PAUSED.value, ("guardrails/paused_reading",))
    assert ruling.reason is not None
    assert ruling.reason.code == "paused"


def test_an_agent_that_is_not_listed_is_not_recorded_as_paused(world: World) -> None:
    world.change_peer(pause=Pause(reading=True))
    ruling = world.access.ask(session(agent_caller("other")), "peer.see_content", world.peer)
    assert (ruling.row.deny_kind, ruling.reason and ruling.reason.policy_id) == ("forbidden", "guardrails/observers")


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


def test_a_clock_that_is_set_back_into_a_pause_finds_it_again(world: World) -> None:
    world.change_peer(pause=Pause(reading=True, until=NOW + HOUR))
    after, again = session(AGENT), session(AGENT)
    after.now, again.now = NOW + HOUR, NOW + HOUR - timedelta(seconds=30)
    assert world.access.ask(after, "peer.see_content", world.peer).allowed
    assert not world.access.ask(again, "peer.see_content", world.peer).allowed
