"""Events about tasks: they enter the graph, and settle."""

from __future__ import annotations

from typing import Literal

from dagbok.events.run.event import Event
from dagbok.events.run.values import Claim, SpecEntry, Usage


class TasksAdded(Event, frozen=True):
    """Tasks with their full specs and edges; each entry names the task that was decomposed, if any."""

    tasks: tuple[SpecEntry, ...]
    graph_revision: int


class TaskVerified(Event, frozen=True):
    """Final. The candidate's artifacts are published; tasks that wait for this one wake, but for the edges of those
    in `not_taken`, whose condition its control values do not meet."""

    task: str
    report_id: str
    not_taken: tuple[str, ...] = ()


class TaskSkipped(Event, frozen=True):
    """Final. None of its edges was taken, so it is not needed; nor is, on its account, what waits for it."""

    task: str


class TaskBackedOff(Event, frozen=True):
    """The next attempt opens at `due_ms` (log time); `review`: of the verifier, on the same candidate."""

    task: str
    due_ms: int
    failures: int
    review: bool = False


class TaskBlocked(Event, frozen=True):
    """A person has to act, then `ResolveBlock`."""

    task: str
    code: str
    reason: str
    epoch: int = 0
    claim: Claim | None = None
    usage: Usage = Usage()


class TaskUnblocked(Event, frozen=True):
    """The task may run again."""

    task: str
    note: str = ""


class TaskFailed(Event, frozen=True):
    """No attempt is left, or the failure is terminal."""

    task: str
    code: str
    reason: str


class TaskRetried(Event, frozen=True):
    """A failed task starts again, with all its attempts."""

    task: str
    note: str = ""


class TaskCancelled(Event, frozen=True):
    """Final. By a command, or because the task that created it was cancelled or superseded."""

    task: str
    cause: Literal["requested", "parent_cancelled", "parent_superseded"]
    reason: str = ""


class TaskSuperseded(Event, frozen=True):
    """Final. `replacement` follows in the same commit and takes over the place of this task, with all that wait for
    it."""

    task: str
    replacement: str
    graph_revision: int
