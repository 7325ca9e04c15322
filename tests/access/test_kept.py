"""What the door keeps between questions, and that nothing outlives what it was made of."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.access import questions
from gateway.errors import NotFound
from gateway.model.records import Pause
from gateway.store.entities import Missing
from tests.access.asked import AGENT, MEMBER, OWNER, reads
from tests.world import HOUR, NOW, TICK, World, a_connection, a_human, a_peer, an_approval, session


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


def test_a_clock_that_is_set_back_into_a_pause_finds_it_again(world: World) -> None:
    world.change_peer(pause=Pause(reading=True, until=NOW + HOUR))
    after, again = session(AGENT), session(AGENT)
    after.now, again.now = NOW + HOUR, NOW + HOUR - timedelta(seconds=30)
    assert world.access.ask(after, "peer.see_content", world.peer).allowed
    assert not world.access.ask(again, "peer.see_content", world.peer).allowed
