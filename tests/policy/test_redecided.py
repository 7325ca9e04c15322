"""The log under two bundles: what is told apart is what the new one changes, whatever was recorded."""

from __future__ import annotations

from dataclasses import replace

from gateway.model.recorded import RecordedPage
from gateway.policy.bundle import Bundle
from gateway.policy.cases import from_json, run_case
from gateway.policy.prove import claim
from gateway.policy.redecided import Redecided, Redeciding
from gateway.policy.schema import Question
from tests.policy.test_replay import asked, page_of
from tests.world import World, caller, session, shipped

AGENT = Question("peer.read", "Agent", "Peer")
LATE = '@id("late") forbid (principal is Agent, action == Action::"peer.read", resource) when { context.clock.minute > 660 };'


def redecided(old: Bundle, new: Bundle, only: str, *pages: RecordedPage) -> Redecided:
    redeciding = Redeciding(old, new, claim.read(old, only), {})
    for page in pages:
        redeciding.add(page)
    return redeciding.found


def late() -> RecordedPage:
    """Four decisions, two of them late, and one of another action."""
    world = World()
    return page_of([*asked(world, times=2), *asked(world, times=2, later=120), *asked(world, "peer.predict")])


def test_what_is_lost_as_claimed_breaks_nothing_and_what_no_policy_changed_is_not_asked() -> None:
    found = redecided(shipped(), narrowed(), "Agent, peer.read", late())
    assert (found.decided, found.broken) == ({AGENT: 4}, None)


def test_the_first_that_is_lost_and_not_claimed_is_a_case() -> None:
    page = late()
    found = redecided(shipped(), narrowed(), "Human, peer.read", page)
    assert found.broken is not None
    assert found.broken["name"] == page.rows[2].id
    case = from_json(found.broken)
    assert run_case(shipped(), case).verdict.allowed
    assert run_case(narrowed(), case).verdict.policies == ("late",)


def test_what_is_gained_breaks_every_claim() -> None:
    page = late()
    found = redecided(narrowed(), shipped(), "peer.read", page)
    assert found.broken is not None
    assert found.broken["name"] == page.rows[2].id


def test_what_was_recorded_decides_nothing() -> None:
    page = late()
    turned = replace(page, rows=tuple(replace(row, allowed=not row.allowed, bundle="other") for row in page.rows))
    assert redecided(shipped(), narrowed(), "Agent, peer.read", turned).broken is None


def test_what_cannot_be_taken_again_is_left_out_by_why() -> None:
    page = late()
    rows = tuple(replace(row, slices=("gone",)) for row in page.rows)
    found = redecided(shipped(), narrowed(), "Agent", replace(page, rows=rows))
    assert (found.decided, found.left_out) == ({}, {"erased": 4, "not_replayable": 0, "not_by_policy": 0})


def test_a_listing_under_another_condition_is_counted_and_not_compared() -> None:
    world = World()
    made = session(caller("owner"))
    world.access.plan(made, "memory.search", world.state.agents["agent"])
    text = '@id("less") forbid (principal is Human, action == Action::"memory.search", resource) when { resource.expired };'
    found = redecided(shipped(), with_text(text), "Agent", page_of(made.rows, planned="Memory"))
    kind = Question("memory.search", "Human", "Memory")
    assert (found.decided, found.listings, found.broken) == ({kind: 1}, {kind: 1}, None)


def narrowed() -> Bundle:
    return with_text(LATE)


def with_text(text: str) -> Bundle:
    return shipped().extended({"more.cedar": text})
