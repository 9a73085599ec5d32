"""What is refused of what workers and verifiers say of their attempts: the second description of those rules."""

from __future__ import annotations

from collections.abc import Iterator

from dagbok.events.run import commands as c
from dagbok.events.run.values import Claim, Decompose, Report
from tests.property.run_model import Model
from tests.property.run_model_task import Attempt, Task


def renewed(run: Model, command: c.RenewLeases, now_ms: int) -> dict[str, Attempt]:
    """The attempts whose lease holds on."""
    found = {}
    for renewal in command.renewals:
        task = run.tasks.get(renewal.task)
        attempt = None if task is None else task.attempt
        if attempt is None or attempt.claim is None or attempt.epoch != renewal.epoch:
            continue
        if not _of_a_holder(attempt, renewal.claim, now_ms):
            found[renewal.task] = attempt
    return found


AttemptCommand = (
    c.StartAttempt
    | c.RejectAttempt
    | c.SubmitOutcome
    | c.SubmitVerdict
    | c.FailAttempt
    | c.ReleaseAttempt
    | c.SuspendSession
)


def of_an_attempt(run: Model, command: AttemptCommand, now_ms: int) -> Iterator[str]:
    """What is against a command of whoever holds an attempt, or wants to."""
    task = run.tasks.get(command.task)
    if task is None or task.attempt is None or task.attempt.epoch != command.epoch:
        yield "not_found" if task is None else "stale_attempt"
        return
    attempt = task.attempt
    match command:
        case c.StartAttempt() | c.RejectAttempt():
            if attempt.claim is not None:
                yield "attempt_claimed"
            elif isinstance(command, c.StartAttempt) and run.word == "paused":
                yield "run_paused"
            return
        case c.SubmitOutcome(input_hash=input_hash):
            if attempt.kind != "work":
                yield "stale_attempt"
            if attempt.input_hash != input_hash:
                yield "version_conflict"
        case c.SuspendSession():
            yield from _of_a_session(run, task, attempt, command)
        case c.SubmitVerdict(report=report):
            if attempt.kind != "verify":
                yield "stale_attempt"
            elif not _is_bound(run, task, attempt, report):
                yield "verdict_mismatch"
    yield from _of_a_holder(attempt, command.claim, now_ms)


def _of_a_session(run: Model, task: Task, attempt: Attempt, command: c.SuspendSession) -> Iterator[str]:
    if attempt.kind != "work":
        yield "stale_attempt"
    if attempt.claim is None:
        yield "lease_rejected"
    if command.turn != len(task.session) + 1:
        yield "version_conflict"
    most, all_most = run.limits.max_artifact_bytes, run.limits.max_total_artifact_bytes
    more = command.part.size_bytes
    if more > most or (all_most is not None and run.artifact_bytes + more > all_most):
        yield "budget_exhausted"


def _of_a_holder(attempt: Attempt, claim: Claim, now_ms: int) -> set[str]:
    held = attempt.claim is None or (attempt.claim == claim and now_ms < attempt.lease_until_ms)
    return set() if held else {"lease_rejected"}


def _is_bound(run: Model, task: Task, attempt: Attempt, report: Report) -> bool:
    key = run.judge(task)
    pin, kind = run.pinned.verifiers[key], "decomposition" if isinstance(task.staged, Decompose) else "candidate"
    named = (report.kind, report.verifier, report.version, report.digest, report.assurance, report.input_hash)
    return named == (kind, key, pin.version, pin.digest, pin.assurance, attempt.input_hash)
