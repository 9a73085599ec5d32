"""What the indexes of a run must say, counted again from its tasks and its events in the plainest way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

import msgspec

from dagbok.events.canonical import Json
from dagbok.events.run import events as e
from dagbok.events.run.values import Condition, Usage
from dagbok.projections.task_graph.state import ACTIVE_TASK, CLOSED_RUN, FINAL_TASK, GONE_TASK, RunState, TaskNode

EXPECTED_ATTEMPT = {"ready": "work", "running": "work", "verifying": "verify"}
SETTLED = ("verified", "skipped")


def recount(run: RunState) -> None:
    """Every counter and index of the state equals what a walk over all tasks gives."""
    tasks = run.tasks.values()
    assert Counter({status: count for status, count in run.counts.items() if count}) == Counter(
        node.status for node in tasks
    )
    assert set(run.active) == {node.id for node in tasks if node.attempt is not None}
    assert set(run.blocked) == {node.id for node in tasks if node.status == "blocked"}
    assert set(run.failed) == {node.id for node in tasks if node.status == "failed"}
    assert set(run.cancelled) <= {node.id for node in tasks if node.status == "cancelled"}
    assert run.skipping == []
    assert run.edges == sum(len(node.deps) for node in tasks)
    assert run.open_roots == sum(run.tasks[root].status not in SETTLED for root in run.roots)
    assert [node.id for node in tasks if node.root] == sorted(run.roots, key=lambda root: run.tasks[root].order)
    assert [node.order for node in tasks] == list(range(len(run.tasks)))
    assert len(run.reviews) == len(set(run.reviews))
    assert set(run.resting) == {node.id for node in tasks if node.status == "backoff" and node.staged is not None}
    assert (run.blocked_by != "") == (run.status == "blocked") >= run.exhausted
    assert run.status != "blocked" or run.exhausted or run.blocked_by in run.blocked.values()
    held = [node.attempt.reserved for node in tasks if node.attempt is not None and node.attempt.reserved is not None]
    assert _amount(run.reserved) == _total(held)
    for node in tasks:
        _recount_task(run, node)


def _recount_task(run: RunState, node: TaskNode) -> None:
    assert len(set(node.deps)) == len(node.deps)
    assert node.open_deps == sum(run.tasks[dep].status not in SETTLED for dep in node.deps)
    settled = [_is_taken(run, node, run.tasks[dep]) for dep in node.deps if run.tasks[dep].status in SETTLED]
    assert (node.wanted, node.missed) == (any(settled), not all(settled))
    enough = all(settled) if node.spec.join == "all" else any(settled)
    assert sorted(node.dependents) == sorted(other.id for other in run.tasks.values() if node.id in other.deps)
    assert {condition.task for condition in node.conditions} <= set(node.deps)
    parent = None if node.created_by is None else run.tasks[node.created_by]
    assert node.depth == (0 if parent is None else parent.depth + 1)
    if node.attempt is not None:
        assert node.attempt.epoch == node.epoch
        assert node.attempt.kind == EXPECTED_ATTEMPT[node.status]
        assert (node.status == "running") == (node.attempt.kind == "work" and node.attempt.claim is not None)
    if node.status in ("ready", "running", "verifying", "backoff", "verified"):
        assert node.open_deps == 0
        assert enough or node.decompositions or not node.deps, "no edge leads to it"
    if node.status == "skipped":
        assert node.deps
        assert not node.open_deps
        assert not enough
        assert node.epoch == 0, "it never ran"
    if node.status == "verifying":
        assert node.staged is not None
    if node.status in FINAL_TASK or node.status == "failed":
        assert node.staged is None
    if node.status not in FINAL_TASK:
        gone = [dep for dep in node.deps if run.tasks[dep].status in GONE_TASK and dep not in run.cancelled]
        assert not gone, f"{node.id} waits for ever for {gone}: nobody is told to replace them"
    if node.status == "superseded":
        assert node.superseded_by in run.tasks
        assert not node.root
        assert not node.dependents


def _is_taken(run: RunState, node: TaskNode, dep: TaskNode) -> bool:
    """The edge from a task to one of its dependencies leads on: as the design says it, in the plainest way."""
    if dep.status != "verified":
        return False
    outputs = msgspec.json.decode(dep.outputs)
    return all(holds(condition, outputs) for condition in node.conditions if condition.task == dep.id)


def holds(condition: Condition, outputs: Json) -> bool:
    """Conditions as the tests of graphs use them: one name at the top of an object. What is not there equals nothing,
    not even null (ADR 8)."""
    name = condition.output[1:]
    if not isinstance(outputs, dict) or name not in outputs:
        return condition.op == "not_in"
    found = outputs[name]
    values = [msgspec.json.decode(value) for value in condition.values]
    if condition.op in ("in", "not_in"):
        return (found in values) == (condition.op == "in")
    return (
        isinstance(found, int)
        and {
            "lt": found < values[0],
            "le": found <= values[0],
            "gt": found > values[0],
            "ge": found >= values[0],
        }[condition.op]
    )


def nothing_is_forgotten(run: RunState, now_ms: int | None = None) -> None:
    """A run that goes on opens what it has room and means for, and says so when nothing can go on at all. `now_ms`: log
    time, when the wall time of the run counts as well."""
    tasks = run.tasks.values()
    wants = {node.id for node in tasks if node.status in ("ready", "verifying") and node.attempt is None}
    if run.status in CLOSED_RUN:
        assert not run.active
        return
    assert {task for _, _, task in run.ready if run.tasks[task].status == "ready"} | set(run.reviews) >= wants
    assert {task for _, _, task in run.backoffs} >= {node.id for node in tasks if node.status == "backoff"}
    assert len(run.active) <= run.limits.max_open
    if run.status == "running":
        assert run.active or any(node.status == "backoff" for node in tasks), "nothing could ever happen"
        assert len(run.active) == run.limits.max_open or not wants or _is_held_back(run, wants)
        assert run.open_roots > 0
        assert not (run.failed and run.bound().failure_policy == "fail_fast")
        assert now_ms is None or not _is_late(run, now_ms)
    if run.status == "blocked":
        assert not run.active
        assert not (run.failed and run.bound().failure_policy == "fail_fast")
        if any(node.status in ACTIVE_TASK for node in tasks):
            assert run.blocked_by == "budget_exhausted"
        else:
            assert run.blocked or _is_late(run, now_ms or 0)


def _is_held_back(run: RunState, wants: set[str]) -> bool:
    """Only work waits, and the first of it cannot be paid for now, or too much awaits a verdict."""
    waiting = [run.tasks[id] for id in wants]
    due = [run.tasks[id] for _, _, id in run.backoffs if run.tasks[id].status == "backoff"]
    assert all(node.status == "ready" for node in waiting), "a review is held back"
    pending = [
        node for node in run.tasks.values() if node.staged is not None and node.status in ("verifying", "backoff")
    ]
    if len(pending) >= run.limits.max_pending_verifications:
        return True
    first = min(waiting, key=lambda node: (-node.spec.priority, node.order))
    return any(not _fits(run, node) for node in (first, *due))


def _fits(run: RunState, node: TaskNode) -> bool:
    own = node.spec.limits
    tokens, cost = (0, Decimal(0)) if own is None else (own.tokens, Decimal(own.cost))
    used_tokens = run.spent.tokens + run.reserved.tokens
    used_cost = Decimal(run.spent.cost) + Decimal(run.reserved.cost)
    limits = run.limits
    if limits.max_tokens is not None and used_tokens + (tokens or 1) > limits.max_tokens:
        return False
    if limits.max_cost is None:
        return True
    most = Decimal(limits.max_cost)
    return used_cost + cost <= most if cost else used_cost < most


def _is_late(run: RunState, now_ms: int) -> bool:
    return run.limits.max_wall_ms is not None and now_ms >= run.started_ms + run.limits.max_wall_ms


class Accounts:
    """What a run has spent and how many bytes its candidates had, from its events alone."""

    def __init__(self) -> None:
        self.tokens = 0
        self.cost = Decimal(0)
        self.artifact_bytes = 0

    def seen(self, events: Iterable[e.Event]) -> None:
        """The events of one commit."""
        for event in events:
            usage = getattr(event, "usage", None)
            if isinstance(usage, Usage):
                self.tokens += usage.tokens
                self.cost += Decimal(usage.cost)
            if isinstance(event, e.CandidateSubmitted):
                self.artifact_bytes += sum(item.size_bytes for item in event.artifacts)

    def agree(self, run: RunState) -> None:
        """The state has the same sums."""
        assert _amount(run.spent) == (self.tokens, self.cost)
        assert run.artifact_bytes == self.artifact_bytes


def _amount(usage: Usage) -> tuple[int, Decimal]:
    return usage.tokens, Decimal(usage.cost)


def _total(usages: Iterable[Usage]) -> tuple[int, Decimal]:
    amounts = [_amount(usage) for usage in usages]
    return sum(tokens for tokens, _ in amounts), sum((cost for _, cost in amounts), Decimal(0))
