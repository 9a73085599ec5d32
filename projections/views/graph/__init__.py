"""The view of a run's graph: runs, tasks, edges, attempts and artifacts.

One view, because they change together: what becomes of an attempt decides on the status of its task, and that on the
counts of its run. Rows are in `rows.py`; the handlers stand by subject in `lifecycle.py`, `tasks.py`, `attempts.py` and
`outcomes.py`, in parallel to the folds of `projections/task_graph/`, and must agree with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dagbok.events.run import events as e
from dagbok.projections.tables.session import Session
from dagbok.projections.views.graph import attempts, lifecycle, outcomes, tasks
from dagbok.projections.views.graph.load import load
from dagbok.projections.views.graph.memory import At, RunMemory, flush
from dagbok.projections.views.graph.rows import ArtifactRow, AttemptRow, EdgeRow, RunRow, TaskRow
from dagbok.projections.views.view import Told


class GraphView:
    """The graph of every run."""

    name: Final = "graph"
    layout: Final = 2
    rows: Final = (RunRow, TaskRow, EdgeRow, AttemptRow, ArtifactRow)

    def write(self, session: Session, batch: Sequence[Told]) -> None:
        """Read the rows that the batch touches, apply its events, write each changed row once."""
        runs = load(session, batch)
        for told in batch:
            run = runs.get(told.commit.seal.stream or "")
            if run is not None:
                _apply(run, told)
        flush(session, runs.values())


def _apply(run: RunMemory, told: Told) -> None:
    seal = told.commit.seal
    at = At(seal.tenant, seal.project, seal.partition, told.commit.offset, seal.now_ms)
    for event in told.events:
        handler = _HANDLERS[type(event)]
        if handler is not None:
            handler(run, event, at)
        at.index += 1
    if run.row is not None:
        run.row.last_seq = seal.stream_seq + seal.count - 1
        run.row.changed_ms = seal.now_ms


# Each handler takes the event type of its key; a mapping cannot say so, hence the one Any. None: the graph stays.
_HANDLERS: dict[type[e.Event], Callable[[RunMemory, Any, At], None] | None] = {
    e.RunStarted: lifecycle.run_started,
    e.RunPaused: lifecycle.run_paused,
    e.RunResumed: lifecycle.run_resumed,
    e.RunCancelled: lifecycle.run_cancelled,
    e.RunSucceeded: lifecycle.run_succeeded,
    e.RunFailed: lifecycle.run_failed,
    e.RunBlocked: lifecycle.run_blocked,
    e.RunReopened: lifecycle.run_reopened,
    e.LimitsSet: lifecycle.limits_set,
    e.RunAmended: None,
    e.TasksAdded: tasks.tasks_added,
    e.DecompositionAccepted: tasks.decomposition_accepted,
    e.TaskVerified: tasks.task_verified,
    e.TaskSkipped: tasks.task_skipped,
    e.TaskSuperseded: tasks.task_superseded,
    e.AttemptOpened: attempts.attempt_opened,
    e.AttemptStarted: attempts.attempt_started,
    e.LeasesRenewed: None,
    e.AttemptReleased: attempts.attempt_released,
    e.AttemptUnserved: attempts.attempt_unserved,
    e.AttemptClosed: attempts.attempt_closed,
    e.AttemptLost: attempts.attempt_lost,
    e.AttemptFailed: attempts.attempt_failed,
    e.CandidateSubmitted: attempts.candidate_submitted,
    e.DecompositionProposed: attempts.decomposition_proposed,
    e.DecompositionRefused: attempts.decomposition_refused,
    e.VerdictRecorded: attempts.verdict_recorded,
    e.SessionSuspended: attempts.session_suspended,
    e.SessionResumed: None,
    e.TaskBackedOff: outcomes.task_backed_off,
    e.TaskBlocked: outcomes.task_blocked,
    e.TaskUnblocked: outcomes.task_unblocked,
    e.TaskFailed: outcomes.task_failed,
    e.TaskRetried: outcomes.task_retried,
    e.TaskCancelled: outcomes.task_cancelled,
    e.CommandRefused: None,
    e.CommandRepeated: None,
    e.CommandsLost: None,
}
