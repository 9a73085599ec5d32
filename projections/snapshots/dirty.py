"""Which segments of which runs have changed since the last snapshot, told from the events alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dagbok.events.run import events as e
from dagbok.projections.snapshots.parts import SEGMENT_TASKS
from dagbok.projections.task_graph.state import RunState


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
            for task in _touched(run, event):
                changed.add(run.tasks[task].order // SEGMENT_TASKS)

    def take(self) -> dict[str, set[int]]:
        """All that changed; from now on nothing has."""
        taken, self._changed = self._changed, {}
        return taken

    def put_back(self, taken: dict[str, set[int]]) -> None:
        """The snapshot was not written: what changed before it has still changed."""
        for stream, segments in taken.items():
            self._changed.setdefault(stream, set()).update(segments)


def _touched(run: RunState, event: e.Event) -> Iterable[str]:
    if isinstance(event, e.TaskVerified):
        return (event.task, *run.tasks[event.task].dependents)
    if isinstance(event, e.TasksAdded):
        ids = [entry.spec.id for entry in event.tasks]
        return (*ids, *(dep for entry in event.tasks for dep in entry.spec.depends_on))
    if isinstance(event, e.DecompositionAccepted):
        return (event.task, *event.reused)
    if isinstance(event, e.LeasesRenewed):
        return [lease.task for lease in event.accepted]
    if isinstance(event, e.RunCancelled):
        return run.tasks
    task = getattr(event, "task", None)
    return () if task is None else (task,)
