"""Rows of the events that change the graph: tasks and edges come, verified tasks wake those that wait for them."""

from __future__ import annotations

from dagbok.events.run import events as e
from dagbok.events.run.values import SpecEntry
from dagbok.projections.views.graph.memory import At, RunMemory
from dagbok.projections.views.graph.moves import drop_staged, end, judge
from dagbok.projections.views.graph.patches import Published
from dagbok.projections.views.graph.rows import TaskRow


def tasks_added(run: RunMemory, event: e.TasksAdded, at: At) -> None:
    """New tasks with their edges. Two passes, because tasks of one event may depend on each other in any order.
    The edge from a decomposed task to a new one comes with `DecompositionAccepted`."""
    for entry in event.tasks:
        run.add_task(_row(run, entry, at))
    for entry in event.tasks:
        row = run.tasks[entry.spec.id]
        for dependency in entry.spec.depends_on:
            run.add_edge(row, dependency, "initial")
            row.open_dependencies += run.tasks[dependency].status != "verified"
        if not row.open_dependencies:
            run.set_status(row, "ready")
    run.bound().graph_revision = event.graph_revision


def decomposition_accepted(run: RunMemory, event: e.DecompositionAccepted, at: At) -> None:
    """The parent waits for its new tasks (which follow in the same commit) and for those it reuses."""
    parent = run.task(event.task)
    if parent.open_kind is not None:
        end(run, parent, at, event.epoch, "succeeded", outcome="decompose", process=event.claim.process)
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
            run.add_edge(parent, id, "decomposition")
            parent.open_dependencies += run.tasks[id].status != "verified"
    run.bound().graph_revision = event.graph_revision
    run.set_status(parent, "waiting" if parent.open_dependencies else "ready")


def task_verified(run: RunMemory, event: e.TaskVerified, at: At) -> None:
    """The candidate is published; a task whose last open dependency this was becomes ready."""
    row = run.task(event.task)
    _publish(run, row, at)
    judge(run, row, "succeeded")
    drop_staged(row)
    row.code = row.reason = None
    row.closed_ms = at.now_ms
    run.set_status(row, "verified")
    for id in run.dependents.get(row.task, ()):
        dependent = run.task(id)
        dependent.open_dependencies -= 1
        if not dependent.open_dependencies and dependent.status == "waiting":
            run.set_status(dependent, "ready")


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
    spec, run_row = entry.spec, run.bound()
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
        added_ms=at.now_ms,
    )
