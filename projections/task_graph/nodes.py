"""The few moves that every event is made of: status with its counters, the ready heap, opening and closing an
attempt."""

from __future__ import annotations

from heapq import heappop, heappush

from dagbok.events.run.amounts import minus
from dagbok.projections.task_graph.state import At, Attempt, RunState, TaskNode, TaskStatus


def set_status(run: RunState, node: TaskNode, status: TaskStatus) -> None:
    """Move a task to `status` and keep the counters of the run true."""
    run.counts[node.status] -= 1
    run.counts[status] = run.counts.get(status, 0) + 1
    node.status = status


def make_ready(run: RunState, node: TaskNode) -> None:
    """The task may run as soon as the run lets it: by priority, then in the order in which tasks came."""
    set_status(run, node, "ready")
    heappush(run.ready, (-node.spec.priority, node.order, node.id))


def wake(run: RunState, node: TaskNode) -> None:
    """All its edges are settled: it may run if enough of them are taken, or none is needed; else it will be skipped. A
    task that was decomposed is begun already, and integrates whatever its children left."""
    enough = node.wanted if node.spec.join == "any" else not node.missed
    if enough or node.decompositions or not node.deps:
        make_ready(run, node)
    else:
        run.skipping.append(node.id)


def ask_review(run: RunState, node: TaskNode) -> None:
    """What the task has staged awaits a verdict."""
    set_status(run, node, "verifying")
    run.reviews.append(node.id)


def open_attempt(run: RunState, node: TaskNode, attempt: Attempt) -> None:
    """Give the task its one present attempt."""
    node.epoch = attempt.epoch
    node.attempt = attempt
    run.active[node.id] = None
    if node.status == "backoff":
        run.resting.pop(node.id, None)
        set_status(run, node, "ready" if attempt.kind == "work" else "verifying")
    elif attempt.kind == "verify":
        run.reviews.remove(node.id)
    drop_stale(run)


def close_attempt(run: RunState, node: TaskNode) -> None:
    """The task has no attempt any more, and nothing is reserved for it."""
    if node.attempt is not None and node.attempt.reserved is not None:
        run.reserved = minus(run.reserved, node.attempt.reserved)
    node.attempt = None
    run.active.pop(node.id, None)


def end_attempt(run: RunState, node: TaskNode, at: At) -> None:
    """Close the present attempt, if there is one, and remember the command that did it."""
    if node.attempt is None:
        return
    if node.attempt.kind == "work":
        node.worked_by = (at.command_id, at.offset)
    else:
        node.judged_by = (at.command_id, at.offset)
    close_attempt(run, node)


def give_up(run: RunState, node: TaskNode, status: TaskStatus) -> None:
    """The task stops here: no attempt, nothing that awaits one."""
    close_attempt(run, node)
    if node.id in run.reviews:
        run.reviews.remove(node.id)
    run.resting.pop(node.id, None)
    set_status(run, node, status)
    drop_stale(run)


def drop_task(run: RunState, node: TaskNode, status: TaskStatus) -> None:
    """The task leaves the graph for good: whatever it had staged or was held up by is of no interest any more."""
    node.staged = None
    run.blocked.pop(node.id, None)
    run.failed.pop(node.id, None)
    run.cancelled.pop(node.id, None)
    give_up(run, node, status)


def drop_stale(run: RunState) -> None:
    """Keep the tops of both heaps true, so that a decider only has to look at them."""
    ready, backoffs, tasks = run.ready, run.backoffs, run.tasks
    while ready and (tasks[ready[0][2]].status != "ready" or tasks[ready[0][2]].attempt is not None):
        heappop(ready)
    while backoffs and not _waits(tasks[backoffs[0][2]], backoffs[0][0]):
        heappop(backoffs)


def _waits(node: TaskNode, due_ms: int) -> bool:
    return node.status == "backoff" and node.due_ms == due_ms
