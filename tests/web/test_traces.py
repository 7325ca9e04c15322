"""What a trace of a request holds: its parts by name, and nothing of anybody's."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway import spans
from gateway.config import ConfigError, Settings
from gateway.web.traces import maker, traced
from tests.builders import Gateway, done


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans.install(maker(provider))
    yield exporter
    spans.install(None)


def shape(found: Sequence[ReadableSpan]) -> list[tuple[str, str | None, dict[str, object]]]:
    """Each span in the order of its start: its name, the name of the one around it, and its attributes."""
    names = {span.context.span_id: span.name for span in found if span.context is not None}
    return [
        (span.name, names[span.parent.span_id] if span.parent else None, dict(span.attributes or {}))
        for span in sorted(found, key=lambda span: span.start_time or 0)
    ]


def test_a_read_is_one_span_with_its_parts_inside(gateway: Gateway, exported: InMemorySpanExporter) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    exported.clear()
    done(agent.get(f"/v1/peers/{peer['id']}"), 200)
    found = shape(exported.get_finished_spans())
    allowed = {"peergate.action": "peer.read", "peergate.decision": "allow", "peergate.deny_kind": ""}
    assert found[0] == ("request", None, {"peergate.operation": "peer.read", "peergate.status": 200})
    assert ("decide", "request", allowed) in found
    assert [(name, around) for name, around, _ in found[1:4]] == [
        ("authenticate", "request"),
        ("entities", "request"),
        ("decide", "request"),
    ]
    assert {name for name, _, _ in found} == set(get_args(spans.Name))
    assert {around for _, around, _ in found[1:]} == {"request"}


def test_a_refusal_says_why_in_one_word_and_no_exception_is_recorded(gateway: Gateway, exported: InMemorySpanExporter) -> None:
    stranger, peer = gateway.agent(), gateway.peer(observers=[])
    exported.clear()
    done(stranger.get(f"/v1/peers/{peer['id']}"), 403)
    found = exported.get_finished_spans()
    denied = {"peergate.action": "peer.read", "peergate.decision": "deny", "peergate.deny_kind": "forbidden"}
    assert denied in [dict(span.attributes or {}) for span in found]
    assert [(span.name, span.events, span.status.description) for span in found if span.events] == []
    exported.clear()
    done(gateway.http.get("/v1/peers"), 401)
    assert shape(exported.get_finished_spans()) == [
        ("request", None, {"peergate.operation": "peer.list", "peergate.status": 401}),
        ("authenticate", "request", {"error.type": "Unauthenticated"}),
    ]


def test_it_is_on_with_the_setting_and_off_again_after(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing listens there, and nothing is waited for.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with traced(Settings(data=Path(), traces="otel")):
        assert spans._make is not None
    assert spans._make is None
    with traced(Settings(data=Path())):
        assert spans._make is None


def test_without_the_extra_the_setting_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError, match=r"pip install 'peergate\[otel\]'"), traced(Settings(data=Path(), traces="otel")):
        pass
