"""Decides what the passing of time means: deadlines of the state, and processes that are surely gone."""

from __future__ import annotations

from collections.abc import Iterator

from dagbok.agents.scheduler.decide.budget import charged
from dagbok.agents.scheduler.decide.cause import By
from dagbok.agents.scheduler.decide.guards import known_task, open_run, present_attempt
from dagbok.agents.scheduler.decide.proceed import proceed
from dagbok.agents.scheduler.decide.retry import after_loss, retry_work
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run.commands import FireTimer, ReportGone
from dagbok.events.run.events import AttemptFailed, AttemptLost, Event
from dagbok.events.run.values import Failure
from dagbok.projections.task_graph.state import RunState, TaskNode


def fire(run: RunState, command: FireTimer, by: By) -> Iterator[Event]:
    """The deadline is checked again here: by log time, on the state as it is now."""
    if command.kind == "wall":
        return _end_wall_time(run, by)
    if command.kind == "backoff":
        return _end_backoff(run, command, by)
    return _end_lease(run, command, by) if command.kind == "lease" else _time_out(run, command, by)


def report_gone(run: RunState, command: ReportGone, by: By) -> Iterator[Event]:
    """Everything the process had claimed in this run is lost, now."""
    open_run(run)
    held = [node for task in run.active if _held_by(node := run.tasks[task], command.process)]
    if not held:
        raise Refused(Code.STALE_ATTEMPT, f"process {command.process} holds no attempt of run {run.run}")
    for node in held:
        kind = node.attempt.kind if node.attempt else "work"
        yield AttemptLost(node.id, node.epoch, "process_gone", charged(node.attempt))
        yield from after_loss(run, node, kind)
    yield from proceed(run, by.now_ms)


def _end_lease(run: RunState, command: FireTimer, by: By) -> Iterator[Event]:
    node, attempt = present_attempt(run, command.task, command.epoch, by)
    if attempt.claim is None:
        raise Refused(Code.STALE_ATTEMPT, f"attempt {command.epoch} of task {node.id} is not claimed")
    _check_due(attempt.lease_until_ms, by)
    yield AttemptLost(node.id, command.epoch, "lease_expired", charged(attempt))
    yield from after_loss(run, node, attempt.kind)
    yield from proceed(run, by.now_ms)


def _time_out(run: RunState, command: FireTimer, by: By) -> Iterator[Event]:
    node, attempt = present_attempt(run, command.task, command.epoch, by)
    if attempt.timeout_at_ms is None:
        raise Refused(Code.STALE_ATTEMPT, f"attempt {command.epoch} of task {node.id} has no timeout running")
    _check_due(attempt.timeout_at_ms, by)
    reason = f"took longer than {node.spec.timeout_ms} ms"
    failure = Failure("retryable", Code.TIMEOUT, "", reason)
    yield AttemptFailed(node.id, command.epoch, failure, usage=charged(attempt))
    yield from retry_work(run, node, Code.TIMEOUT, reason, by)


def _end_backoff(run: RunState, command: FireTimer, by: By) -> Iterator[Event]:
    open_run(run)
    node = known_task(run, command.task)
    if node.status != "backoff" or node.epoch != command.epoch:
        raise Refused(Code.STALE_ATTEMPT, f"task {node.id} does not wait for a backoff")
    _check_due(node.due_ms, by)
    if run.status == "paused":
        raise Refused(Code.RUN_PAUSED, f"run {run.run} is paused")
    if len(run.active) >= run.limits.max_open:
        raise Refused(Code.NOT_DUE, f"run {run.run} has {len(run.active)} open attempts; task {node.id} is next")
    events = proceed(run, by.now_ms)
    first = next(events, None)
    if first is None:
        raise Refused(Code.NOT_DUE, f"run {run.run} is {run.status} and opens nothing now; task {node.id} waits")
    yield first
    yield from events


def _end_wall_time(run: RunState, by: By) -> Iterator[Event]:
    """Everything stops, and goes on when the limit is raised."""
    open_run(run)
    limit_ms = run.limits.max_wall_ms
    if limit_ms is None or run.status == "blocked":
        raise Refused(Code.STALE_ATTEMPT, f"no wall time of run {run.run} is running")
    _check_due(run.started_ms + limit_ms, by)
    if run.status == "paused":
        raise Refused(Code.RUN_PAUSED, f"run {run.run} is paused")
    yield from proceed(run, by.now_ms)


def _check_due(deadline_ms: int, by: By) -> None:
    if by.now_ms < deadline_ms:
        raise Refused(Code.NOT_DUE, f"the deadline {deadline_ms} is {deadline_ms - by.now_ms} ms after {by.now_ms}")


def _held_by(node: TaskNode, process: str) -> bool:
    attempt = node.attempt
    return attempt is not None and attempt.claim is not None and attempt.claim.process == process
