"""The page on running it shows what is measured and logged."""

from __future__ import annotations

import json
import re
from typing import get_args

from gateway import limits, spans
from gateway.errors import LimitedBy, ShedFor
from gateway.web.app import OWN
from gateway.web.exchange import Exchange
from gateway.web.lines import as_json
from tests.builders import Gateway
from tests.docs.test_documents import FENCED, ROOT

PAGE = (ROOT / "docs" / "operate.md").read_text("utf-8")


def test_the_metrics_are_those_that_there_are(gateway: Gateway) -> None:
    told = gateway.auditor.get("/metrics").text
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", told, re.MULTILINE))
    said = [(name, kinds[name], text) for name, text in re.findall(r"^# HELP (\S+) (.*)$", told, re.MULTILINE)]
    assert re.findall(r"^\| `(peergate_\w+)` \| (\w+) \| (.*) \|$", PAGE, re.MULTILINE) == said


def test_the_operations_of_the_process_are_all_there() -> None:
    paths = re.findall(r"^\| `GET (/\S+)` \|", PAGE, re.MULTILINE)
    assert sorted(paths) == sorted(operation.path for operation in OWN)


def test_every_limit_cause_and_span_has_its_word() -> None:
    words = set(re.findall(r"`([a-z]+)`", PAGE))
    assert {*get_args(LimitedBy), *get_args(ShedFor), *get_args(spans.Name)} - words == set()


def test_the_line_is_one_that_is_written() -> None:
    [shown] = [json.loads(block) for kind, block in FENCED.findall(PAGE) if kind == "json"]
    assert list(shown) == list(json.loads(as_json(Exchange("r-1", 0.0, 0.0), 200, 0.001)))


def test_the_figures_are_the_limits() -> None:
    assert f"{limits.CONCURRENT_REQUESTS} requests are under way" in PAGE
    assert f"Past {limits.CONNECTIONS:,} connections" in PAGE
    assert f"past {limits.TURNED_AWAY} that are being told so" in PAGE
    assert f"over {limits.GUESSES_PER_MINUTE} wrong passwords" in PAGE
    assert limits.TURN_SECONDS == 0.5
