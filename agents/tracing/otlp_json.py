"""Spans as a value in the JSON form of OTLP, which collectors read from files; needs nothing that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from dagbok.agents.tracing.span import Attributes, AttributeValue, Note, Span
from dagbok.events.canonical import Json

INTERNAL, ERROR = 1, 2
"""Numbers of a span kind and of a status."""


def otlp_json(spans: Sequence[Span]) -> Json:
    """A `TracesData`: ids are hex, times are nanoseconds as text."""
    scope: Json = {"name": "dagbok", "version": version("dagbok")}
    told: Json = {"scope": scope, "spans": [_span(span) for span in spans]}
    resource: Json = {"attributes": _pairs({"service.name": "dagbok"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [told]}]}


def _span(span: Span) -> Json:
    told: dict[str, Json] = {
        "traceId": f"{span.trace_id:032x}",
        "spanId": f"{span.span_id:016x}",
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": _nanoseconds(span.start_ms),
        "endTimeUnixNano": _nanoseconds(span.end_ms),
        "attributes": _pairs(span.attributes),
    }
    if span.parent_id is not None:
        told["parentSpanId"] = f"{span.parent_id:016x}"
    if span.notes:
        told["events"] = [_event(note) for note in span.notes]
    linked = [*[(span.trace_id, link) for link in span.links], *[(link.trace_id, link.span_id) for link in span.remote]]
    if linked:
        told["links"] = [{"traceId": f"{trace:032x}", "spanId": f"{id:016x}"} for trace, id in linked]
    if span.error is not None:
        told["status"] = {"code": ERROR, "message": span.error}
    return told


def _event(note: Note) -> Json:
    return {"timeUnixNano": _nanoseconds(note.at_ms), "name": note.name, "attributes": _pairs(note.attributes)}


def _pairs(attributes: Attributes) -> Json:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: AttributeValue) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def _nanoseconds(ms: int) -> str:
    return f"{ms}000000"
