"""A task and what was created below it: how that part of a graph is stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from dagbok.agents.scheduler.decide.budget import charged
from dagbok.events.run.events import AttemptClosed, CloseCause, Event, RunReopened, TaskCancelled
from dagbok.projections.task_graph.state import FINAL_TASK, GONE_TASK, RunState, TaskNode


def doomed_below(run: RunState, top: TaskNode, needed: Iterable[str] = ()) -> Sequence[TaskNode]:
    """The open tasks that were created below `top`, or left to it by a task that is gone, in the order in which they
    came, but for those that something else still waits for, or will (`needed`). Costs what the branch has in tasks and
    edges."""
    below = _open_below(run, top)
    kept: set[str] = set()
    todo = [id for id, node in below.items() if _is_needed_outside(run, node, top, below)]
    todo += [id for id in needed if id in below]
    while todo:
        id = todo.pop()
        if id not in kept:
            kept.add(id)
            todo += [dep for dep in run.tasks[id].deps if dep in below]
    return sorted([node for id, node in below.items() if id not in kept], key=lambda node: node.order)


def close(nodes: Iterable[TaskNode], cause: CloseCause) -> Iterator[Event]:
    """Close their attempts."""
    for node in nodes:
        if node.attempt is not None:
            yield AttemptClosed(node.id, node.epoch, cause, charged(node.attempt))


def cancel(nodes: Iterable[TaskNode], cause: Literal["parent_cancelled", "parent_superseded"]) -> Iterator[Event]:
    """They end with the task that created them."""
    for node in nodes:
        yield TaskCancelled(node.id, cause)


def reopen(run: RunState, reason: str) -> Iterator[Event]:
    """A run that failed or is blocked goes on, if the rest of it lets it: under `fail_fast` one failure is enough."""
    if run.status == "blocked" or (run.status == "failed" and not fails_fast(run)):
        yield RunReopened(reason)


def fails_fast(run: RunState) -> bool:
    """A task has failed, and the first failure ends the run."""
    return bool(run.failed) and run.bound().failure_policy == "fail_fast"


def _open_below(run: RunState, top: TaskNode) -> dict[str, TaskNode]:
    found: dict[str, TaskNode] = {}
    todo = [top]
    while todo:
        parent = todo.pop()
        for node in (node for dep in parent.deps for node in _with_replaced(run, dep)):
            if node.id not in found and _belongs(run, node, parent):
                found[node.id] = node
                todo.append(node)
    found.pop(top.id, None)  # a task whose place one took that `top` waits for may have created `top` itself
    return {id: node for id, node in found.items() if node.status not in FINAL_TASK}


def _belongs(run: RunState, node: TaskNode, parent: TaskNode) -> bool:
    """What `parent` created ends with it. What it only waits for does too, if who created that is gone, so that nobody
    else would ever end it."""
    creator = node.created_by
    return creator is not None and (creator == parent.id or run.tasks[creator].status in GONE_TASK)


def _with_replaced(run: RunState, id: str | None) -> Iterator[TaskNode]:
    """A task, and those whose place it took: what they created and somebody else still waited for went on."""
    while id is not None:
        yield run.tasks[id]
        id = run.tasks[id].supersedes


def _is_needed_outside(run: RunState, node: TaskNode, top: TaskNode, below: dict[str, TaskNode]) -> bool:
    return node.root or any(
        id != top.id and id not in below and run.tasks[id].status not in FINAL_TASK for id in node.dependents
    )
