"""While a function of a worker or verifier runs, the span of its attempt is the current one: what the libraries it uses
trace hangs below it, in whatever process and thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from opentelemetry.context import attach, detach
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from dagbok.agents.tracing.ids import attempt_span_id, trace_id
from dagbok.agents.tracing.sampler import Sampler
from dagbok.events.envelope import Dispatch


class AttemptSpans:
    """Makes the span of a dispatched attempt current, as a parent in another process: it is the owner that sends it.

    Of a run that is not sampled, what hangs below is not either, as long as its sampler asks the parent."""

    def __init__(self) -> None:
        self._sampled: Callable[[int], bool] = Sampler().sampled

    def around(self, dispatch: Dispatch) -> AbstractContextManager[None]:
        """For the time of the function."""
        trace = trace_id(dispatch.run)
        flags = TraceFlags.SAMPLED if self._sampled(trace) else TraceFlags.DEFAULT
        span = attempt_span_id(dispatch.run, dispatch.task, dispatch.epoch)
        return _current(SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(flags)))


@contextmanager
def _current(span: SpanContext) -> Iterator[None]:
    token = attach(set_span_in_context(NonRecordingSpan(span)))
    try:
        yield
    finally:
        detach(token)
