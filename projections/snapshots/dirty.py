"""Which segments of which runs have changed since the last snapshot, told from the events alone.

`TOUCHES` says for each event which tasks its fold (`projections/task_graph/evolve.py`) changes. An event that is not
there marks the whole run: then a snapshot writes too much, never too little. `tests/spec/test_snapshots.py` fails for
an event that is missing, and for one that changes more than is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from dagbok.events.run import events as e
from dagbok.projections.snapshots.parts import SEGMENT_TASKS
from dagbok.projections.task_graph.state import RunState


class _OfTask(Protocol):
    @property
    def task(self) -> str: ...


class DirtySegments:
    """By stream, the numbers of the changed segments. A run that is here at all has a changed head."""

    def __init__(self) -> None:
        self._changed: dict[str, set[int]] = {}

    def __contains__(self, stream: str) -> bool:
        return stream in self._changed

    def note(self, run: RunState, events: Sequence[e.Event]) -> None:
        """The events were folded into the run: every task that one of them touches is in a changed segment."""
        changed = self._changed.setdefault(run.stream, set())
        for event in events:
            for task in TOUCHES.get(type(event), _all)(run, event):
                changed.add(run.tasks[task].order // SEGMENT_TASKS)

    def take(self) -> dict[str, set[int]]:
        """All that changed; from now on nothing has."""
        taken, self._changed = self._changed, {}
        return taken

    def count(self) -> int:
        """How many segments have changed."""
        return sum(map(len, self._changed.values()))

    def take_some(self, limit: int) -> dict[str, set[int]]:
        """Up to `limit` segments, which from now on have not changed; the heads of their runs still have."""
        taken: dict[str, set[int]] = {}
        for stream, numbers in self._changed.items():
            while numbers and limit > 0:
                taken.setdefault(stream, set()).add(numbers.pop())
                limit -= 1
            if limit <= 0:
                break
        return taken

    def put_back(self, taken: dict[str, set[int]]) -> None:
        """The snapshot was not written: what changed before it has still changed."""
        for stream, segments in taken.items():
            self._changed.setdefault(stream, set()).update(segments)


def _none(run: RunState, event: e.Event) -> Iterable[str]:
    return ()


def _all(run: RunState, event: e.Event) -> Iterable[str]:
    return run.tasks


def _one(run: RunState, event: _OfTask) -> Iterable[str]:
    return (event.task,)


def _settled(run: RunState, event: e.TaskVerified | e.TaskSkipped) -> Iterable[str]:
    return (event.task, *run.tasks[event.task].dependents)


def _leases(run: RunState, event: e.LeasesRenewed) -> Iterable[str]:
    return [lease.task for lease in event.accepted]


def _accepted(run: RunState, event: e.DecompositionAccepted) -> Iterable[str]:
    return (event.task, *event.reused)


def _added(run: RunState, event: e.TasksAdded) -> Iterable[str]:
    for entry in event.tasks:
        yield entry.spec.id
        yield from entry.spec.depends_on
        if entry.supersedes is not None:
            yield entry.supersedes
            yield from run.tasks[entry.spec.id].dependents


# Each takes the event type of its key; a mapping cannot say so, hence the one Any.
TOUCHES: Final[dict[type[e.Event], Callable[[RunState, Any], Iterable[str]]]] = {
    **dict.fromkeys(
        (
            e.RunStarted,
            e.RunPaused,
            e.RunResumed,
            e.RunSucceeded,
            e.RunFailed,
            e.RunBlocked,
            e.RunReopened,
            e.RunAmended,
            e.LimitsSet,
            e.CommandRefused,
            e.CommandRepeated,
            e.CommandsLost,
            e.SessionResumed,
        ),
        _none,
    ),
    **dict.fromkeys(
        (
            e.AttemptOpened,
            e.AttemptStarted,
            e.AttemptReleased,
            e.AttemptUnserved,
            e.AttemptClosed,
            e.AttemptLost,
            e.AttemptFailed,
            e.CandidateSubmitted,
            e.DecompositionProposed,
            e.DecompositionRefused,
            e.VerdictRecorded,
            e.SessionSuspended,
            e.TaskBackedOff,
            e.TaskBlocked,
            e.TaskUnblocked,
            e.TaskFailed,
            e.TaskRetried,
            e.TaskCancelled,
            e.TaskSuperseded,
        ),
        _one,
    ),
    e.RunCancelled: _all,
    e.TasksAdded: _added,
    e.TaskVerified: _settled,
    e.TaskSkipped: _settled,
    e.DecompositionAccepted: _accepted,
    e.LeasesRenewed: _leases,
}
