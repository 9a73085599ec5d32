"""Events about tasks: they enter the graph, and settle."""

from __future__ import annotations

from dagbok.events.run.event import Event
from dagbok.events.run.values import Claim, SpecEntry


class TasksAdded(Event, frozen=True):
    """Tasks with their full specs and edges; each entry names the task that was decomposed, if any."""

    tasks: tuple[SpecEntry, ...]
    graph_revision: int


class TaskVerified(Event, frozen=True):
    """Final. The candidate's artifacts are published; tasks that wait for this one wake."""

    task: str
    report_id: str


class TaskBackedOff(Event, frozen=True):
    """The next attempt opens at `due_ms` (log time)."""

    task: str
    due_ms: int
    failures: int


class TaskBlocked(Event, frozen=True):
    """A person has to act, then `ResolveBlock`."""

    task: str
    code: str
    reason: str
    epoch: int = 0
    claim: Claim | None = None


class TaskUnblocked(Event, frozen=True):
    """The task may run again."""

    task: str
    note: str = ""


class TaskFailed(Event, frozen=True):
    """No attempt is left, or the failure is terminal."""

    task: str
    code: str
    reason: str
