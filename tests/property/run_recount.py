"""What the indexes of a run must say, counted again from its tasks in the plainest way."""

from __future__ import annotations

from collections import Counter

from dagbok.projections.task_graph.state import ACTIVE_TASK, CLOSED_RUN, RunState, TaskNode

EXPECTED_ATTEMPT = {"ready": "work", "running": "work", "verifying": "verify"}


def recount(run: RunState) -> None:
    """Every counter and index of the state equals what a walk over all tasks gives."""
    tasks = run.tasks.values()
    assert Counter({status: count for status, count in run.counts.items() if count}) == Counter(
        node.status for node in tasks
    )
    assert set(run.active) == {node.id for node in tasks if node.attempt is not None}
    assert set(run.blocked) == {node.id for node in tasks if node.status == "blocked"}
    assert set(run.failed) == {node.id for node in tasks if node.status == "failed"}
    assert run.edges == sum(len(node.deps) for node in tasks)
    assert run.open_roots == sum(run.tasks[root].status != "verified" for root in run.roots)
    assert [node.order for node in tasks] == list(range(len(run.tasks)))
    for node in tasks:
        _recount_task(run, node)


def _recount_task(run: RunState, node: TaskNode) -> None:
    assert len(set(node.deps)) == len(node.deps)
    assert node.open_deps == sum(run.tasks[dep].status != "verified" for dep in node.deps)
    assert sorted(node.dependents) == sorted(other.id for other in run.tasks.values() if node.id in other.deps)
    parent = None if node.created_by is None else run.tasks[node.created_by]
    assert node.depth == (0 if parent is None else parent.depth + 1)
    if node.attempt is not None:
        assert node.attempt.epoch == node.epoch
        assert node.attempt.kind == EXPECTED_ATTEMPT[node.status]
        assert (node.status == "running") == (node.attempt.kind == "work" and node.attempt.claim is not None)
    if node.status in ("ready", "running", "verifying", "backoff", "verified"):
        assert node.open_deps == 0
    if node.status == "verifying":
        assert node.staged is not None


def nothing_is_forgotten(run: RunState) -> None:
    """A run that goes on has room for nothing that could open, and says so when nothing can go on at all."""
    tasks = run.tasks.values()
    wants = {node.id for node in tasks if node.status in ("ready", "verifying") and node.attempt is None}
    if run.status in CLOSED_RUN:
        assert not run.active
        return
    assert {task for _, _, task in run.ready if run.tasks[task].status == "ready"} | set(run.reviews) >= wants
    assert {task for _, _, task in run.backoffs} >= {node.id for node in tasks if node.status == "backoff"}
    assert len(run.active) <= run.limits.max_open
    if run.status == "running":
        assert len(run.active) == run.limits.max_open or not wants
        assert any(node.status in ACTIVE_TASK for node in tasks)
        assert run.open_roots > 0
        assert not (run.failed and run.bound().failure_policy == "fail_fast")
    if run.status == "blocked":
        assert run.blocked
        assert not any(node.status in ACTIVE_TASK for node in tasks)
