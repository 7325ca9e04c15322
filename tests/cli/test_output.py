"""What is printed: safe for a terminal, plain where there is none."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from gateway.cli.output import print_fields, print_json, print_prose, print_rows
from tests.real.process import COMMAND, ROOT, clean_environment

HOSTILE = "a\x1b[2J\x07b\u202ec\x9bd"


def test_a_table_is_aligned_and_says_what_is_absent(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"id": "1", "who": {"name": "x"}, "on": True}, {"id": "222", "who": {}, "on": None}], ["id", "who.name", "on"])
    assert capsys.readouterr().out == "ID   WHO.NAME  ON\n1    x         true\n222  -         -\n"


def test_a_long_cell_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"x": "y" * 100}], ["x"])
    assert capsys.readouterr().out == f"X\n{'y' * 59}…\n"


def test_what_an_agent_wrote_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"x": HOSTILE}], ["x"])
    print_fields({"x": HOSTILE, "nested": {"x": HOSTILE}})
    print_prose(f"first\n{HOSTILE}")
    print_json({"x": HOSTILE})
    printed = capsys.readouterr().out
    assert [c for c in printed if not c.isprintable() and c != "\n"] == []
    assert json.loads(printed[printed.index("{\n") :]) == {"x": HOSTILE}


@pytest.mark.parametrize(("no_color", "emphasis"), [(None, True), ("1", False)])
def test_emphasis_is_for_terminals_that_want_it(tmp_path: Path, no_color: str | None, emphasis: bool) -> None:
    ours, theirs = pty.openpty()
    environment = clean_environment(**({} if no_color is None else {"NO_COLOR": no_color}))
    if no_color is None:
        environment.pop("NO_COLOR", None)
    made = subprocess.run(
        [*COMMAND, "init", "--data", str(tmp_path / "data")], stdout=theirs, cwd=ROOT, env=environment, check=True
    )
    os.close(theirs)
    printed = os.read(ours, 65536).decode()
    os.close(ours)
    assert made.returncode == 0
    assert ("\x1b[1mmade\x1b[0m" in printed) is emphasis


def test_a_reader_that_has_had_enough_ends_it_quietly() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    asked = [*COMMAND, "doctor", "--port", "0"]
    ended = subprocess.run(asked, stdout=theirs, stderr=subprocess.PIPE, cwd=ROOT, env=clean_environment(), check=False)
    os.close(theirs)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_login_without_anybody_to_type_a_key_is_bad_usage() -> None:
    asked = [*COMMAND, "login", "http://127.0.0.1:9"]
    ended = subprocess.run(
        asked,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=clean_environment(),
        check=False,
        start_new_session=True,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.endswith("peergate: no key: type it, or set PEERGATE_KEY\n")
