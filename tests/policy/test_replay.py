"""Replay: recorded decisions taken again, one page after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from gateway.errors import Forbidden
from gateway.model.entity import EntityUid
from gateway.model.evidence import LogRow
from gateway.model.grant import Session
from gateway.model.recorded import Recorded, RecordedPage
from gateway.policy import evidence
from gateway.policy import replay as replay_
from gateway.policy.bundle import Bundle
from gateway.policy.evidence import Cases
from gateway.policy.replay import SAMPLES, Replay, Report
from tests.world import NOW, World, agent_caller, bundle_of, caller, session, shipped

MORNING = '@id("morning") @reason("Early.") permit (principal, action, resource) when { context.clock.minute < 660 };'
ERRING = (
    '@id("erring") @reason("Errs.") permit (principal, action, resource) when { 9223372036854775807 + context.clock.minute > 0 };'
)


def asked(world: World, action: str = "peer.read", agent: str = "agent", times: int = 1, later: int = 0) -> list[LogRow]:
    """The records of one question, asked some times."""
    rows: list[LogRow] = []
    for _ in range(times):
        made: Session = session(agent_caller(agent), NOW + timedelta(minutes=later))
        try:
            world.access.authorize(made, action, world.peer)
        except Forbidden:
            pass
        rows += made.rows
    return rows


def page_of(rows: Iterable[LogRow], **changes: Any) -> RecordedPage:
    answers, bodies = [], {}
    for seq, row in enumerate(rows, start=1):
        bodies |= row.slice_bodies
        answers.append(
            Recorded(
                id=row.id,
                seq=seq,
                at=row.at,
                org_id=row.org_id,
                principal=EntityUid(row.principal_type, row.principal_id),
                action=row.action,
                resource=EntityUid(row.resource_type, row.resource_id),
                allowed=row.outcome == "allow",
                deny_kind=row.deny_kind,
                policies=row.policies,
                errors=(),
                bundle=row.bundle,
                slices=row.slices,
                context=row.details["context"],  # type: ignore[arg-type]  # a record
                planned=None,
            )
        )
    return RecordedPage(tuple([replace(answer, **changes) for answer in answers]), bodies, None)


def replayed(candidate: Bundle, *pages: RecordedPage, own: dict[str, Bundle] | None = None) -> Report:
    replay = Replay(candidate, own or {}, {}, lambda _: None)
    for page in pages:
        replay.add(page)
    return replay.report()


def test_a_page_ends_between_two_calls_and_what_was_decided_until_then_is_reported() -> None:
    world = World()
    rows = [*asked(world, times=2), *asked(world, action="peer.read_context")]
    left = iter([None] * (len(rows) + 1))

    def between() -> None:
        if next(left, left) is left:
            raise TimeoutError

    replay = Replay(shipped(), {}, {}, lambda _: None, between=between)
    replay.add(page_of(rows[:2], planned="Memory"))
    with pytest.raises(TimeoutError):
        replay.add(page_of(rows))
    assert replay.report().decided == 2
    assert replayed(shipped(), page_of(rows)).decided == 3


def test_the_same_question_at_two_times_is_two_where_a_policy_reads_the_clock() -> None:
    world = World()
    rows = [*asked(world, later=0), *asked(world, later=120)]  # 10:00 and 12:00
    report = replayed(bundle_of(MORNING), page_of(rows))
    assert (report.decided, report.same, report.loses) == (2, 1, 1)
    [flip] = report.flips
    assert (flip.change, flip.before, flip.now, flip.samples) == ("loses", ("peer/read/observer",), (), (rows[1].id,))


def test_a_line_counts_all_and_names_the_first() -> None:
    rows = asked(World(), times=SAMPLES + 3)
    [flip] = replayed(bundle_of(MORNING.replace("660", "0")), page_of(rows)).flips
    assert (flip.count, flip.samples) == (SAMPLES + 3, tuple(row.id for row in rows[:SAMPLES]))


def test_what_a_page_held_is_known_to_the_next() -> None:
    rows = asked(World(), times=2)
    first, second = page_of(rows[:1]), page_of(rows[1:])
    assert replayed(shipped(), first, replace(second, bodies={})).same == 2
    assert replayed(shipped(), replace(second, bodies={}), first).erased == 1


def test_an_answer_that_comes_about_otherwise_is_the_same_and_counted() -> None:
    rows = asked(World())
    report = replayed(bundle_of(MORNING), page_of(rows))
    assert (report.same, report.other_policies, report.opens) == (1, 1, False)
    assert replayed(bundle_of(MORNING), page_of(rows, policies=None)).other_policies == 0


def test_a_candidate_that_errs_lets_nobody_in() -> None:
    report = replayed(bundle_of(MORNING, ERRING), page_of(asked(World())))
    assert (report.loses, report.gains) == (1, 0)


def test_an_organisation_with_policies_of_its_own_is_decided_by_them() -> None:
    [row] = asked(World(), agent="other")
    assert row.outcome == "deny"
    page = page_of([row])
    assert replayed(shipped(), page, own={"elsewhere": bundle_of(MORNING)}).gains == 0
    assert replayed(shipped(), page, own={"home": bundle_of(MORNING)}).gains == 1


def test_entities_that_do_not_fit_the_schema_any_more_are_not_decided() -> None:
    page = page_of(asked(World()))
    spoiled = {hash_: body.replace('"archived"', '"filed"') for hash_, body in page.bodies.items()}
    report = replayed(shipped(), replace(page, bodies=spoiled))
    assert (report.decided, report.not_replayable) == (0, 1)


def test_an_entity_that_is_missing_from_what_was_kept_never_lets_anybody_in() -> None:
    page = page_of(asked(World()))
    [(hash_, body)] = page.bodies.items()
    start = body.index('{"attrs":{},"parents":[],"tags":{},"uid":{"id":"peer","type":"Observers"}}')
    end = body.index("}}", start + 60) + 2
    without = body[:start] + body[end:].removeprefix(",")
    report = replayed(bundle_of(MORNING), replace(page, bodies={hash_: without.replace(",]", "]")}))
    assert (report.decided, report.loses) == (1, 1)


def test_a_record_without_a_context_is_not_decided() -> None:
    page = page_of(asked(World()))
    for context in (None, {}, {"now": "then"}, {"now": 1, "clock": {}}):
        assert replayed(shipped(), page_of(asked(World()), context=context)).not_replayable == 1
    assert replayed(shipped(), page).same == 1


def test_listings_of_policies_that_are_not_known_any_more_are_not_compared() -> None:
    world = World()
    made = session(caller("owner"))
    world.access.plan(made, "memory.search", world.state.agents["agent"])
    page = page_of(made.rows, planned="Memory", bundle="forgotten")
    assert replayed(shipped(), page).not_replayable == 1
    assert replayed(shipped(), page_of(made.rows, planned="Memory")).same == 1


def test_no_more_answers_are_kept_than_is_said_and_all_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_, "ANSWERS", 2)
    world = World()
    rows = [row for minute in (0, 90, 0, 120, 90) for row in asked(world, later=minute, times=2)]
    replay = Replay(bundle_of(MORNING), {}, {}, lambda _: None)
    for _ in range(2):
        for start in range(0, len(rows), 2):
            replay.add(page_of(rows[start : start + 2]))
            assert 0 < len(replay._verdicts) <= 2
    assert (replay.report().same, replay.report().loses) == (8, 12)


def _read(read: list[str], bundle_hash: str) -> Bundle:
    read.append(bundle_hash)
    return shipped()


def test_the_engine_that_was_asked_longest_ago_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    made = session(caller("owner"))
    world.access.plan(made, "memory.search", world.state.agents["agent"])
    [row] = page_of(made.rows, planned="Memory").rows
    page = page_of(made.rows)
    for most, expected in ((1, ["a", "b", "a"]), (2, ["a", "b"])):
        monkeypatch.setattr(replay_, "ENGINES", most)
        read: list[str] = []
        replay = Replay(shipped(), {}, {}, partial(_read, read))
        replay.add(replace(page, rows=tuple(replace(row, bundle=hash_) for hash_ in "aba")))
        assert (read, replay.report().same) == (expected, 3)


def test_the_bundle_that_was_asked_longest_ago_is_read_again_for_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of(asked(World()))
    [row] = page.rows
    for most, expected in ((1, ["a", "b", "a"]), (2, ["a", "b"])):
        monkeypatch.setattr(evidence, "BUNDLES", most)
        read: list[str] = []
        cases = Cases({}, partial(_read, read))
        assert len(list(cases.of(replace(page, rows=tuple(replace(row, bundle=hash_) for hash_ in "aba"))))) == 3
        assert read == expected
