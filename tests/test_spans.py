"""Spans without a tracer, and with one."""

from __future__ import annotations

import subprocess
import sys

from gateway import spans


class Kept:
    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *ended: object) -> None: ...

    def set(self, **attributes: object) -> None: ...


def test_without_a_tracer_every_span_is_the_same_nothing() -> None:
    with spans.span("decide") as one, spans.span("store") as other:
        one.set(decision="allow")
        assert one is other


def test_with_a_tracer_spans_are_its_own_until_it_is_taken_away() -> None:
    spans.install(Kept)
    try:
        with spans.span("decide") as made:
            assert (type(made), getattr(made, "name", "")) == (Kept, "decide")
    finally:
        spans.install(None)
    with spans.span("decide") as made:
        assert not isinstance(made, Kept)


def test_a_gateway_that_traces_nothing_imports_nothing_for_it() -> None:
    script = "import gateway.cli.main, gateway.mcp.surface, gateway.web.server, sys; print('opentelemetry.sdk' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
