"""Folds of the events that settle a task for now: backed off, blocked, unblocked, failed, started again,
cancelled."""

from __future__ import annotations

from heapq import heappush

from dagbok.events.run import events as e
from dagbok.events.run.amounts import plus
from dagbok.projections.task_graph.attempts import problem_at
from dagbok.projections.task_graph.nodes import (
    ask_review,
    drop_stale,
    drop_task,
    end_attempt,
    give_up,
    make_ready,
    set_status,
)
from dagbok.projections.task_graph.state import At, RunState

REVIEW_AGAIN = frozenset(("verifier_error", "verifier_unavailable", "poison"))
"""Codes of a block that leaves the candidate as it is: resolving it asks the verifier again, not the worker."""


def task_backed_off(run: RunState, event: e.TaskBackedOff, at: At) -> None:
    """The next attempt opens at `due_ms`; a review keeps what it is about."""
    node = run.tasks[event.task]
    if event.review:
        run.reviews.remove(node.id)
        run.resting[node.id] = None
    else:
        node.staged = None
    node.due_ms = event.due_ms
    set_status(run, node, "backoff")
    heappush(run.backoffs, (event.due_ms, node.order, node.id))
    drop_stale(run)


def task_blocked(run: RunState, event: e.TaskBlocked, at: At) -> None:
    """Waits for a person."""
    node = run.tasks[event.task]
    if node.attempt is not None:
        end_attempt(run, node, at)
        run.spent = plus(run.spent, event.usage)
        node.problem = problem_at(at, event.code, event.reason)
    if event.code not in REVIEW_AGAIN:
        node.staged = None
    give_up(run, node, "blocked")
    run.blocked[node.id] = str(event.code)


def task_unblocked(run: RunState, event: e.TaskUnblocked, at: At) -> None:
    """Runs again, or is reviewed again when its candidate is still staged."""
    node = run.tasks[event.task]
    code = run.blocked.pop(node.id)
    node.note = problem_at(at, code, event.note) if event.note else None
    node.verifier_errors = node.lost = 0
    if node.staged is not None:
        ask_review(run, node)
    else:
        make_ready(run, node)


def task_retried(run: RunState, event: e.TaskRetried, at: At) -> None:
    """As if it had never been tried, but that its worker is told what went wrong before."""
    node = run.tasks[event.task]
    code = run.failed.pop(node.id)
    node.note = problem_at(at, code, event.note) if event.note else None
    node.failures = node.lost = node.verifier_errors = node.conflicts = 0
    make_ready(run, node)


def task_cancelled(run: RunState, event: e.TaskCancelled, at: At) -> None:
    """Final; what waits for it waits for a task that takes its place."""
    node = run.tasks[event.task]
    drop_task(run, node, "cancelled")
    run.graph_offset = at.offset
    if event.cause == "requested":
        run.cancelled[node.id] = "task_cancelled"


def task_failed(run: RunState, event: e.TaskFailed, at: At) -> None:
    """Closed; a command may start it again."""
    node = run.tasks[event.task]
    node.staged = None
    give_up(run, node, "failed")
    run.failed[node.id] = str(event.code)
