"""What the commands about an organisation's own policies print: counts in the table, and below it who is concerned."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.cli.command import Asked
from gateway.cli.own_policy_answers import replay_ends, show_policy, show_report, show_step

ASKED = Asked({}, lambda path, **query: None)
NOBODY: dict[str, Any] = {"count": 0, "principals": [], "decision_ids": []}
POLICY = {"id": "p1", "cedar_text": "permit (\n  principal, action, resource\n);\n", "policy_text": "the same", "note": None}


def test_a_policy_is_shown_with_its_lines_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    show_policy(POLICY, ASKED)
    assert capsys.readouterr().out == "id    p1\nnote  -\n\npermit (\n  principal, action, resource\n);\n"


def test_a_step_says_whether_the_policy_decides_and_whatever_else_the_gateway_says(capsys: pytest.CaptureFixture[str]) -> None:
    for mode, sentence in (("shadow", "in the shadow: it is asked"), ("enforce", "in force: whatever is asked")):
        show_step({**POLICY, "enforcement_status": mode, "note": "its permits open nothing"}, ASKED)
        fields, said = capsys.readouterr().out.rstrip().rsplit("\n", 1)
        assert fields == f"id                  p1\nnote                its permits open nothing\nenforcement_status  {mode}"
        assert said.startswith(sentence)


def test_a_report_counts_by_policy_and_names_who_gains_and_who_loses(capsys: pytest.CaptureFixture[str]) -> None:
    loses = {"count": 3, "principals": [{"type": "Agent", "id": "a1", "count": 2}], "decision_ids": ["d1", "d2"]}
    gains = {"count": 1, "principals": [{"type": "Human", "id": "h1", "count": 1}], "decision_ids": ["d3"]}
    row = {"name": "hours", "version": 2, "since": "2026-03-04T10:00:00Z", "listings": 0}
    rows = [{**row, "policy_id": "p1", "gain": gains, "lose": loses}, {**row, "policy_id": "p2", "gain": NOBODY, "lose": NOBODY}]
    waiting = {"bundle": "4e46", "since": "2026-03-04T11:00:00Z", "listings": 5, "gain": NOBODY, "lose": loses}
    show_report({"asked": 9, "failures": 1, "policies": rows, "directory": waiting}, ASKED)
    assert capsys.readouterr().out.splitlines() == [
        "POLICY_ID  NAME   VERSION  SINCE                 GAIN  LOSE  LISTINGS",
        "p1         hours  2        2026-03-04T10:00:00Z  1     3     0",
        "p2         hours  2        2026-03-04T10:00:00Z  0     0     0",
        "Human h1 gains 1 by hours",
        "  such as decision d3",
        "Agent a1 loses 2 by hours",
        "  such as decision d1, d2",
        "the directory that waits: 4e46, since 2026-03-04T11:00:00Z",
        "  gain 0, lose 3, listings 5; `peergate admin reload --promote` with that hash lets it decide",
        "Agent a1 loses 2 by the directory",
        "  such as decision d1, d2",
        "9 decisions were asked a second time, 1 of them without an answer",
    ]


def test_a_report_without_anything_in_the_shadow_names_no_directory(capsys: pytest.CaptureFixture[str]) -> None:
    show_report({"asked": 1, "failures": 0, "policies": [], "directory": None}, ASKED)
    assert capsys.readouterr().out.splitlines()[1:] == ["1 decision was asked a second time, 0 of them without an answer"]


def test_a_trial_under_which_somebody_gains_ends_as_a_replay_does() -> None:
    assert (replay_ends({"opens": True}, ASKED), replay_ends({"opens": False}, ASKED)) == (3, 0)
