"""The events of a run: facts (`docs/design/messages.md`, section 6).

Written by `agents/scheduler/decide/` alone; folded by `projections/task_graph/evolve.py`; read by `projections/views/`.
"""

from __future__ import annotations

from dagbok.events.run.attempt_events import (
    AttemptClosed,
    AttemptFailed,
    AttemptLost,
    AttemptOpened,
    AttemptReleased,
    AttemptStarted,
    AttemptUnserved,
    CloseCause,
    LeasesRenewed,
    RenewedLease,
)
from dagbok.events.run.command_events import CommandRefused, CommandRepeated
from dagbok.events.run.event import Event
from dagbok.events.run.result_events import (
    CandidateSubmitted,
    DecompositionAccepted,
    DecompositionProposed,
    DecompositionRefused,
    VerdictRecorded,
)
from dagbok.events.run.run_events import (
    LimitsSet,
    RunBlocked,
    RunCancelled,
    RunFailed,
    RunPaused,
    RunReopened,
    RunResumed,
    RunStarted,
    RunSucceeded,
)
from dagbok.events.run.task_events import (
    TaskBackedOff,
    TaskBlocked,
    TaskFailed,
    TasksAdded,
    TaskUnblocked,
    TaskVerified,
)

EVENTS: dict[str, type[Event]] = {
    event.__name__: event
    for event in (
        RunStarted,
        RunPaused,
        RunResumed,
        RunCancelled,
        RunSucceeded,
        RunFailed,
        RunBlocked,
        RunReopened,
        LimitsSet,
        TasksAdded,
        AttemptOpened,
        AttemptStarted,
        LeasesRenewed,
        AttemptReleased,
        AttemptUnserved,
        AttemptClosed,
        AttemptLost,
        AttemptFailed,
        CandidateSubmitted,
        DecompositionProposed,
        DecompositionAccepted,
        DecompositionRefused,
        VerdictRecorded,
        TaskVerified,
        TaskBackedOff,
        TaskBlocked,
        TaskUnblocked,
        TaskFailed,
        CommandRefused,
        CommandRepeated,
    )
}

__all__ = [
    "EVENTS",
    "AttemptClosed",
    "AttemptFailed",
    "AttemptLost",
    "AttemptOpened",
    "AttemptReleased",
    "AttemptStarted",
    "AttemptUnserved",
    "CandidateSubmitted",
    "CloseCause",
    "CommandRefused",
    "CommandRepeated",
    "DecompositionAccepted",
    "DecompositionProposed",
    "DecompositionRefused",
    "Event",
    "LeasesRenewed",
    "LimitsSet",
    "RenewedLease",
    "RunBlocked",
    "RunCancelled",
    "RunFailed",
    "RunPaused",
    "RunReopened",
    "RunResumed",
    "RunStarted",
    "RunSucceeded",
    "TaskBackedOff",
    "TaskBlocked",
    "TaskFailed",
    "TaskUnblocked",
    "TaskVerified",
    "TasksAdded",
    "VerdictRecorded",
]
