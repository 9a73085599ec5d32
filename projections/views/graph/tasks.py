"""Rows of the events that change the graph: tasks and edges come, settled tasks wake those that wait for them."""

from __future__ import annotations

from collections.abc import Container

from dagbok.events.run import events as e
from dagbok.events.run.values import SpecEntry
from dagbok.projections.task_graph.state import TaskStatus
from dagbok.projections.views.graph.conditions import readable
from dagbok.projections.views.graph.memory import At, RunMemory
from dagbok.projections.views.graph.moves import drop_staged, drop_task, end, judge
from dagbok.projections.views.graph.patches import Published
from dagbok.projections.views.graph.rows import EdgeRow, TaskRow
from dagbok.projections.views.graph.spending import exact


def tasks_added(run: RunMemory, event: e.TasksAdded, at: At) -> None:
    """New tasks with their edges. Two passes, because tasks of one event may depend on each other in any order.
    The edge from a decomposed task to a new one comes with `DecompositionAccepted`."""
    for entry in event.tasks:
        run.add_task(_row(run, entry, at))
    for entry in event.tasks:
        row, spec = run.tasks[entry.spec.id], entry.spec
        for dependency in spec.depends_on:
            edge = run.add_edge(row, dependency, "initial")
            _join(row, edge, run.tasks[dependency].status, taken=dependency not in entry.not_taken)
            if spec.when:
                edge.condition = readable([each for each in spec.when if each.task == dependency]) or None
        if entry.supersedes is not None:
            _take_over(run, run.task(entry.supersedes), row)
        if not row.open_dependencies and (row.taken_dependencies or not spec.depends_on):
            run.set_status(row, "ready")
    run.bound().graph_revision = event.graph_revision


def decomposition_accepted(run: RunMemory, event: e.DecompositionAccepted, at: At) -> None:
    """The parent waits for its new tasks (which follow in the same commit) and for those it reuses."""
    parent = run.task(event.task)
    if parent.open_kind is not None:
        process, usage = event.claim.process, event.usage
        end(run, parent, at, event.epoch, "succeeded", outcome="decompose", process=process, usage=usage)
    else:
        judge(run, parent, "succeeded")
    drop_staged(parent)
    parent.code = parent.reason = None
    parent.decompositions += 1
    for id in event.new:
        run.add_edge(parent, id, "decomposition")
    parent.open_dependencies += len(event.new)
    for id in event.reused:
        if id not in run.dependencies.get(parent.task, ()):
            edge = run.add_edge(parent, id, "decomposition")
            _join(parent, edge, run.tasks[id].status, taken=True)
    run.bound().graph_revision = event.graph_revision
    run.set_status(parent, "waiting" if parent.open_dependencies else "ready")


def task_verified(run: RunMemory, event: e.TaskVerified, at: At) -> None:
    """The candidate is published; a task whose last open dependency this was wakes."""
    row = run.task(event.task)
    _publish(run, row, at)
    judge(run, row, "succeeded")
    drop_staged(row)
    row.code = row.reason = None
    _settled(run, row, "verified", event.not_taken, at)


def task_skipped(run: RunMemory, event: e.TaskSkipped, at: At) -> None:
    """No edge led to it; its own edges are not taken either."""
    row = run.task(event.task)
    _settled(run, row, "skipped", run.dependents.get(row.task, ()), at)


def task_superseded(run: RunMemory, event: e.TaskSuperseded, at: At) -> None:
    """Its replacement follows in the same commit, and takes over what waits for it."""
    row = run.task(event.task)
    drop_task(run, row, "superseded", "task_superseded", at)
    row.code = row.reason = None
    row.superseded_by = event.replacement
    run.replaced[row.task] = row


def _settled(run: RunMemory, row: TaskRow, status: TaskStatus, not_taken: Container[str], at: At) -> None:
    """A task that no edge leads to any more stays as it is: `TaskSkipped` follows in the same commit."""
    row.closed_ms = at.now_ms
    run.set_status(row, status)
    for id in run.dependents.get(row.task, ()):
        dependent, taken = run.task(id), id not in not_taken
        dependent.open_dependencies -= 1
        dependent.taken_dependencies += taken
        run.settle_edge(id, row.task, "taken" if taken else "not_taken")
        wanted = dependent.taken_dependencies or dependent.decompositions
        if wanted and not dependent.open_dependencies and dependent.status == "waiting":
            run.set_status(dependent, "ready")


def _join(row: TaskRow, edge: EdgeRow, status: TaskStatus, *, taken: bool) -> None:
    """A new edge, to a task that may be settled already."""
    if status == "verified":
        edge.state = "taken" if taken else "not_taken"
        row.taken_dependencies += taken
    elif status == "skipped":
        edge.state = "not_taken"
    else:
        row.open_dependencies += 1


def _take_over(run: RunMemory, old: TaskRow, new: TaskRow) -> None:
    run.rewire(old.task, new.task)
    new.root, old.root = old.root, False
    run.replaced[old.task] = old


def _publish(run: RunMemory, row: TaskRow, at: At) -> None:
    epoch = row.staged_epoch
    if epoch is None:
        return
    artifacts = run.artifacts.get((row.task, epoch))
    if artifacts is None:
        run.published.append(Published(run.run, row.task, epoch, at.now_ms))
        return
    for artifact in artifacts:
        artifact.state = "published"
        artifact.published_ms = at.now_ms


def _row(run: RunMemory, entry: SpecEntry, at: At) -> TaskRow:
    spec, run_row, limits = entry.spec, run.bound(), entry.spec.limits
    parent = run.tasks[entry.created_by] if entry.created_by is not None else None
    run_row.tasks += 1
    return TaskRow(
        tenant=at.tenant,
        project=at.project,
        run=run.run,
        task=spec.id,
        number=run_row.tasks - 1,
        parent=entry.created_by,
        root=parent is None and spec.id in run.roots,
        depth=parent.depth + 1 if parent is not None else 0,
        goal=spec.goal,
        worker=spec.worker,
        verifier=spec.verifier,
        pool=spec.pool,
        priority=spec.priority,
        max_attempts=spec.max_attempts,
        tokens_per_attempt=0 if limits is None else limits.tokens,
        cost_per_attempt="0" if limits is None else exact(limits.cost),
        added_ms=at.now_ms,
    )
