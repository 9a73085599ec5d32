"""The rows of one run that a batch touches: read once, changed in memory, written once.

A handler changes rows here as a fold changes its state. `load.py` puts in what is there already; `flush` writes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dagbok.events.errors import LogCorrupt
from dagbok.projections.tables.session import Session
from dagbok.projections.task_graph.state import TaskStatus
from dagbok.projections.views.graph.patches import (
    AttemptsCancelled,
    Charged,
    Ended,
    Judged,
    Published,
    Replaced,
    Rewired,
    Settled,
    Spent,
    Started,
    TasksCancelled,
    Unserved,
)
from dagbok.projections.views.graph.rows import (
    STATUSES,
    ArtifactRow,
    AttemptRow,
    EdgeRow,
    EdgeState,
    Origin,
    RunRow,
    TaskRow,
)


class At(msgspec.Struct, gc=False):
    """Where an event stands and when it was decided. `index` moves from event to event of a commit."""

    tenant: str
    project: str
    partition: int
    offset: int
    now_ms: int
    index: int = 0


class RunMemory:
    """What a batch knows and changes of one run.

    `tasks` has every task that the batch touches, `dependents` who waits for the tasks that it settles or replaces, and
    `dependencies` what the tasks that it decomposes waited for before. Edges, attempts and artifacts are only held when
    they are new in the batch: older ones are patched unread. `spending` and `replaced` are the tasks of which the
    columns changed that only few tasks ever change.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.row: RunRow | None = None
        self.roots: frozenset[str] = frozenset()
        self.counts: dict[TaskStatus, int] = dict.fromkeys(STATUSES, 0)
        self.tasks: dict[str, TaskRow] = {}
        self.dependents: dict[str, list[str]] = {}
        self.dependencies: dict[str, set[str]] = {}
        self.attempts: dict[tuple[str, int], AttemptRow] = {}
        self.artifacts: dict[tuple[str, int], list[ArtifactRow]] = {}
        self.edges: dict[tuple[str, str], EdgeRow] = {}
        self.rewired: list[Rewired] = []
        self.settled: list[Settled] = []
        self.started: list[Started] = []
        self.unserved: list[Unserved] = []
        self.ended: list[Ended] = []
        self.charged: list[Charged] = []
        self.judged: list[Judged] = []
        self.published: list[Published] = []
        self.cancelled_ms: int | None = None
        self.row_is_new = False
        self.new_tasks: dict[str, TaskRow] = {}
        self.changed_tasks: dict[str, TaskRow] = {}
        self.spending: dict[str, TaskRow] = {}
        self.replaced: dict[str, TaskRow] = {}

    def known(self, row: RunRow) -> None:
        """The run is in the tables already."""
        self.row = row
        self.counts = row.counts

    def bound(self) -> RunRow:
        """The row of the run. Raises `LogCorrupt` when nothing has started it."""
        if self.row is None:
            raise LogCorrupt(f"an event of run {self.run} comes before its start")
        return self.row

    def task(self, id: str) -> TaskRow:
        """A task, to be changed. Raises `LogCorrupt` when nothing has added it."""
        row = self.tasks.get(id)
        if row is None:
            raise LogCorrupt(f"an event names task {id} of run {self.run}, which is not there")
        self.changed_tasks[id] = row
        return row

    def set_status(self, row: TaskRow, status: TaskStatus) -> None:
        """Move a task to `status`, out of any backoff, and keep the counts of the run true."""
        self.counts[row.status] -= 1
        self.counts[status] += 1
        row.status = status
        row.due_ms = None

    def add_task(self, row: TaskRow) -> None:
        """A new task, in the status that it says."""
        self.tasks[row.task] = self.new_tasks[row.task] = row
        self.counts[row.status] += 1

    def add_edge(self, task: TaskRow, dependency: str, origin: Origin) -> EdgeRow:
        """`task` waits for `dependency` from now on."""
        id = task.task
        edge = self.edges[id, dependency] = EdgeRow(task.tenant, task.project, self.run, id, dependency, origin)
        self.dependents.setdefault(dependency, []).append(id)
        self.dependencies.setdefault(id, set()).add(dependency)
        self.bound().edges += 1
        return edge

    def settle_edge(self, task: str, dependency: str, state: EdgeState) -> None:
        """The edge is taken or not, for ever."""
        edge = self.edges.get((task, dependency))
        if edge is None:
            self.settled.append(Settled(self.run, task, dependency, state))
        else:
            edge.state = state

    def rewire(self, old: str, new: str) -> None:
        """The edges that lead to `old`, which are all open, lead to `new` from now on."""
        dependents = self.dependents.pop(old, [])
        self.dependents[new] = dependents
        for id in dependents:
            edge = self.edges.pop((id, old), None)
            if edge is not None:
                edge.dependency = new
                self.edges[id, new] = edge
            dependencies = self.dependencies.get(id)
            if dependencies is not None:
                dependencies.discard(old)
                dependencies.add(new)
        if dependents:
            self.rewired.append(Rewired(self.run, old, new))


def flush(session: Session, runs: Iterable[RunMemory]) -> None:
    """Write everything that changed. New rows carry all that happened to them in the batch; of an attempt that was
    there, the claim comes before its end, and its end before the verdict; an edge settles where it leads to at last."""
    runs = list(runs)
    changed = [row for run in runs if (row := _run_row(run)) is not None]
    new = {run.run for run in runs if run.row_is_new}
    session.insert([row for row in changed if row.run in new])
    session.update([row for row in changed if row.run not in new])
    session.insert([row for run in runs for row in run.new_tasks.values()])
    session.update([row for run in runs for id, row in run.changed_tasks.items() if id not in run.new_tasks])
    session.patch([_spent(run, row) for run in runs for id, row in run.spending.items() if id not in run.new_tasks])
    session.patch([_replaced(run, row) for run in runs for id, row in run.replaced.items() if id not in run.new_tasks])
    session.insert([row for run in runs for row in run.edges.values()])
    session.patch([patch for run in runs for patch in run.rewired])
    session.patch([patch for run in runs for patch in run.settled])
    session.insert([row for run in runs for row in run.attempts.values()])
    session.insert([row for run in runs for rows in run.artifacts.values() for row in rows])
    session.patch([patch for run in runs for patch in run.started])
    session.patch([patch for run in runs for patch in run.unserved])
    session.patch([patch for run in runs for patch in run.ended])
    session.patch([patch for run in runs for patch in run.charged])
    session.patch([patch for run in runs for patch in run.judged])
    session.patch([patch for run in runs for patch in run.published])
    cancelled = [(run.run, run.cancelled_ms) for run in runs if run.cancelled_ms is not None]
    session.patch([TasksCancelled(run, closed_ms) for run, closed_ms in cancelled])
    session.patch([AttemptsCancelled(run) for run, _ in cancelled])


def _spent(run: RunMemory, row: TaskRow) -> Spent:
    return Spent(run.run, row.task, row.tokens_used, row.cost_used, row.tokens_reserved, row.cost_reserved)


def _replaced(run: RunMemory, row: TaskRow) -> Replaced:
    return Replaced(run.run, row.task, row.root, row.superseded_by)


def _run_row(run: RunMemory) -> RunRow | None:
    if run.row is not None:
        for status, count in run.counts.items():
            setattr(run.row, status, count)
    return run.row
