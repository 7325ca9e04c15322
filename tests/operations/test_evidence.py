"""Taking evidence: who reads what was written, and what waits in memory meanwhile."""

from __future__ import annotations

import asyncio
import os
import stat
from functools import partial
from pathlib import Path

import pytest

from gateway.model.caller import OPERATOR
from gateway.model.grant import Session
from gateway.operations import evidence
from gateway.operations.evidence import take_evidence
from gateway.store import replaying
from gateway.store.entities import Installation
from tests.builders import START, Gateway
from tests.operations.busy import busy


def test_nobody_else_enters_the_directory_whatever_the_process_hands_down(gateway: Gateway, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        asyncio.run(take_evidence(gateway.services, tmp_path / "out", since=None))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700


def test_no_case_waits_in_memory_for_those_of_the_next_page(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "PAGE", 40)
    busy(gateway)
    out, steps = tmp_path / "out", []

    def step(text: str) -> None:
        if text.endswith("decisions"):
            cases = [line for path in out.glob("decisions/*/tests-*.json") for line in path.read_text().splitlines()]
            steps.append((text, f"{sum(line.startswith('{') for line in cases)} decisions"))

    made = asyncio.run(take_evidence(gateway.services, out, since=None, progress=step))
    assert len(steps) > 2
    assert [text for text, _ in steps] == [found for _, found in steps]
    grant = gateway.services.access.authorize(Session(OPERATOR, "r", START), "admin.take_evidence", Installation())
    read = partial(replaying.recorded, grant=grant, after=0, since=None, limit=100_000)
    answers = [row for row in gateway.services.database.read_sync(read).rows if row.seq <= made["head"]["seq"]]
    assert steps[-1][0] == f"{made['cases']} decisions"
    assert made["cases"] + sum(made["left_out"].values()) == len(answers)
