"""What follows from any change: attempts open as far as the run lets them, and the run ends or blocks when it must.

Everything is read from counters and heap tops, so the cost does not depend on the size of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from dagbok.events.codes import Code
from dagbok.events.run.events import (
    AttemptClosed,
    AttemptOpened,
    CloseCause,
    Event,
    RunBlocked,
    RunFailed,
    RunSucceeded,
)
from dagbok.events.run.values import STRUCTURE, AttemptKind
from dagbok.projections.task_graph.state import ACTIVE_TASK, RunState, TaskNode

NAMED_TASKS = 100
"""How many tasks an event about the run names as its cause."""


def proceed(run: RunState, now_ms: int) -> Iterator[Event]:
    """Open what may open, then see whether the run is over."""
    while not _is_over(run) and run.status == "running" and len(run.active) < run.limits.max_open:
        opening = _next(run, now_ms)
        if opening is None:
            break
        yield _opened(run, *opening)
    yield from _conclude(run)


def _is_over(run: RunState) -> bool:
    """Nothing that opened now would matter: every root is verified, or the first failure ends the run."""
    return not run.open_roots or (bool(run.failed) and run.bound().failure_policy == "fail_fast")


def _next(run: RunState, now_ms: int) -> tuple[TaskNode, AttemptKind] | None:
    """Reviews first, since they finish what was begun; then tasks that waited out a backoff; then new ones."""
    if run.reviews:
        return run.tasks[run.reviews[0]], "verify"
    if run.backoffs and run.backoffs[0][0] <= now_ms:
        return run.tasks[run.backoffs[0][2]], "work"
    if run.ready:
        return run.tasks[run.ready[0][2]], "work"
    return None


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
        key=judge_of(run, node) if kind == "verify" else node.spec.worker,
        priority=node.spec.priority,
    )


def judge_of(run: RunState, node: TaskNode) -> str:
    """Which verifier judges what the task has staged, or would stage: its own for candidates; for decompositions the
    one it names for them, else its own if that judges decompositions, else the built-in structure check."""
    if node.staged is not None and node.staged.kind == "candidate":
        return node.spec.verifier
    return decomposition_judge(run, node)


def decomposition_judge(run: RunState, node: TaskNode) -> str:
    """The judge of the task's decompositions."""
    if node.spec.proposal_verifier is not None:
        return node.spec.proposal_verifier
    own = run.bound().verifiers.get(node.spec.verifier)
    return node.spec.verifier if own is not None and "decomposition" in own.judges else STRUCTURE


def input_hash(run: RunState, node: TaskNode, kind: AttemptKind, phase: str) -> str:
    """What the attempt is about, as one hash (`messages.md`, section 4). A result for any other input is refused."""
    tasks = run.tasks
    dependencies = [(dep, [ref.sha256 for ref in tasks[dep].published]) for dep in sorted(node.deps)]
    problem = node.problem.hash if node.problem else None
    note = node.note.hash if node.note else None
    subject = node.staged.subject if kind == "verify" and node.staged is not None else ()
    return sha256(msgspec.json.encode((node.spec_hash, kind, phase, dependencies, problem, note, subject))).hexdigest()


def _conclude(run: RunState) -> Iterator[Event]:
    if run.status not in ("running", "paused"):
        return
    if run.open_roots == 0:
        yield from close_active(run, "run_succeeded")
        yield RunSucceeded()
    elif run.status == "paused":
        return
    elif run.failed and run.bound().failure_policy == "fail_fast":
        yield from close_active(run, "run_failed")
        yield RunFailed(*_cause(run.failed))
    elif run.active or any(run.counts.get(status) for status in ACTIVE_TASK):
        return
    elif run.blocked:
        yield RunBlocked(*_cause(run.blocked))
    elif run.failed:
        yield RunFailed(*_cause(run.failed))
    else:
        yield RunFailed(Code.INTERNAL_ERROR, ())


def close_active(run: RunState, cause: CloseCause) -> Iterator[Event]:
    """Close every attempt that is open or running."""
    for task in list(run.active):
        yield AttemptClosed(task, run.tasks[task].epoch, cause)


def _cause(tasks: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    return next(iter(tasks.values())), tuple(tasks)[:NAMED_TASKS]
