"""A recorded decision laid out: what of it is found again, and why it is not; whatever became of what was recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.model.decision import DenyKind
from gateway.model.entity import EntityUid
from gateway.model.recorded import RecordedPage
from gateway.policy import laid
from gateway.policy.context import Context
from gateway.policy.evidence import Cases
from gateway.policy.laid import Laid, Laying, lay_out
from gateway.policy.replay import Replay
from gateway.policy.retake import retake
from gateway.policy.slice import SliceError, from_texts
from gateway.policy.value import ValueRefused
from tests.policy.test_replay import asked, page_of
from tests.remote import a_memory_grant, a_remote_connection
from tests.world import World, caller, session, shipped

CONTEXTS: list[Any] = [
    [],
    "now",
    None,
    {},
    {"now": None},
    {"now": "then"},
    {"now": "2026-03-04T10:00:00"},
    {"now": "0001-01-01T00:00:00+23:59"},
    {"now": "2026-03-04T10:00:00Z", "clock": None},
    {"now": "2026-03-04T10:00:00Z", "clock": 1.5},
    {"now": "2026-03-04T10:00:00Z", "clock": []},
    {"now": "2026-03-04T10:00:00Z", "clock": {"__entity": 1}},
]
TEXTS = [
    "",
    "{",
    "1",
    "null",
    "{}",
    "[1]",
    "[[]]",
    "[" * 100_000,
    '[{"uid":{"type":"Org","id":"x"}}]',
    '[{"uid":{"type":[],"id":"x"},"attrs":{},"parents":[],"tags":{}}]',
    '[{"uid":"x","attrs":{},"parents":[],"tags":{}}]',
    '[{"uid":{"type":"Org","id":"x"},"attrs":[],"parents":[],"tags":{}}]',
    '[{"uid":{"type":"Org","id":"x"},"attrs":{},"parents":{},"tags":{}}]',
    '[{"uid":{"type":"Org","id":"x"},"attrs":{},"parents":[1],"tags":{}}]',
    '[{"uid":{"type":"Org","id":"x"},"attrs":{},"parents":[{"type":"Org","id":[]}],"tags":{}}]',
    '[{"uid":{"type":"Org","id":"x"},"attrs":{},"parents":[],"tags":null}]',
]


def one(**changes: Any) -> RecordedPage:
    return page_of(asked(World()), **changes)


def searched() -> RecordedPage:
    """A listing of a remote agent that holds one grant."""
    world = World()
    world.state.put_remote_connection(a_remote_connection())
    world.state.put_memory_grant(a_memory_grant(actions=("read",)))
    made = session(caller("partner", "Connection"))
    world.access.plan(made, "memory.search", world.state.agents["agent"])
    return page_of(made.rows, planned="Memory")


@pytest.mark.parametrize("shown", CONTEXTS, ids=str)
def test_what_is_no_context_is_refused_as_one(shown: Any) -> None:
    with pytest.raises(ValueRefused):
        Context.from_record(shown)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_that_is_not_of_entities_is_refused_as_such(text: str) -> None:
    with pytest.raises(SliceError):
        from_texts(shipped(), [text], salt=b"")


def test_a_decision_is_laid_out_with_what_was_asked() -> None:
    page = one()
    [row] = page.rows
    found = lay_out(shipped(), row, page.bodies, {})
    assert isinstance(found, Laid)
    assert (found.query.principal, found.query.action, found.query.resource) == (row.principal, row.action, row.resource)
    assert (found.context.text, found.slice.text, found.grants) == (
        '{"clock":{"date":"2026-03-04","minute":600,"weekday":3},'
        '"now":{"__extn":{"arg":"2026-03-04T10:00:00.000Z","fn":"datetime"}}}',
        page.bodies[row.slices[0]],
        (),
    )


def test_the_grants_of_a_remote_agent_are_those_that_it_held() -> None:
    page, grant = searched(), a_memory_grant(actions=("read",))
    [row] = page.rows
    found = lay_out(shipped(), row, page.bodies, {grant.id: grant, "other": replace(grant, id="other")})
    assert isinstance(found, Laid)
    assert found.grants == (grant,)
    assert lay_out(shipped(), row, page.bodies, {}) == "grant_unknown"
    # Of anything but rows, and of anybody else, were it one of the same id, no grant decides.
    for asked_otherwise in (replace(row, planned=None), replace(row, principal=EntityUid("Agent", "partner"))):
        found = lay_out(shipped(), asked_otherwise, page.bodies, {})
        assert isinstance(found, Laid)
        assert found.grants == ()


def test_what_cannot_be_laid_out_says_why() -> None:
    page = one()
    [row], bodies = page.rows, page.bodies
    spoiled = {hash_: body.replace('"archived"', '"filed"') for hash_, body in bodies.items()}
    memory = EntityUid("Memory", "m")
    assert lay_out(shipped(), replace(row, readable=False), bodies, {}) == "unreadable"
    assert lay_out(shipped(), replace(row, deny_kind=DenyKind.STALE), bodies, {}) == "withdrawn"
    assert lay_out(shipped(), replace(row, deny_kind=DenyKind.DEADLINE), bodies, {}) == "withdrawn"
    assert lay_out(shipped(), replace(row, context=None), bodies, {}) == "not_recorded"
    assert lay_out(shipped(), replace(row, slices=()), bodies, {}) == "not_recorded"
    assert lay_out(shipped(), replace(row, context={"now": "then"}), bodies, {}) == "unreadable"
    assert lay_out(shipped(), row, {}, {}) == "erased"
    assert lay_out(shipped(), replace(row, resource=memory), {}, {}) == "erased"
    assert lay_out(shipped(), replace(row, resource=memory, allowed=False), {}, {}) == "never_kept"
    assert lay_out(shipped(), row, spoiled, {}) == "other_schema"


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_entities_end_a_replay_an_explanation_or_evidence(text: str) -> None:
    page = one()
    [row] = page.rows
    whole = replace(page, rows=(replace(row, slices=("x",)), row), bodies={**page.bodies, "x": text})
    replay = Replay(shipped(), {}, {}, lambda _: None)
    replay.add(whole)
    assert (replay.report().not_replayable, replay.report().same) == (1, 1)
    assert retake(shipped(), whole.rows[0], whole.bodies, {}) == "other_schema"
    cases = Cases({}, lambda _: shipped())
    assert [case["name"] for _, case in cases.of(whole)] == [row.id]
    assert cases.left_out == {"other_schema": 1}


@pytest.mark.parametrize("shown", [{"now": "then"}, {"now": "2026-03-04T10:00:00Z", "clock": []}, {"now": []}], ids=str)
def test_no_context_ends_a_replay_an_explanation_or_evidence(shown: Any) -> None:
    page = one()
    [row] = page.rows
    whole = replace(page, rows=(replace(row, context=shown), row))
    replay = Replay(shipped(), {}, {}, lambda _: None)
    replay.add(whole)
    assert (replay.report().not_replayable, replay.report().same) == (1, 1)
    assert retake(shipped(), whole.rows[0], whole.bodies, {}) == "unreadable"
    cases = Cases({}, lambda _: shipped())
    assert [case["name"] for _, case in cases.of(whole)] == [row.id]
    assert cases.left_out == {"unreadable": 1}


def test_an_action_that_the_schema_does_not_have_is_no_case() -> None:
    cases = Cases({}, lambda _: shipped())
    assert list(cases.of(one(action="forged"))) == []
    assert cases.left_out == {"other_schema": 1}


def test_the_context_of_a_case_is_the_one_that_was_asked() -> None:
    [(_, case)] = Cases({}, lambda _: shipped()).of(one())
    assert json.loads(json.dumps(case["request"]))["context"]["clock"]["minute"] == 600  # type: ignore[call-overload]  # a record


def test_no_more_is_kept_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laid, "KEPT", 2)
    page = one()
    [row] = page.rows
    laying = Laying(shipped(), {})
    bodies = {str(n): page.bodies[row.slices[0]] for n in range(5)}
    for number in range(5):
        found = laying.lay_out(replace(row, slices=(str(number),)), bodies)
        assert isinstance(found, Laid)
    # What is kept is not looked up again; what is not, is.
    outcomes = [laying.lay_out(replace(row, slices=(str(n),)), {}) for n in range(5)]
    assert [isinstance(found, Laid) for found in outcomes] == [False, False, False, True, True]
