"""Spans from commits: `SpanFold.apply` remembers what begins, and gives the span of what ends.

It reads nothing but commits, in the order of the log and each run from its start; so whoever applies the same ones gets
equal spans, before a crash or after it. The events are in `events/run/events.py`; what each means for spans stands in
`of_runs.py`, `of_tasks.py` and `of_attempts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dagbok.agents.tracing import of_attempts, of_runs, of_tasks
from dagbok.agents.tracing.ids import trace_id
from dagbok.agents.tracing.open_spans import OpenRun
from dagbok.agents.tracing.span import Span
from dagbok.events.commit import Seal
from dagbok.events.run import events as e
from dagbok.events.run.commands import CLIENT_COMMANDS
from dagbok.events.traceparent import read_traceparent

Sampled = Callable[[int], bool]
"""Whether the trace of this id is wanted."""


MAX_CALLERS = 16
"""Of one part of a run: a run that is blocked may be reopened again and again."""


def always(trace_id: int) -> bool:
    """Every trace is wanted."""
    return True


class SpanFold:
    """The open spans of all runs that are traced. A run is traced from its start until it is closed."""

    def __init__(self, sampled: Sampled = always) -> None:
        self._sampled = sampled
        self.runs: dict[str, OpenRun] = {}

    def concerns(self, seal: Seal) -> bool:
        """Whether the events of a commit may matter; if not, they need not be decoded."""
        return seal.stream in self.runs or (seal.stream is not None and seal.command_type in CLIENT_COMMANDS)

    def lacks(self, seal: Seal, events: Sequence[e.Event]) -> bool:
        """Whether a run that was closed goes on: what is known of it must be folded again before `apply`."""
        return seal.stream not in self.runs and any(isinstance(event, e.RunReopened) for event in events)

    def apply(
        self, seal: Seal, events: Sequence[e.Event], *, traceparent: str | None = None, keep_failed: bool = False
    ) -> Iterator[Span]:
        """The spans that end with this commit. To be used up: what is not taken is not folded.

        `traceparent`: of the commit. A failed run may be reopened; with `keep_failed` it is remembered until then."""
        stream = seal.stream
        run = None if stream is None else self.runs.get(stream)
        for event in events:
            if stream is not None and isinstance(event, e.RunStarted):
                run = self._started(stream, seal)
                _asked(run, traceparent)
            fold = _FOLDS.get(type(event))
            if run is None or fold is None:
                continue
            yield from fold(run, event, seal.now_ms)
            if isinstance(event, e.RunReopened):
                _asked(run, traceparent)
            if stream is not None and (
                isinstance(event, of_runs.FINAL) or (isinstance(event, e.RunFailed) and not keep_failed)
            ):
                self.runs.pop(stream, None)
                run = None

    def _started(self, stream: str, seal: Seal) -> OpenRun | None:
        id = stream.removeprefix("run:")
        trace = trace_id(id)
        if not self._sampled(trace):
            return None
        run = OpenRun(id, seal.tenant, seal.project, trace, seal.now_ms)
        self.runs[stream] = run
        return run


def _asked(run: OpenRun | None, traceparent: str | None) -> None:
    """Somebody asked for the part of the run that begins or goes on, perhaps within a span of theirs; an attempt of the
    run itself is nobody to be linked to."""
    caller = read_traceparent(traceparent)
    if run is None or caller is None or caller.trace_id == run.trace_id or len(run.callers) >= MAX_CALLERS:
        return
    run.callers = (*run.callers, caller)


# Each takes the event type of its key; a mapping cannot say so, hence the one Any.
_FOLDS: dict[type[e.Event], Callable[[OpenRun, Any, int], Iterable[Span]]] = {
    e.RunPaused: of_runs.paused,
    e.RunResumed: of_runs.resumed,
    e.RunBlocked: of_runs.blocked,
    e.RunReopened: of_runs.reopened,
    e.LimitsSet: of_runs.limits_set,
    e.RunAmended: of_runs.amended,
    e.RunSucceeded: of_runs.succeeded,
    e.RunFailed: of_runs.failed,
    e.RunCancelled: of_runs.cancelled,
    e.TasksAdded: of_tasks.added,
    e.TaskVerified: of_tasks.verified,
    e.TaskSkipped: of_tasks.skipped,
    e.TaskCancelled: of_tasks.cancelled,
    e.TaskSuperseded: of_tasks.superseded,
    e.TaskFailed: of_tasks.failed,
    e.TaskRetried: of_tasks.retried,
    e.TaskBackedOff: of_tasks.backed_off,
    e.TaskBlocked: of_attempts.blocked,
    e.TaskUnblocked: of_tasks.unblocked,
    e.AttemptOpened: of_attempts.opened,
    e.AttemptStarted: of_attempts.started,
    e.AttemptUnserved: of_attempts.unserved,
    e.AttemptReleased: of_attempts.released,
    e.AttemptClosed: of_attempts.closed,
    e.AttemptLost: of_attempts.lost,
    e.AttemptFailed: of_attempts.failed,
    e.CandidateSubmitted: of_attempts.candidate,
    e.DecompositionProposed: of_attempts.proposed,
    e.DecompositionAccepted: of_attempts.accepted,
    e.DecompositionRefused: of_attempts.refused,
    e.VerdictRecorded: of_attempts.judged,
}
