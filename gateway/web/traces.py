"""Traces: spans of requests for OpenTelemetry, with the extra `otel`; nothing of it is imported without the setting."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from gateway import spans
from gateway.config import ConfigError, Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

#: How long the end of the process waits for a collector that does not answer.
CLOSE_SECONDS = 1.0


@contextmanager
def traced(settings: Settings) -> Iterator[None]:
    """Trace requests while the block runs, where the settings say so, as the variables `OTEL_*` of the SDK say.

    Raises:
        ConfigError: the extra is not installed.
    """
    if settings.traces == "off":
        yield
        return
    provider = _provider()
    spans.install(maker(provider))
    try:
        yield
    finally:
        spans.install(None)
        ending = threading.Thread(target=provider.shutdown, daemon=True)
        ending.start()
        ending.join(CLOSE_SECONDS)


def maker(provider: TracerProvider) -> spans.Make:
    """What makes the spans of a provider."""
    tracer = provider.get_tracer("peergate")

    def make(name: str) -> AbstractContextManager[spans.Span]:
        # What an exception says may be content, so its text and its trace are not recorded.
        return _Traced(tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False))

    return make


class _Traced:
    """A span of ours over one of theirs."""

    __slots__ = ("_around", "_span")

    def __init__(self, around: AbstractContextManager[Span]) -> None:
        self._around = around

    def __enter__(self) -> _Traced:
        self._span = self._around.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self._span.set_attribute("error.type", kind.__name__)
        self._around.__exit__(None, None, None)

    def set(self, **attributes: str | int) -> None:
        self._span.set_attributes({f"peergate.{name}": value for name, value in attributes.items()})


def _provider() -> TracerProvider:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as missing:
        raise ConfigError("`traces` is otel, and the extra is not installed: pip install 'peergate[otel]'") from missing
    os.environ.setdefault("OTEL_SERVICE_NAME", "peergate")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
