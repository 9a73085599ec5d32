"""Spans of tasks: what each event about a task means for them."""

from __future__ import annotations

from collections.abc import Iterator

from dagbok.agents.tracing.finish import finish_attempt, finish_task
from dagbok.agents.tracing.ids import task_span_id
from dagbok.agents.tracing.open_spans import EndedTask, OpenRun, OpenTask, note
from dagbok.agents.tracing.span import Span
from dagbok.events.run import events as e


def added(run: OpenRun, event: e.TasksAdded, now_ms: int) -> tuple[Span, ...]:
    """Their spans begin."""
    run.task_count += len(event.tasks)
    for entry in event.tasks:
        spec, old = entry.spec, entry.supersedes
        run.tasks[spec.id] = OpenTask(
            created_by=entry.created_by,
            worker=spec.worker,
            verifier=spec.verifier,
            start_ms=now_ms,
            supersedes=None if old is None else task_span_id(run.run, old),
        )
    return ()


def verified(run: OpenRun, event: e.TaskVerified, now_ms: int) -> Iterator[Span]:
    """The end of the span."""
    yield from end(run, event.task, now_ms, "verified")


def skipped(run: OpenRun, event: e.TaskSkipped, now_ms: int) -> Iterator[Span]:
    """The end of the span."""
    yield from end(run, event.task, now_ms, "skipped")


def cancelled(run: OpenRun, event: e.TaskCancelled, now_ms: int) -> Iterator[Span]:
    """The end of the span."""
    task = run.tasks.get(event.task)
    if task is not None:
        note(task, "task.cancelled", now_ms, cause=event.cause, reason=event.reason)
    yield from end(run, event.task, now_ms, "cancelled")


def superseded(run: OpenRun, event: e.TaskSuperseded, now_ms: int) -> Iterator[Span]:
    """The end of the span; that of the replacement has a link to it."""
    task = run.tasks.get(event.task)
    if task is not None:
        note(task, "task.superseded", now_ms, replacement=event.replacement)
    yield from end(run, event.task, now_ms, "superseded")


def failed(run: OpenRun, event: e.TaskFailed, now_ms: int) -> Iterator[Span]:
    """The end of the span, with its error."""
    yield from end(run, event.task, now_ms, "failed", code=event.code, error=event.reason, goes_on=True)


def retried(run: OpenRun, event: e.TaskRetried, now_ms: int) -> tuple[Span, ...]:
    """The next part of its life begins."""
    ended = run.ended.pop(event.task, None)
    if ended is not None:
        task = run.tasks[event.task] = ended.again(now_ms)
        note(task, "task.retried", now_ms, note=event.note)
    return ()


def backed_off(run: OpenRun, event: e.TaskBackedOff, now_ms: int) -> tuple[Span, ...]:
    """An event on the span."""
    task = run.tasks.get(event.task)
    if task is not None:
        note(task, "task.backed_off", now_ms, due_ms=event.due_ms, failures=event.failures, review=event.review)
    return ()


def unblocked(run: OpenRun, event: e.TaskUnblocked, now_ms: int) -> tuple[Span, ...]:
    """An event on the span."""
    task = run.tasks.get(event.task)
    if task is not None:
        note(task, "task.unblocked", now_ms, note=event.note)
    return ()


def end(
    run: OpenRun,
    id: str,
    now_ms: int,
    status: str,
    *,
    code: str = "",
    error: str | None = None,
    goes_on: bool = False,
) -> Iterator[Span]:
    """The span of a task, behind that of an attempt that is still open. `goes_on`: it may, so it is remembered."""
    task = run.tasks.pop(id, None)
    if task is None:
        run.ended.pop(id, None)  # its span has ended before; now it is final
        return
    if task.attempt is not None:
        yield finish_attempt(run, id, task, task.attempt, now_ms, "closed")
        task.attempt = None
    if goes_on:
        run.ended[id] = EndedTask(task.created_by, task.worker, task.verifier, task.part, open=not code)
    yield finish_task(run, id, task, now_ms, status, code=code, error=error)
