"""What a batch will touch, read in a few statements before any event is applied.

Complete by construction: every task that a handler asks for is named by an event of the batch, or waits for a task that
the batch settles or replaces.
"""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.events.run import events as e
from dagbok.projections.tables.session import Session
from dagbok.projections.views.graph.memory import RunMemory
from dagbok.projections.views.graph.rows import EdgeRow, RunRow, TaskRow
from dagbok.projections.views.view import Told

RUN: str = "run:"


class _Wanted:
    """The ids that the events of one run name. `new` are added by the batch itself: nothing of them is there yet."""

    def __init__(self) -> None:
        self.tasks: set[str] = set()
        self.new: set[str] = set()
        self.settled: set[str] = set()
        self.decomposed: set[str] = set()

    def add(self, event: e.Event) -> None:
        """What this event touches."""
        kind = type(event)
        if isinstance(event, e.TasksAdded):
            for entry in event.tasks:
                self.new.add(entry.spec.id)
                self.tasks.update(entry.spec.depends_on)
                if entry.created_by is not None:
                    self.tasks.add(entry.created_by)
                if entry.supersedes is not None:
                    self.settled.add(entry.supersedes)
            return
        task = getattr(event, "task", None)
        if task is None:
            return
        self.tasks.add(task)
        if kind is e.TaskVerified or kind is e.TaskSkipped:
            self.settled.add(task)
        elif isinstance(event, e.DecompositionAccepted) and event.reused:
            self.decomposed.add(task)
            self.tasks.update(event.reused)


def load(session: Session, batch: Sequence[Told]) -> dict[str, RunMemory]:
    """The runs of a batch by stream, with the rows that it touches."""
    wanted: dict[str, _Wanted] = {}
    for told in batch:
        stream = told.commit.seal.stream
        if stream is None or not stream.startswith(RUN):
            continue
        want = wanted.get(stream)
        if want is None:
            want = wanted[stream] = _Wanted()
        for event in told.events:
            want.add(event)
    runs = {stream: RunMemory(stream[len(RUN) :]) for stream in wanted}
    for row in session.select_in(RunRow, "run", [run.run for run in runs.values()]):
        runs[row.stream].known(row)
    for stream, want in wanted.items():
        if runs[stream].row is not None:
            _load_run(session, runs[stream], want)
    return runs


def _load_run(session: Session, run: RunMemory, want: _Wanted) -> None:
    edges, tasks = session.columns(EdgeRow), session.columns(TaskRow)
    of_run = edges["run"] == run.run
    for edge in session.select_in(EdgeRow, "dependency", list(want.settled - want.new), of_run):
        run.dependents.setdefault(edge.dependency, []).append(edge.task)
        want.tasks.add(edge.task)
    for edge in session.select_in(EdgeRow, "task", list(want.decomposed - want.new), of_run):
        run.dependencies.setdefault(edge.task, set()).add(edge.dependency)
    for task in session.select_in(TaskRow, "task", list(want.tasks - want.new), tasks["run"] == run.run):
        run.tasks[task.task] = task
