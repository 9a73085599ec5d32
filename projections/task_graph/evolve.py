"""How events change the state of a run: `evolve(run, event, at)`.

Events are written by `agents/scheduler/decide/`; the state is in `state.py`. No clock, no random, no I/O, and no
payload is looked into. The folds stand by subject in `lifecycle.py`, `graph.py`, `attempts.py`, `sessions.py` and
`outcomes.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dagbok.events.run import events as e
from dagbok.projections.task_graph import attempts, graph, lifecycle, outcomes, sessions
from dagbok.projections.task_graph.state import At, RunState


def evolve(run: RunState, event: e.Event, at: At) -> None:
    """Apply one event to the state of its run, in place."""
    _FOLDS[type(event)](run, event, at)


def _nothing(run: RunState, event: e.Event, at: At) -> None:
    """A refused or repeated command leaves the run as it is, and so does who goes on with a session."""


# Each fold takes the event type of its key; a mapping cannot say so, hence the one Any.
_FOLDS: dict[type[e.Event], Callable[[RunState, Any, At], None]] = {
    e.RunStarted: lifecycle.run_started,
    e.RunPaused: lifecycle.run_paused,
    e.RunResumed: lifecycle.run_resumed,
    e.RunCancelled: lifecycle.run_cancelled,
    e.RunSucceeded: lifecycle.run_succeeded,
    e.RunFailed: lifecycle.run_failed,
    e.RunBlocked: lifecycle.run_blocked,
    e.RunReopened: lifecycle.run_reopened,
    e.LimitsSet: lifecycle.limits_set,
    e.RunAmended: lifecycle.run_amended,
    e.TasksAdded: graph.tasks_added,
    e.DecompositionAccepted: graph.decomposition_accepted,
    e.TaskVerified: graph.task_verified,
    e.TaskSkipped: graph.task_skipped,
    e.TaskSuperseded: graph.task_superseded,
    e.AttemptOpened: attempts.attempt_opened,
    e.AttemptStarted: attempts.attempt_started,
    e.LeasesRenewed: attempts.leases_renewed,
    e.AttemptReleased: attempts.attempt_returned,
    e.AttemptUnserved: attempts.attempt_unserved,
    e.AttemptClosed: attempts.attempt_returned,
    e.AttemptLost: attempts.attempt_lost,
    e.AttemptFailed: attempts.attempt_failed,
    e.CandidateSubmitted: attempts.candidate_submitted,
    e.DecompositionProposed: attempts.decomposition_proposed,
    e.DecompositionRefused: attempts.decomposition_refused,
    e.VerdictRecorded: attempts.verdict_recorded,
    e.SessionSuspended: sessions.session_suspended,
    e.SessionResumed: _nothing,
    e.TaskBackedOff: outcomes.task_backed_off,
    e.TaskBlocked: outcomes.task_blocked,
    e.TaskUnblocked: outcomes.task_unblocked,
    e.TaskFailed: outcomes.task_failed,
    e.TaskRetried: outcomes.task_retried,
    e.TaskCancelled: outcomes.task_cancelled,
    e.CommandRefused: _nothing,
    e.CommandRepeated: _nothing,
    e.CommandsLost: _nothing,
}
