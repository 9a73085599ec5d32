"""Folds of the events that change the graph: tasks and edges come, verified tasks wake those that wait for them."""

from __future__ import annotations

from dagbok.events.run import events as e
from dagbok.events.run.values import SpecEntry
from dagbok.projections.task_graph.nodes import end_attempt, make_ready, set_status
from dagbok.projections.task_graph.state import At, RunState, TaskNode


def tasks_added(run: RunState, event: e.TasksAdded, at: At) -> None:
    """New tasks with their edges. Two passes, because tasks of one event may depend on each other in any order."""
    roots = frozenset(run.roots)
    nodes = [_node(run, entry, roots) for entry in event.tasks]
    waiting: dict[str, list[str]] = {}
    for node in nodes:
        for dep in node.deps:
            waiting.setdefault(dep, []).append(node.id)
            node.open_deps += run.tasks[dep].status != "verified"
        run.edges += len(node.deps)
        if node.created_by is not None:
            waiting.setdefault(node.id, []).append(node.created_by)
        if not node.open_deps:
            make_ready(run, node)
    for id, dependents in waiting.items():
        run.tasks[id].dependents += tuple(dependents)
    run.graph_revision = event.graph_revision


def decomposition_accepted(run: RunState, event: e.DecompositionAccepted, at: At) -> None:
    """The parent waits for its new tasks (which follow in the same commit) and for those it reuses."""
    parent = run.tasks[event.task]
    end_attempt(run, parent, at)
    parent.staged = None
    parent.problem = None
    parent.decompositions += 1
    known = {*parent.deps, *event.new}
    reused = [id for id in event.reused if id not in known]
    parent.deps += (*event.new, *reused)
    parent.open_deps += len(event.new)
    for id in reused:
        run.tasks[id].dependents += (parent.id,)
        parent.open_deps += run.tasks[id].status != "verified"
    run.edges += len(event.new) + len(reused)
    run.graph_revision = event.graph_revision
    if parent.open_deps:
        set_status(run, parent, "waiting")
    else:
        make_ready(run, parent)


def task_verified(run: RunState, event: e.TaskVerified, at: At) -> None:
    """The staged candidate is published; a task whose last open dependency this was becomes ready."""
    node = run.tasks[event.task]
    if node.staged is not None:
        node.published = node.staged.artifacts
        node.outputs = node.staged.outputs
    node.staged = None
    node.problem = node.note = None
    set_status(run, node, "verified")
    run.open_roots -= node.root
    for id in node.dependents:
        dependent = run.tasks[id]
        dependent.open_deps -= 1
        if not dependent.open_deps and dependent.status == "waiting":
            make_ready(run, dependent)


def _node(run: RunState, entry: SpecEntry, roots: frozenset[str]) -> TaskNode:
    parent = run.tasks.get(entry.created_by) if entry.created_by else None
    node = TaskNode(
        spec=entry.spec,
        spec_hash=entry.spec_hash,
        order=len(run.tasks),
        depth=parent.depth + 1 if parent else 0,
        created_by=entry.created_by,
        deps=entry.spec.depends_on,
        root=parent is None and entry.spec.id in roots,
    )
    run.tasks[node.id] = node
    run.counts["waiting"] = run.counts.get("waiting", 0) + 1
    return node
