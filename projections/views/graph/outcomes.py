"""Rows of the events that settle a task for now: backed off, blocked, unblocked, failed, started again, cancelled."""

from __future__ import annotations

from dagbok.events.run import events as e
from dagbok.projections.task_graph.outcomes import REVIEW_AGAIN
from dagbok.projections.views.graph.memory import At, RunMemory
from dagbok.projections.views.graph.moves import drop_staged, drop_task, end


def task_backed_off(run: RunMemory, event: e.TaskBackedOff, at: At) -> None:
    """The next attempt opens at `due_ms`; a review keeps what it is about."""
    row = run.task(event.task)
    if not event.review:
        drop_staged(row)
    run.set_status(row, "backoff")
    row.due_ms = event.due_ms


def task_blocked(run: RunMemory, event: e.TaskBlocked, at: At) -> None:
    """Waits for a person. With an attempt still open, this is the outcome of its worker."""
    row = run.task(event.task)
    if row.open_kind is not None:
        process = None if event.claim is None else event.claim.process
        said = {"code": event.code, "message": event.reason, "process": process}
        end(run, row, at, row.epoch, "failed", outcome="blocked", usage=event.usage, **said)
    if event.code not in REVIEW_AGAIN:
        drop_staged(row)
    row.code, row.reason = event.code, event.reason
    run.set_status(row, "blocked")


def task_unblocked(run: RunMemory, event: e.TaskUnblocked, at: At) -> None:
    """Runs again, or is reviewed again when its candidate is still staged."""
    row = run.task(event.task)
    row.verifier_errors = row.lost = 0
    row.code = row.reason = None
    run.set_status(row, "ready" if row.staged is None else "verifying")


def task_failed(run: RunMemory, event: e.TaskFailed, at: At) -> None:
    """Closed; a command may start it again."""
    row = run.task(event.task)
    drop_staged(row)
    row.code, row.reason = event.code, event.reason
    row.closed_ms = at.now_ms
    run.set_status(row, "failed")


def task_retried(run: RunMemory, event: e.TaskRetried, at: At) -> None:
    """As if it had never been tried."""
    row = run.task(event.task)
    row.failures = row.lost = row.verifier_errors = 0
    row.code = row.reason = row.closed_ms = None
    run.set_status(row, "ready")


def task_cancelled(run: RunMemory, event: e.TaskCancelled, at: At) -> None:
    """Final. The cause stands where other tasks have the code of what went wrong. What it had submitted ends as open
    attempts of the branch do: by the code with which those are closed."""
    row = run.task(event.task)
    code = "task_cancelled" if event.cause == "requested" else event.cause
    drop_task(run, row, "cancelled", "task_superseded" if event.cause == "parent_superseded" else "task_cancelled", at)
    row.code, row.reason = code, event.reason or None
