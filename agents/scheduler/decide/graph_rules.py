"""The rules that every change of the graph is held to, whoever asks for it. Each raises `Refused` with its code, and
`Outdated` where the rule was kept by a graph that may have been the present one before."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.near import did_you_mean
from dagbok.events.run.values import Spec
from dagbok.projections.task_graph.state import GONE_TASK, RunState, TaskNode


class Outdated(Refused):
    """Speaks of the graph as it is not, or not any more: of another revision, of a task that is gone, of a name that is
    free, of a task that waits for nobody. Who looked at the graph before it changed may say so in good faith."""


def check_revision(run: RunState, expected: int | None) -> None:
    """Who asked for the graph to be as it was must have it so."""
    if expected is not None and expected != run.graph_revision:
        raise Outdated(Code.VERSION_CONFLICT, f"the graph is at revision {run.graph_revision}, expected {expected}")


def check_size(run: RunState, *, tasks: int, edges: int) -> None:
    """So many more tasks and edges are within the limits of the run."""
    limits = run.limits
    if len(run.tasks) + tasks > limits.max_tasks:
        raise Refused(Code.BUDGET_EXHAUSTED, f"{len(run.tasks) + tasks} tasks, at most {limits.max_tasks}")
    if run.edges + edges > limits.max_edges:
        raise Refused(Code.BUDGET_EXHAUSTED, f"{run.edges + edges} edges, at most {limits.max_edges}")


def check_dependencies(run: RunState, spec: Spec, new: Container[str]) -> None:
    """What a new task waits for is new as well, or exists and can still be verified."""
    for dep in spec.depends_on:
        if dep not in new:
            check_usable(run, dep, f"task {spec.id} depends on {dep!r}")


def check_usable(run: RunState, id: str, who: str) -> None:
    """A task that may be waited for."""
    node = run.tasks.get(id)
    if node is None:
        raise Refused(Code.UNKNOWN_DEPENDENCY, f"{who}, which does not exist{did_you_mean(id, run.tasks)}")
    if node.status in GONE_TASK:
        instead = f" by {node.superseded_by}" if node.superseded_by else ""
        raise Outdated(Code.UNKNOWN_DEPENDENCY, f"{who}, which is {node.status}{instead}")


def check_acyclic(edges: Mapping[str, Iterable[str]]) -> None:
    """Refuse a circle among tasks (id → the ids it waits for; ids outside are leaves). Iterative, O(edges)."""
    waiting = {task: sum(dep in edges for dep in deps) for task, deps in edges.items()}
    dependents: dict[str, list[str]] = {}
    for task, deps in edges.items():
        for dep in deps:
            if dep in edges:
                dependents.setdefault(dep, []).append(task)
    done = [task for task, count in waiting.items() if not count]
    for task in done:
        for dependent in dependents.get(task, ()):
            waiting[dependent] -= 1
            if not waiting[dependent]:
                done.append(dependent)
    if len(done) < len(edges):
        circle = sorted(task for task, count in waiting.items() if count)[:10]
        raise Refused(Code.CYCLE, f"tasks wait for each other in a circle: {', '.join(circle)}")


def check_no_circle(run: RunState, waiter: TaskNode, targets: Iterable[str]) -> None:
    """`waiter` may wait for the targets, directly or through new tasks: none of them is it, or waits for it. Costs what
    waits for it, never the whole run."""
    wanted = set(targets)
    if not wanted:
        return
    waiting, todo = {waiter.id}, [waiter.id]
    while todo:
        for id in run.tasks[todo.pop()].dependents:
            if id not in waiting:
                waiting.add(id)
                todo.append(id)
    if waiter.id in wanted:
        raise Refused(Code.CYCLE, f"task {waiter.id} would wait for itself")
    circle = sorted(wanted & waiting)
    if circle:
        raise Outdated(Code.CYCLE, f"task {waiter.id} would wait for {circle[0]}, which waits for it")
