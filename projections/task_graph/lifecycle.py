"""Folds of the events about a run as a whole."""

from __future__ import annotations

from dagbok.events.run import events as e
from dagbok.projections.task_graph.nodes import close_attempt, set_status
from dagbok.projections.task_graph.state import FINAL_TASK, At, RunState, RunStatus


def run_started(run: RunState, event: e.RunStarted, at: At) -> None:
    """The run begins to exist; its tasks follow in the same commit."""
    run.status = "running"
    run.pinned = event.pinned
    run.limits = event.limits
    run.context = event.context
    run.context_hash = event.context_hash
    run.start_digest = event.start_digest
    run.graph_digest = event.graph_digest
    run.roots = event.roots
    run.open_roots = len(event.roots)
    run.started_ms = at.now_ms
    run.started_offset = at.offset


def run_paused(run: RunState, event: e.RunPaused, at: At) -> None:
    """Nothing opens until `RunResumed`. A block is found again then, if there is still one."""
    run.status = "paused"
    run.blocked_by = ""
    run.exhausted = False


def run_resumed(run: RunState, event: e.RunResumed, at: At) -> None:
    """What waited may open again."""
    run.status = "running"


def run_cancelled(run: RunState, event: e.RunCancelled, at: At) -> None:
    """Every open task is cancelled; failed ones stay failed."""
    for node in run.tasks.values():
        if node.status != "failed" and node.status not in FINAL_TASK:
            close_attempt(run, node)
            set_status(run, node, "cancelled")
            node.staged = None
    run.ready.clear()
    run.backoffs.clear()
    run.reviews.clear()
    run.resting.clear()
    run.blocked.clear()
    _close(run, "cancelled", at)


def run_succeeded(run: RunState, event: e.RunSucceeded, at: At) -> None:
    """Final."""
    _close(run, "succeeded", at)


def run_failed(run: RunState, event: e.RunFailed, at: At) -> None:
    """Closed; a command may reopen it."""
    run.failed_by = str(event.code)
    _close(run, "failed", at)


def run_blocked(run: RunState, event: e.RunBlocked, at: At) -> None:
    """Waits for a person."""
    run.status = "blocked"
    run.blocked_by = str(event.code)
    run.exhausted = not any(task in run.blocked for task in event.tasks)


def run_reopened(run: RunState, event: e.RunReopened, at: At) -> None:
    """Goes on."""
    run.status = "running"
    run.blocked_by = run.failed_by = ""
    run.exhausted = False
    run.closed_ms = 0


def limits_set(run: RunState, event: e.LimitsSet, at: At) -> None:
    """The limits from now on."""
    run.limits = event.limits


def run_amended(run: RunState, event: e.RunAmended, at: At) -> None:
    """What the run is bound to from now on."""
    run.pinned = event.pinned


def _close(run: RunState, status: RunStatus, at: At) -> None:
    run.status = status
    run.blocked_by = ""
    run.exhausted = False
    run.closed_ms = at.now_ms
