"""What becomes of a task whose attempt ended badly: another try after a growing delay, or the end."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from dagbok.agents.scheduler.decide.cause import By
from dagbok.agents.scheduler.decide.proceed import proceed
from dagbok.events.codes import Code
from dagbok.events.run.commands import MAX_RETRY_AFTER_MS
from dagbok.events.run.events import Event, TaskBackedOff, TaskBlocked, TaskFailed
from dagbok.events.run.values import AttemptKind
from dagbok.projections.task_graph.state import RunState, TaskNode


def retry_work(
    run: RunState, node: TaskNode, code: str, reason: str, by: By, *, retry_after_ms: int = 0
) -> Iterator[Event]:
    """After a failure that counted: back off while attempts are left, else fail with the last cause."""
    allowed = node.spec.max_attempts or run.limits.max_attempts
    if node.failures < allowed:
        due_ms = by.now_ms + _asked_for(retry_after_ms) + backoff_ms(run, node, node.failures)
        yield TaskBackedOff(node.id, due_ms, node.failures)
    else:
        yield TaskFailed(node.id, code, f"{reason} (attempt {node.failures} of {allowed})")
    yield from proceed(run, by.now_ms)


def retry_review(
    run: RunState, node: TaskNode, reason: str, by: By, *, again: bool = True, retry_after_ms: int = 0
) -> Iterator[Event]:
    """After an error of the verifier: ask it again later without running the worker, a few times; not at all when it
    would fail every time."""
    errors = node.verifier_errors
    if not again or errors >= run.limits.max_verifier_errors:
        yield TaskBlocked(node.id, Code.VERIFIER_ERROR, f"{reason} ({errors} times)")
    else:
        due_ms = by.now_ms + _asked_for(retry_after_ms) + backoff_ms(run, node, errors)
        yield TaskBackedOff(node.id, due_ms, node.failures, review=True)
    yield from proceed(run, by.now_ms)


def _asked_for(retry_after_ms: int) -> int:
    return max(0, min(retry_after_ms, MAX_RETRY_AFTER_MS))


def after_loss(run: RunState, node: TaskNode, kind: AttemptKind) -> Iterator[Event]:
    """A task whose processes keep dying is poison: it stops before it takes more of them down."""
    if node.lost < run.limits.max_lost:
        return
    reason = f"{node.lost} attempts were lost"
    yield TaskFailed(node.id, Code.POISON, reason) if kind == "work" else TaskBlocked(node.id, Code.POISON, reason)


def backoff_ms(run: RunState, node: TaskNode, times: int) -> int:
    """Doubles with each of the `times` that it went wrong up to the limit; between half and the whole of it, by a
    hash instead of a random number, so that the same history gives the same deadline."""
    full = min(run.limits.backoff_max_ms, run.limits.backoff_base_ms * (1 << min(times - 1, 30)))
    seed = sha256(f"{run.run}/{node.id}/{node.epoch}".encode()).digest()
    return full // 2 + (full - full // 2) * int.from_bytes(seed[:4], "big") // 2**32
