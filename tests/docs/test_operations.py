"""`docs/operations.md` names what there is: metrics as they are exposed, alerts on them, causes, limits, fields and spans."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from gateway import limits, spans
from gateway.errors import LimitedBy, ShedFor
from gateway.operations.health import HEALTH, LIVE, READY
from gateway.web.exchange import Exchange
from gateway.web.lines import as_json
from tests.builders import Gateway
from tests.docs.test_documents import FENCED
from tests.real.process import ROOT

TEXT = (ROOT / "docs" / "operations.md").read_text("utf-8")
EXPRESSION = re.compile(r"^\s+expr: (.+)$", re.MULTILINE)
SELECTED = re.compile(r"(peergate_\w+)(?:\{([^}]*)\})?")


def rows(*head: str) -> list[list[str]]:
    """The rows of the one table with this head."""
    [block] = re.findall(rf"^\| {re.escape(' | '.join(head))} \|\n\|[- |]+\|\n((?:\|.*\|\n)+)", TEXT, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]


def block(kind: str, holding: str) -> str:
    [found] = [text for named, text in FENCED.findall(TEXT) if named == kind and holding in text]
    return str(found)


@pytest.fixture
def exposed(gateway: Gateway) -> dict[str, Metric]:
    """Every metric after some requests, by the name that it is exposed under."""
    gateway.auditor.get("/metrics")
    families = text_string_to_metric_families(gateway.auditor.get("/metrics").text)
    return {family.name + ("_total" if family.type == "counter" else ""): family for family in families}


def labels(metric: Metric) -> str:
    found = dict.fromkeys(name for sample in metric.samples for name in sample.labels if name != "le")
    return ", ".join(f"`{name}`" for name in found)


def test_the_table_of_metrics_is_what_is_exposed(exposed: dict[str, Metric]) -> None:
    shown = [[f"`{name}`", metric.type, labels(metric), metric.documentation] for name, metric in exposed.items()]
    assert rows("metric", "kind", "labels", "meaning") == shown


def test_alerts_ask_for_metrics_and_labels_that_there_are(exposed: dict[str, Metric]) -> None:
    samples = {sample.name for metric in exposed.values() for sample in metric.samples}
    values = {"cause": get_args(ShedFor), "limit": get_args(LimitedBy)}
    expressions = EXPRESSION.findall(block("yaml", "alert:"))
    selected = [found for expression in expressions for found in SELECTED.findall(expression)]
    assert len(expressions) == block("yaml", "alert:").count("- alert:") == block("yaml", "alert:").count("why:")
    assert [name for name, _ in selected if name not in samples] == []
    for name, chosen in selected:
        for label, value in re.findall(r'(\w+)="([^"]*)"', chosen):
            assert (f"`{label}`" in labels(exposed[name]), value in values[label]) == (True, True)


@pytest.mark.parametrize("name", ["peergate_store_up", "peergate_divergences_total", "peergate_shed_total"])
def test_what_must_not_go_unnoticed_has_an_alert(name: str) -> None:
    assert name in {found for found, _ in SELECTED.findall(" ".join(EXPRESSION.findall(TEXT)))}


def test_each_limit_and_each_cause_of_an_answer_has_its_row() -> None:
    assert [row[0] for row in rows("limit", "what was too much", "what to do")] == [f"`{each}`" for each in get_args(LimitedBy)]
    assert [row[0] for row in rows("cause", "what was short", "what to do")] == [f"`{each}`" for each in get_args(ShedFor)]


def test_limits_have_the_values_that_they_have() -> None:
    shown = rows("limit", "value", "over it")
    assert shown
    assert [row[:2] for row in shown] == [[row[0], f"{getattr(limits, row[0].strip('`')):,}"] for row in shown]


def test_the_line_that_is_shown_is_one_that_is_written() -> None:
    exchange = Exchange("r", queued=0.0, began=0.0)
    written, shown = (json.loads(line) for line in (as_json(exchange, 200, 0.1), block("json", '"ms"')))
    assert {name: type(value) for name, value in shown.items()} == {name: type(value) for name, value in written.items()}
    assert [row[0] for row in rows("field", "what it is")] == [f"`{name}`" for name in written]


def test_spans_and_paths_of_health_are_those_there_are() -> None:
    assert f"Spans are {', '.join(f'`{name}`' for name in get_args(spans.Name))};" in TEXT
    assert {row[0] for row in rows("path", "says", "for")} == {f"`{each.path}`" for each in (HEALTH, LIVE, READY)}
