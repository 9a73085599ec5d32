"""Spans of runs: what each event about a run as a whole means for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dagbok.agents.tracing.finish import finish_run
from dagbok.agents.tracing.of_tasks import end
from dagbok.agents.tracing.open_spans import OpenRun, note
from dagbok.agents.tracing.span import Span
from dagbok.events.run import events as e

FINAL: Final = (e.RunSucceeded, e.RunCancelled)
"""Behind these nothing of the run follows."""


def paused(run: OpenRun, event: e.RunPaused, now_ms: int) -> tuple[Span, ...]:
    """An event on the span."""
    note(run, "run.paused", now_ms, reason=event.reason)
    return ()


def resumed(run: OpenRun, event: e.RunResumed, now_ms: int) -> tuple[Span, ...]:
    """An event on the span."""
    note(run, "run.resumed", now_ms, reason=event.reason)
    return ()


def blocked(run: OpenRun, event: e.RunBlocked, now_ms: int) -> tuple[Span, ...]:
    """An event on the span: the run waits, but is not over."""
    note(run, "run.blocked", now_ms, code=event.code, tasks=len(event.tasks))
    return ()


def reopened(run: OpenRun, event: e.RunReopened, now_ms: int) -> tuple[Span, ...]:
    """Behind a block an event. Behind a failure the next part of the run and of all its open tasks begins, since the
    spans of those before have ended."""
    if run.closed:
        run.closed = False
        run.part, run.start_ms, run.notes, run.unnoted, run.callers = run.part + 1, now_ms, (), 0, ()
        for id in [id for id, task in run.ended.items() if task.open]:
            run.tasks[id] = run.ended.pop(id).again(now_ms)
    note(run, "run.reopened", now_ms, reason=event.reason)
    return ()


def limits_set(run: OpenRun, event: e.LimitsSet, now_ms: int) -> tuple[Span, ...]:
    """An event on the span."""
    note(run, "run.limits_set", now_ms)
    return ()


def amended(run: OpenRun, event: e.RunAmended, now_ms: int) -> tuple[Span, ...]:
    """An event on the span."""
    note(run, "run.amended", now_ms, reason=event.reason)
    return ()


def succeeded(run: OpenRun, event: e.RunSucceeded, now_ms: int) -> Iterator[Span]:
    """The end of the span; tasks that nobody waits for any more end with it."""
    yield from _end_open(run, now_ms, "open")
    yield finish_run(run, now_ms, "succeeded")


def failed(run: OpenRun, event: e.RunFailed, now_ms: int) -> Iterator[Span]:
    """The end of the span and of those of all open tasks: perhaps nobody ever reopens it."""
    yield from _end_open(run, now_ms, "open")
    run.closed = True
    yield finish_run(run, now_ms, "failed", code=event.code, error=", ".join(event.tasks[:3]))


def cancelled(run: OpenRun, event: e.RunCancelled, now_ms: int) -> Iterator[Span]:
    """The end of the span and of those of all open tasks."""
    yield from _end_open(run, now_ms, "cancelled")
    if event.reason:
        note(run, "run.cancelled", now_ms, reason=event.reason)
    yield finish_run(run, now_ms, "cancelled")


def _end_open(run: OpenRun, now_ms: int, status: str) -> Iterator[Span]:
    for id in list(run.tasks):
        yield from end(run, id, now_ms, status, goes_on=True)
