"""Folds of the events that change the graph: tasks and edges come, and settled tasks wake those that wait for them."""

from __future__ import annotations

import msgspec

from dagbok.events.run import events as e
from dagbok.events.run.amounts import plus
from dagbok.events.run.values import SpecEntry
from dagbok.projections.task_graph.nodes import drop_task, end_attempt, make_ready, set_status, wake
from dagbok.projections.task_graph.sessions import begun
from dagbok.projections.task_graph.state import At, RunState, TaskNode, TaskStatus


def tasks_added(run: RunState, event: e.TasksAdded, at: At) -> None:
    """New tasks with their edges. Two passes, because tasks of one event may depend on each other in any order."""
    roots = frozenset(run.roots)
    nodes = [_node(run, entry, roots) for entry in event.tasks]
    waiting: dict[str, list[str]] = {}
    for node, entry in zip(nodes, event.tasks, strict=True):
        for dep in node.deps:
            waiting.setdefault(dep, []).append(node.id)
            _join(node, run.tasks[dep], taken=dep not in entry.not_taken)
        run.edges += len(node.deps)
        if entry.supersedes is not None:
            _take_over(run, run.tasks[entry.supersedes], node)
        elif node.created_by is not None:
            waiting.setdefault(node.id, []).append(node.created_by)
        if not node.open_deps:
            wake(run, node)
    for id, dependents in waiting.items():
        run.tasks[id].dependents += tuple(dependents)
    run.graph_revision = event.graph_revision
    run.graph_offset = at.offset


def decomposition_accepted(run: RunState, event: e.DecompositionAccepted, at: At) -> None:
    """The parent waits for its new tasks (which follow in the same commit) and for those it reuses."""
    parent = run.tasks[event.task]
    proposal = parent.staged.proposal if parent.staged is not None else None
    end_attempt(run, parent, at)
    run.spent = plus(run.spent, event.usage)
    parent.composition = (event if proposal is None else proposal).composition_contract.copy()
    parent.staged = None
    parent.problem = None
    parent.conflicts = 0
    parent.decompositions += 1
    known = {*parent.deps, *event.new}
    reused = [id for id in event.reused if id not in known]
    parent.deps += (*event.new, *reused)
    parent.open_deps += len(event.new)
    for id in reused:
        run.tasks[id].dependents += (parent.id,)
        _join(parent, run.tasks[id], taken=True)
    run.edges += len(event.new) + len(reused)
    run.graph_revision = event.graph_revision
    run.graph_offset = at.offset
    if parent.open_deps:
        set_status(run, parent, "waiting")
    else:
        make_ready(run, parent)


def task_verified(run: RunState, event: e.TaskVerified, at: At) -> None:
    """The staged candidate is published; a task whose last open dependency this was wakes."""
    node = run.tasks[event.task]
    if node.staged is not None:
        node.published = node.staged.artifacts
        node.outputs = node.staged.outputs
    node.staged = None
    node.problem = node.note = None
    _settled(run, node, "verified", frozenset(event.not_taken) if event.not_taken else _NONE)


def task_skipped(run: RunState, event: e.TaskSkipped, at: At) -> None:
    """No edge led to it; its own edges are not taken either."""
    node = run.tasks[event.task]
    run.skipping.remove(node.id)
    _settled(run, node, "skipped", frozenset(node.dependents))


def task_superseded(run: RunState, event: e.TaskSuperseded, at: At) -> None:
    """Its replacement follows, and takes over what waits for it."""
    node = run.tasks[event.task]
    node.superseded_by = event.replacement
    run.graph_offset = at.offset
    drop_task(run, node, "superseded")


_NONE: frozenset[str] = frozenset()


def _settled(run: RunState, node: TaskNode, status: TaskStatus, not_taken: frozenset[str]) -> None:
    set_status(run, node, status)
    run.open_roots -= node.root
    for id in node.dependents:
        dependent = run.tasks[id]
        dependent.open_deps -= 1
        _count(dependent, taken=id not in not_taken)
        if not dependent.open_deps and dependent.status == "waiting":
            wake(run, dependent)


def _join(node: TaskNode, dep: TaskNode, *, taken: bool) -> None:
    """An edge from a task to one that may be settled already."""
    if dep.status in ("verified", "skipped"):
        _count(node, taken=taken and dep.status == "verified")
    else:
        node.open_deps += 1


def _count(node: TaskNode, *, taken: bool) -> None:
    """One of its edges is settled."""
    node.wanted = node.wanted or taken
    node.missed = node.missed or not taken


def _take_over(run: RunState, old: TaskNode, new: TaskNode) -> None:
    """Edges to the old task lead to the new one from now on."""
    new.dependents, old.dependents = old.dependents, ()
    for id in new.dependents:
        dependent = run.tasks[id]
        dependent.deps = tuple([new.id if dep == old.id else dep for dep in dependent.deps])
        dependent.conditions = tuple(
            [
                msgspec.structs.replace(each, task=new.id) if each.task == old.id else each
                for each in dependent.conditions
            ]
        )
    new.root, old.root = old.root, False
    if new.root:
        run.roots = tuple([new.id if root == old.id else root for root in run.roots])


def _node(run: RunState, entry: SpecEntry, roots: frozenset[str]) -> TaskNode:
    parent = run.tasks.get(entry.created_by) if entry.created_by else None
    node = TaskNode(
        spec=entry.spec,
        spec_hash=entry.spec_hash,
        order=len(run.tasks),
        depth=parent.depth + 1 if parent else 0,
        created_by=entry.created_by,
        deps=entry.spec.depends_on,
        conditions=entry.spec.when,
        root=parent is None and entry.spec.id in roots,
        supersedes=entry.supersedes,
        session=begun(entry.spec),
    )
    run.tasks[node.id] = node
    run.counts["waiting"] = run.counts.get("waiting", 0) + 1
    return node
