"""While a function of a worker or verifier runs, the span of its attempt is the current one: what the libraries it uses
trace hangs below it, in whatever process and thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from opentelemetry.context import attach, detach
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)

from dagbok.agents.tracing.ids import attempt_span_id, trace_id
from dagbok.agents.tracing.sampler import Sampler
from dagbok.events.envelope import Dispatch
from dagbok.events.traceparent import Parent, read_traceparent


class AttemptSpans:
    """Makes the span of a dispatched attempt current, as a parent in another process: it is the owner that sends it.

    Of a run that is not sampled, what hangs below is not either, as long as its sampler asks the parent. Where the
    owner's word came with the dispatch, that counts: its variables may say something else than those here."""

    def __init__(self) -> None:
        self._sampled: Callable[[int], bool] = Sampler().sampled

    def around(self, dispatch: Dispatch) -> AbstractContextManager[None]:
        """For the time of the function."""
        span = self._span(dispatch)
        flags = TraceFlags(TraceFlags.SAMPLED if span.sampled else TraceFlags.DEFAULT)
        return _current(SpanContext(span.trace_id, span.span_id, is_remote=True, trace_flags=flags))

    def traceparent(self, dispatch: Dispatch) -> str:
        """The header of what is sent about the attempt."""
        return self._span(dispatch).told()

    def _span(self, dispatch: Dispatch) -> Parent:
        if isinstance(dispatch.traceparent, str) and (found := read_traceparent(dispatch.traceparent)) is not None:
            return found
        trace = trace_id(dispatch.run)
        span = attempt_span_id(dispatch.run, dispatch.task, dispatch.epoch)
        return Parent(trace, span, self._sampled(trace))


def of_caller() -> str | None:
    """The header of what is sent from here."""
    span = get_current_span().get_span_context()
    return Parent(span.trace_id, span.span_id, span.trace_flags.sampled).told() if span.is_valid else None


@contextmanager
def _current(span: SpanContext) -> Iterator[None]:
    token = attach(set_span_in_context(NonRecordingSpan(span)))
    try:
        yield
    finally:
        detach(token)
