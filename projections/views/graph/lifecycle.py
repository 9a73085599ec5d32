"""Rows of the events about a run as a whole."""

from __future__ import annotations

from typing import Final

import msgspec

from dagbok.events.run import events as e
from dagbok.events.run.values import Limits
from dagbok.projections.task_graph.state import FINAL_TASK, RunStatus
from dagbok.projections.views.graph.memory import At, RunMemory
from dagbok.projections.views.graph.rows import STATUSES, RunRow
from dagbok.projections.views.graph.spending import exact

CANCELLED_FROM: Final = tuple([status for status in STATUSES if status != "failed" and status not in FINAL_TASK])


def run_started(run: RunMemory, event: e.RunStarted, at: At) -> None:
    """The run begins to exist; its tasks follow in the same commit."""
    run.row = RunRow(at.tenant, at.project, run.run, "run:" + run.run, event.context.user, at.now_ms)
    run.row_is_new = True
    _limit(run.row, event.limits)
    run.roots = frozenset(event.roots)


def run_paused(run: RunMemory, event: e.RunPaused, at: At) -> None:
    """Nothing opens until `RunResumed`."""
    _set(run, "paused", reason=event.reason)


def run_resumed(run: RunMemory, event: e.RunResumed, at: At) -> None:
    """What waited may open again."""
    _set(run, "running", reason=event.reason)


def run_cancelled(run: RunMemory, event: e.RunCancelled, at: At) -> None:
    """Every open task is cancelled, in one statement when the batch is written: a cancelled run changes no more."""
    _set(run, "cancelled", reason=event.reason, closed_ms=at.now_ms)
    run.cancelled_ms = at.now_ms
    for status in CANCELLED_FROM:
        run.counts["cancelled"] += run.counts[status]
        run.counts[status] = 0


def run_succeeded(run: RunMemory, event: e.RunSucceeded, at: At) -> None:
    """Final."""
    _set(run, "succeeded", closed_ms=at.now_ms)


def run_failed(run: RunMemory, event: e.RunFailed, at: At) -> None:
    """Closed; a command may reopen it."""
    _set(run, "failed", code=event.code, named=event.tasks, closed_ms=at.now_ms)


def run_blocked(run: RunMemory, event: e.RunBlocked, at: At) -> None:
    """Waits for a person."""
    _set(run, "blocked", code=event.code, named=event.tasks)


def run_reopened(run: RunMemory, event: e.RunReopened, at: At) -> None:
    """Goes on."""
    _set(run, "running", reason=event.reason)


def limits_set(run: RunMemory, event: e.LimitsSet, at: At) -> None:
    """The limits from now on."""
    _limit(run.bound(), event.limits)


def _limit(row: RunRow, limits: Limits) -> None:
    row.max_tokens = limits.max_tokens
    row.max_cost = None if limits.max_cost is None else exact(limits.max_cost)
    row.max_wall_ms = limits.max_wall_ms
    row.max_total_artifact_bytes = limits.max_total_artifact_bytes


def _set(
    run: RunMemory,
    status: RunStatus,
    *,
    reason: str = "",
    code: str | None = None,
    named: tuple[str, ...] | None = None,
    closed_ms: int | None = None,
) -> None:
    """What is said of a status leaves with it."""
    row = run.bound()
    row.status = status
    row.reason = reason or None
    row.code = code
    row.named_tasks = None if named is None else msgspec.json.encode(named).decode()
    row.closed_ms = closed_ms
