"""Commands of workers, verifiers and timers as they would be sent now: with the epoch, the input and the binding that
the state of the run has at present. Each value may be overridden, to see what a wrong one leads to."""

from __future__ import annotations

import msgspec

from dagbok.agents.scheduler.decide.judges import judge_of
from dagbok.events.canonical import sha256_hex
from dagbok.events.run.amounts import NOTHING
from dagbok.events.run.commands import (
    FailAttempt,
    FireTimer,
    ReleaseAttempt,
    StartAttempt,
    SubmitOutcome,
    SubmitVerdict,
    SuspendSession,
    TimerKind,
)
from dagbok.events.run.values import NULL, ArtifactItem, Claim, Failure, OutcomeData, Report, Usage, VerdictWord
from dagbok.projections.task_graph.state import RunState
from dagbok.testing.make import CLAIM

__all__ = [
    "TimerKind",
    "deadline_ms",
    "fail_attempt",
    "fire_timer",
    "holder",
    "release_attempt",
    "report",
    "start_attempt",
    "submit_outcome",
    "submit_verdict",
    "suspend_session",
]


def start_attempt(run: RunState, task: str, *, claim: Claim = CLAIM) -> StartAttempt:
    """Claim the present attempt."""
    return StartAttempt(task, run.tasks[task].epoch, claim)


def submit_outcome(
    run: RunState,
    task: str,
    outcome: OutcomeData,
    *,
    claim: Claim | None = None,
    input_hash: str | None = None,
    usage: Usage = NOTHING,
) -> SubmitOutcome:
    """What the worker of the present attempt returns. Without `claim`, by whoever holds the attempt."""
    attempt = run.tasks[task].attempt
    known = "" if attempt is None else attempt.input_hash
    return SubmitOutcome(
        task=task,
        epoch=run.tasks[task].epoch,
        claim=claim or holder(run, task),
        input_hash=known if input_hash is None else input_hash,
        outcome=outcome,
        usage=usage,
    )


def report(run: RunState, task: str, verdict: VerdictWord, *, diagnostics: msgspec.Raw = NULL) -> Report:
    """A report that is bound to the present review of the task, as its pinned verifier would make it."""
    node = run.tasks[task]
    if node.attempt is None or node.staged is None:
        raise AssertionError(f"task {task} is {node.status}: there is no review to report on")
    key = judge_of(run, node)
    bound = run.bound().verifiers[key]
    return Report(
        kind=node.staged.kind,
        verdict=verdict,
        verifier=key,
        version=bound.version,
        digest=bound.digest,
        assurance=bound.assurance,
        input_hash=node.attempt.input_hash,
        subject=node.staged.subject,
        diagnostics=diagnostics,
    )


def submit_verdict(
    run: RunState, task: str, verdict: VerdictWord | Report, *, claim: Claim | None = None, usage: Usage = NOTHING
) -> SubmitVerdict:
    """What the verifier of the present review says: a word, or a whole report."""
    said = verdict if isinstance(verdict, Report) else report(run, task, verdict)
    return SubmitVerdict(task, run.tasks[task].epoch, claim or holder(run, task), said, usage)


def suspend_session(
    run: RunState, task: str, part: bytes, *, keep: int = 0, turn: int | None = None, claim: Claim | None = None
) -> SuspendSession:
    """The worker of the present attempt puts its session down, behind the turn that is there unless told otherwise."""
    node = run.tasks[task]
    follows = 1 if node.session is None else node.session.turn + 1
    item = ArtifactItem("session", sha256_hex(part), len(part), "application/json", part)
    return SuspendSession(task, node.epoch, claim or holder(run, task), turn or follows, item, keep)


def fail_attempt(
    run: RunState,
    task: str,
    failed: Failure,
    *,
    claim: Claim | None = None,
    usage: Usage = NOTHING,
    retry_after_ms: int = 0,
) -> FailAttempt:
    """The present attempt failed."""
    return FailAttempt(task, run.tasks[task].epoch, claim or holder(run, task), failed, usage, retry_after_ms)


def release_attempt(run: RunState, task: str, *, claim: Claim | None = None, usage: Usage = NOTHING) -> ReleaseAttempt:
    """The present attempt is handed back."""
    return ReleaseAttempt(task, run.tasks[task].epoch, claim or holder(run, task), usage)


def fire_timer(run: RunState, kind: TimerKind, task: str = "") -> FireTimer:
    """The timer of the deadline that the task has now; of the wall time (`wall`) of the run, which names no task."""
    epoch = 0 if kind == "wall" else run.tasks[task].epoch
    return FireTimer(kind, task, epoch, deadline_ms(run, kind, task))


def deadline_ms(run: RunState, kind: TimerKind, task: str = "") -> int:
    """Log time of a deadline of the task, or of the run. Raises `AssertionError` when it has none of this kind."""
    if kind == "wall":
        if run.limits.max_wall_ms is None:
            raise AssertionError("the wall time of the run has no limit")
        return run.started_ms + run.limits.max_wall_ms
    node, attempt = run.tasks[task], run.tasks[task].attempt
    if kind == "backoff" and node.status == "backoff":
        return node.due_ms
    if kind == "lease" and attempt is not None and attempt.claim is not None:
        return attempt.lease_until_ms
    if kind == "timeout" and attempt is not None and attempt.timeout_at_ms is not None:
        return attempt.timeout_at_ms
    raise AssertionError(f"task {task} is {node.status}: it has no deadline of kind {kind}")


def holder(run: RunState, task: str) -> Claim:
    """The claim that holds the present attempt; `CLAIM` when it is open."""
    attempt = run.tasks[task].attempt
    return CLAIM if attempt is None or attempt.claim is None else attempt.claim
