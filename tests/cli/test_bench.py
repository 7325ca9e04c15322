"""`peergate bench`: every figure can be measured and says what it must say. What it comes to is no matter of a test."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import bench
from gateway.cli.bench.catalogue import CATALOGUE
from gateway.cli.bench.clients import choose, send
from gateway.cli.bench.figure import Figure, Plan, at_least, at_most
from gateway.cli.bench.load import Request
from gateway.cli.bench.process import listening
from gateway.cli.bench.rounds import Timed, alternate
from gateway.cli.exits import DONE, FINDING, USAGE, CommandError
from gateway.cli.output import Progress
from gateway.wiring import create_data

FIGURES = {
    "decision": ["decision", "decision-anew"],
    "context": ["context", "context-durable"],
    "rules": ["rules"],
    "rules-http": ["rules-http"],
    "observers": ["observers", "observers-anew"],
    "start": ["start", "start-memory"],
    "derive": ["derive", "derive-dirty"],
    "memory": [
        "memory-plan",
        "memory-plan-kept",
        "memory-keyword",
        "memory-semantic",
        "memory-decided-again",
        "memory-hidden",
        "memory-insert",
    ],
    "policies": [
        "policies-partition-1000",
        "policies-partition-5000",
        "policies-reload",
        "policies-reload-failed",
        "policies-replay",
        "policies-shadow",
    ],
    "authzen": ["authzen-batch", "authzen-single", "authzen-http-batch", "authzen-properties"],
    "overload": ["overload-memory", "overload-statuses", "overload-recovery"],
    "kill": ["kill"],
}
MEMBERS = {"name", "what", "unit", "value", "must", "aim", "ratio", "met", "aim_met", "measured"}
WITHOUT_RATIO = {"kill", "overload-statuses", "memory-hidden", "memory-insert", "policies-reload-failed", "policies-replay"}


def run(*arguments: str) -> int:
    """The command alone, as the whole command line runs it."""
    parser = argparse.ArgumentParser()
    bench.add_command(parser.add_subparsers())
    given = parser.parse_args(["bench", *arguments])
    code: int = given.run(given)
    return code


@pytest.fixture
def bare_server(tmp_path: Path) -> Any:
    create_data(tmp_path / "data")
    return listening(["gateway.cli.bench.bare_server", str(tmp_path / "data"), "100"])


@pytest.mark.parametrize("name", FIGURES)
def test_a_quick_run_reports_every_member_of_every_figure(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(name, "--quick", "--clients", "own", "--json")
    said = json.loads(capsys.readouterr().out)
    figures = said["figures"]
    assert (said["rounds"], said["quick"]) == (5, True)
    assert [figure["name"] for figure in figures] == FIGURES[name]
    for figure in figures:
        assert set(figure) == MEMBERS
        assert figure["measured"]
        assert (figure["ratio"] is None) is (figure["name"] in WITHOUT_RATIO)
        assert figure["ratio"] is None or figure["ratio"] > 0
        assert (figure["met"] == "reported") is (figure["must"] is None)
        assert (figure["aim_met"] is None) is (figure["aim"] is None)
    assert code == (DONE if all(figure["met"] for figure in figures) else FINDING)


def test_a_killed_process_has_lost_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("kill", "--quick", "--json") == DONE
    (figure,) = json.loads(capsys.readouterr().out)["figures"]
    assert (figure["value"], figure["measured"]["lost"], figure["measured"]["chain_valid"]) == (0, 0, True)


def test_the_catalogue_holds_what_can_be_asked_for() -> None:
    assert tuple(CATALOGUE) == bench.NAMES == tuple(FIGURES)


def test_the_table_names_each_figure_and_says_that_a_quick_run_means_little(capsys: pytest.CaptureFixture[str]) -> None:
    run("rules", "--quick", "--clients", "own")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "VALUE", "MUST", "AIM", "MET", "RATIO"]
    assert lines[1].split()[0] == "rules"
    assert lines[-1].startswith("quick: ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing"], "`nothing` cannot be measured; known are decision, "),
        (["kill", "--rounds", "4"], "`--rounds` must be at least 5, got `4`"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_runs(arguments: list[str], sentence: str) -> None:
    with pytest.raises(CommandError) as refused:
        run(*arguments)
    assert str(refused.value).startswith(sentence)
    assert refused.value.code == USAGE


def test_clients_are_chosen_by_what_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose(None) == choose("own") == "own"
    with pytest.raises(CommandError, match="there is no `wrk` on the path"):
        choose("wrk")
    (tmp_path / "wrk").touch(mode=0o700)
    assert (choose(None), choose("wrk"), choose("own")) == ("wrk", "wrk", "own")


def test_a_child_is_gone_when_its_block_ends(bare_server: Any) -> None:
    with bare_server as server:
        assert server.resident_bytes() is None or server.resident_bytes() > 0
        os.kill(server.process_id, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(server.process_id, 0)


def test_a_child_that_does_not_start_is_an_error_with_its_own_words(tmp_path: Path) -> None:
    command = ["gateway.cli.bench.bare_server", str(tmp_path / "nothing"), "100"]
    with pytest.raises(CommandError, match=r"bare_server .* did not start: "), listening(command):
        pass


def test_a_load_counts_whole_answers(bare_server: Any) -> None:
    with bare_server as server:
        load = send("own", server.url, [Request("/", "key")], 0.2)
    assert load.answers > 0
    assert 0 < load.p50_ms <= load.p99_ms


def test_a_load_ends_at_an_answer_that_is_no_success(bare_server: Any) -> None:
    with bare_server as server, pytest.raises(CommandError, match=r"HTTP/1\.1 404"):
        send("own", server.url, [Request("/nowhere", "key")], 5)


def test_a_quick_plan_divides_sizes_but_keeps_what_is_needed() -> None:
    assert [Plan().size(1_000), Plan(quick=True).size(1_000), Plan(quick=True).size(10, least=3)] == [1_000, 20, 3]


@pytest.mark.parametrize(
    ("value", "must", "met"),
    [(2, at_most(2), True), (2.1, at_most(2), False), (2, at_least(2), True), (1.9, at_least(2), False), (9, None, "reported")],
)
def test_a_figure_is_met_up_to_its_bound(value: float, must: Any, met: object) -> None:
    assert Figure("name", "what", "x", value, {}, must=must).met == met


def test_passes_run_in_turn_and_their_ratio_is_that_of_the_medians() -> None:
    ran: list[str] = []
    alternate(2, [lambda: ran.append("a"), lambda: ran.append("b")], times=2, each=1, shown=Progress(""))
    assert "".join(ran) == "ab" + "abba" + "abba"
    slow, fast = Timed((4.0, 2.0, 9.0)), Timed((2.0, 2.0, 1.0))
    assert (slow.over(fast), slow.spread_over(fast)) == (2.0, [1.0, 9.0])
