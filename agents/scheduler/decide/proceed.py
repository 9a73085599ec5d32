"""What follows from any change: attempts open as far as the run lets them, and the run ends or blocks when it must.

Everything is read from counters and heap tops, so the cost does not depend on the size of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from dagbok.agents.scheduler.decide.branch import close, fails_fast
from dagbok.agents.scheduler.decide.budget import may_work, out_of_time, overflow, reservation
from dagbok.agents.scheduler.decide.judges import key_of
from dagbok.events.codes import Code
from dagbok.events.run.events import (
    AttemptOpened,
    CloseCause,
    Event,
    RunBlocked,
    RunFailed,
    RunSucceeded,
    TaskBlocked,
    TaskSkipped,
)
from dagbok.events.run.values import NULL, AttemptKind
from dagbok.projections.task_graph.state import ACTIVE_TASK, RunState, TaskNode

NAMED_TASKS = 100
"""How many tasks an event about the run names as its cause."""


def proceed(run: RunState, now_ms: int) -> Iterator[Event]:
    """Skip what is not needed, open what may open, then see whether the run is over."""
    while run.skipping:
        yield TaskSkipped(run.skipping[0])
    while not _is_over(run, now_ms) and run.status == "running" and len(run.active) < run.limits.max_open:
        opening = _next(run, now_ms)
        if opening is None:
            break
        node, kind = opening
        if kind == "work" and (excess := overflow(run, node)):
            yield TaskBlocked(node.id, Code.CONTEXT_OVERFLOW, excess)
        else:
            yield _opened(run, node, kind)
    yield from _conclude(run, now_ms)


def _is_over(run: RunState, now_ms: int) -> bool:
    """Nothing that opened now would matter: every root is settled, the first failure ends the run, or its time is
    up."""
    return not run.open_roots or fails_fast(run) or out_of_time(run, now_ms)


def _next(run: RunState, now_ms: int) -> tuple[TaskNode, AttemptKind] | None:
    """Reviews first, since they finish what was begun; then tasks that waited out a backoff; then new ones. Work that
    the run cannot afford now holds back the work behind it, so that a large task is not starved by small ones."""
    if run.reviews:
        return run.tasks[run.reviews[0]], "verify"
    head = _next_work(run, now_ms)
    if head is None or head.staged is not None:
        return None if head is None else (head, "verify")
    if may_work(run, head):
        return head, "work"
    return next(((node, "verify") for id in run.resting if (node := run.tasks[id]).due_ms <= now_ms), None)


def _next_work(run: RunState, now_ms: int) -> TaskNode | None:
    if run.backoffs and run.backoffs[0][0] <= now_ms:
        return run.tasks[run.backoffs[0][2]]
    return run.tasks[run.ready[0][2]] if run.ready else None


def _opened(run: RunState, node: TaskNode, kind: AttemptKind) -> AttemptOpened:
    staged = node.staged
    phase = staged.phase if kind == "verify" and staged is not None else node.phase
    return AttemptOpened(
        task=node.id,
        epoch=node.epoch + 1,
        kind=kind,
        phase=phase,
        input_hash=input_hash(run, node, kind, phase),
        pool=node.spec.pool,
        key=key_of(run, node, kind),
        priority=node.spec.priority,
        reserved=reservation(node) if kind == "work" else None,
    )


def input_hash(run: RunState, node: TaskNode, kind: AttemptKind, phase: str) -> str:
    """What the attempt is about, as one hash (`messages.md`, section 4). A result for any other input is refused."""
    tasks = run.tasks
    dependencies = [(dep, [ref.sha256 for ref in tasks[dep].published]) for dep in sorted(node.deps)]
    problem = node.problem.hash if node.problem else None
    note = node.note.hash if node.note else None
    subject = node.staged.subject if kind == "verify" and node.staged is not None else ()
    about = (node.spec_hash, kind, phase, dependencies, problem, note, subject)
    whole = about if node.composition == NULL else (*about, node.composition)
    return sha256(msgspec.json.encode(whole)).hexdigest()


def _conclude(run: RunState, now_ms: int) -> Iterator[Event]:
    if run.status not in ("running", "paused"):
        return
    if run.open_roots == 0:
        yield from close_active(run, "run_succeeded")
        yield RunSucceeded()
    elif run.status == "paused":
        return
    elif fails_fast(run):
        yield from close_active(run, "run_failed")
        yield RunFailed(*_cause(run.failed))
    elif out_of_time(run, now_ms) and _can_go_on(run):
        yield from close_active(run, "budget_exhausted")
        yield RunBlocked(Code.BUDGET_EXHAUSTED, ())
    elif run.active:
        return
    elif unaffordable := _unaffordable(run, now_ms):
        yield RunBlocked(Code.BUDGET_EXHAUSTED, (unaffordable.id,))
    elif _can_go_on(run):
        return
    elif run.blocked:
        yield RunBlocked(*_cause(run.blocked))
    elif run.failed or run.cancelled:
        yield RunFailed(*_cause(run.failed or run.cancelled))
    else:
        yield RunFailed(Code.INTERNAL_ERROR, ())


def _can_go_on(run: RunState) -> bool:
    return any(run.counts.get(status) for status in ACTIVE_TASK)


def _unaffordable(run: RunState, now_ms: int) -> TaskNode | None:
    """With nothing running that could give back what it reserved, and no verdict to come: the work that is next and
    that the run cannot afford."""
    head = _next_work(run, now_ms)
    if head is None or head.staged is not None or may_work(run, head) or run.resting:
        return None
    return head


def close_active(run: RunState, cause: CloseCause) -> Iterator[Event]:
    """Close every attempt that is open or running."""
    yield from close([run.tasks[task] for task in run.active], cause)


def _cause(tasks: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    return next(iter(tasks.values())), tuple(tasks)[:NAMED_TASKS]
