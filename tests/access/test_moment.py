"""The moment of a question: the clock of an organisation, and pauses."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway import moment
from gateway.model.decision import DenyKind
from gateway.model.records import OrgSettings, Pause
from tests.access.asked import AGENT, OWNER, reads
from tests.world import NOW, PERMIT_ALL, World, agent_caller, bundle_of, caller, session


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
