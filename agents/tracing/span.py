"""A finished span, before it is told in the words of any exporter."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dagbok.events.traceparent import Parent

AttributeValue = str | int | float | bool
Attributes = Mapping[str, AttributeValue]

MAX_NOTES = 64
"""Events of one span; what happens after them is only counted."""


class Note(msgspec.Struct, frozen=True, gc=False):
    """An event on a span. Times are log time, milliseconds since 1970."""

    name: str
    at_ms: int
    attributes: dict[str, AttributeValue] = {}


class Span(msgspec.Struct, frozen=True, gc=False):
    """`parent_id` is none for the first part of a run alone. `error`: why it did not do what it was for; its type is
    the attribute `error.type`. `links`: ids of other spans of the trace; `remote`: spans of any trace."""

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    start_ms: int
    end_ms: int
    attributes: dict[str, AttributeValue]
    notes: tuple[Note, ...] = ()
    error: str | None = None
    links: tuple[int, ...] = ()
    remote: tuple[Parent, ...] = ()
