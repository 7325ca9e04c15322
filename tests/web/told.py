"""Everything that a gateway tells of its requests beside their answers: lines, traces and records of what went wrong."""

from __future__ import annotations

import json
import logging

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.types import ASGIApp

from gateway import spans
from gateway.web.app import Application
from gateway.web.exchange import Exchange
from gateway.web.lines import Handler, Lines, as_json, as_text, record_as_json
from gateway.web.traces import maker


class Told:
    """Keeps it from the start until the `end`."""

    def __init__(self, app: ASGIApp) -> None:
        assert isinstance(app, Application)
        self._app, self._exporter, self._written = app, InMemorySpanExporter(), list[bytes]()
        self._lines = Lines(self._written.append)
        self._handler = Handler(self._lines, record_as_json)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        spans.install(maker(provider))
        logging.getLogger().addHandler(self._handler)
        app.told = self._tell

    def texts(self) -> dict[str, str]:
        """All of it so far, as it would leave the process."""
        self._lines.flush()
        traces = "\n".join(json.dumps(json.loads(span.to_json())) for span in self._exporter.get_finished_spans())
        return {"lines": b"".join(self._written).decode(), "traces": traces}

    def end(self) -> None:
        self._app.told = None
        logging.getLogger().removeHandler(self._handler)
        spans.install(None)
        self._lines.close()

    def _tell(self, exchange: Exchange, status: int, seconds: float) -> None:
        self._lines.put(as_json(exchange, status, seconds))
        self._lines.put(as_text(exchange, status, seconds))
