"""Spans for OpenTelemetry: the only file that knows its SDK. Imported only where spans are sent (extra `otel`).

Everything is configured by the variables that OpenTelemetry defines: `OTEL_EXPORTER_OTLP_*`, `OTEL_SERVICE_NAME`,
`OTEL_RESOURCE_ATTRIBUTES`; `sampler.py` has `OTEL_TRACES_SAMPLER`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from dagbok.agents.tracing.span import Note, Span
from dagbok.events.traceparent import Parent

MS = 1_000_000
SAMPLED = TraceFlags(TraceFlags.SAMPLED)

# Its records reach whoever listens; without a listener they are no lines on the terminal of a user.
logging.getLogger("opentelemetry.exporter").addHandler(logging.NullHandler())


class OtlpExporter:
    """Sends spans to an OTLP receiver over HTTP. `endpoint` goes before the variables: the full address, with its path
    (`http://localhost:4318/v1/traces`)."""

    def __init__(self, endpoint: str | None = None) -> None:
        self._exporter = OTLPSpanExporter(endpoint=endpoint)
        self._resource = _resource()
        self._scope = InstrumentationScope("dagbok", version("dagbok"))

    def export(self, spans: Sequence[Span]) -> bool:
        """Blocks until they have arrived, or did not within `OTEL_EXPORTER_OTLP_TIMEOUT`."""
        told = [self._told(span) for span in spans]
        return self._exporter.export(told) is SpanExportResult.SUCCESS

    def stop(self) -> None:
        """Interrupts an export that waits to try again."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # as its package declares it

    def _told(self, span: Span) -> ReadableSpan:
        parent = None if span.parent_id is None else _context(span.trace_id, span.parent_id)
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace_id, span.span_id),
            parent=parent,
            resource=self._resource,
            attributes=span.attributes,
            events=[_event(note) for note in span.notes],
            links=[*[Link(_context(span.trace_id, link)) for link in span.links], *map(_remote, span.remote)],
            status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error),
            start_time=span.start_ms * MS,
            end_time=span.end_ms * MS,
            instrumentation_scope=self._scope,
        )


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=SAMPLED)


def _remote(span: Parent) -> Link:
    flags = TraceFlags(TraceFlags.SAMPLED if span.sampled else TraceFlags.DEFAULT)
    return Link(SpanContext(span.trace_id, span.span_id, is_remote=True, trace_flags=flags))


def _event(note: Note) -> Event:
    return Event(note.name, note.attributes, note.at_ms * MS)


def _resource() -> Resource:
    found = Resource.create()
    if str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: "dagbok"}))
    return found
