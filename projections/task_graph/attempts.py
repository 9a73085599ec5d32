"""Folds of the events about attempts: opened, claimed, renewed, handed back, lost, failed, and what they return."""

from __future__ import annotations

from dagbok.events.canonical import sha256_hex
from dagbok.events.run import events as e
from dagbok.events.run.amounts import plus
from dagbok.events.run.values import Usage
from dagbok.projections.task_graph.nodes import ask_review, end_attempt, make_ready, open_attempt, set_status
from dagbok.projections.task_graph.refs import staged_ref
from dagbok.projections.task_graph.state import At, Attempt, ProblemRef, RunState, Staged, TaskNode


def attempt_opened(run: RunState, event: e.AttemptOpened, at: At) -> None:
    """The task's one present attempt; its epoch never comes again."""
    attempt = Attempt(
        epoch=event.epoch,
        kind=event.kind,
        phase=event.phase,
        input_hash=event.input_hash,
        opened_ms=at.now_ms,
        opened_at=(at.offset, at.index),
        reserved=event.reserved,
    )
    if event.reserved is not None:
        run.reserved = plus(run.reserved, event.reserved)
    open_attempt(run, run.tasks[event.task], attempt)


def attempt_started(run: RunState, event: e.AttemptStarted, at: At) -> None:
    """The claim is bound to the epoch."""
    node, attempt = _present(run, event.task)
    attempt.claim = event.claim
    attempt.reply_to = event.reply_to
    attempt.lease_until_ms = event.lease_until_ms
    attempt.timeout_at_ms = event.timeout_at_ms
    attempt.started_by = (at.command_id, at.offset)
    if attempt.kind == "work":
        set_status(run, node, "running")


def leases_renewed(run: RunState, event: e.LeasesRenewed, at: At) -> None:
    """Leases that hold on."""
    for lease in event.accepted:
        attempt = _present(run, lease.task)[1]
        attempt.lease_until_ms = lease.until_ms
        attempt.renewed_by = (at.command_id, at.offset)


def attempt_unserved(run: RunState, event: e.AttemptUnserved, at: At) -> None:
    """Stays open; sent again later, with growing delay."""
    attempt = _present(run, event.task)[1]
    attempt.unserved += 1
    attempt.rejected_by[event.process] = (at.command_id, at.offset)


def attempt_returned(run: RunState, event: e.AttemptReleased | e.AttemptClosed, at: At) -> None:
    """Ended without a result that counts: the task wants another attempt of the same kind."""
    run.spent = plus(run.spent, event.usage)
    _again(run, event.task, at)


def attempt_lost(run: RunState, event: e.AttemptLost, at: At) -> None:
    """Counted apart from failures: a crash is not the task's fault, until it happens too often."""
    run.tasks[event.task].lost += 1
    run.spent = plus(run.spent, event.usage)
    _again(run, event.task, at)


def attempt_failed(run: RunState, event: e.AttemptFailed, at: At) -> None:
    """A failed work attempt may spend one of the task's; a failed review does not, and is asked again."""
    node, attempt = _present(run, event.task)
    end_attempt(run, node, at)
    run.spent = plus(run.spent, event.usage)
    if attempt.kind == "verify":
        node.verifier_errors += 1
        ask_review(run, node)
        return
    node.failures += event.counted
    node.problem = problem_at(at, event.failure.code, event.failure.message)


def candidate_submitted(run: RunState, event: e.CandidateSubmitted, at: At) -> None:
    """The candidate is staged and awaits a verdict."""
    node, attempt = _present(run, event.task)
    run.artifact_bytes += sum([item.size_bytes for item in event.artifacts])
    node.staged = Staged(
        kind="candidate",
        phase=attempt.phase,
        subject=event.subject,
        artifacts=tuple(staged_ref(item, at, index) for index, item in enumerate(event.artifacts)),
        outputs=event.outputs.copy(),  # decoded from the log, it is a view that would keep the whole commit
        place=(at.offset, at.index),
    )
    _submitted(run, node, event.usage, at)


def decomposition_proposed(run: RunState, event: e.DecompositionProposed, at: At) -> None:
    """The proposal awaits a verdict; it is kept whole, because deciding on it later may read nothing else."""
    node, attempt = _present(run, event.task)
    node.staged = Staged(
        kind="decomposition",
        phase=attempt.phase,
        subject=(event.digest,),
        proposal=event.proposal,
        place=(at.offset, at.index),
    )
    _submitted(run, node, event.usage, at)


def decomposition_refused(run: RunState, event: e.DecompositionRefused, at: At) -> None:
    """The reason reaches the next attempt. Unless it was spent, the task may run again on the graph as it is now."""
    node = run.tasks[event.task]
    end_attempt(run, node, at)
    run.spent = plus(run.spent, event.usage)
    node.staged = None
    node.problem = problem_at(at, event.code, event.reason)
    if not event.spent:
        node.conflicts += 1
        make_ready(run, node)


def verdict_recorded(run: RunState, event: e.VerdictRecorded, at: At) -> None:
    """The review is over; what follows from the verdict are events of their own."""
    node, _ = _present(run, event.task)
    end_attempt(run, node, at)
    run.spent = plus(run.spent, event.usage)
    verdict = event.report.verdict
    if verdict == "error":
        node.verifier_errors += 1
        ask_review(run, node)
    elif verdict != "pass":
        node.failures += verdict == "fail"
        node.problem = problem_at(at, "verification_failed" if verdict == "fail" else "inconclusive", event.report_id)


def problem_at(at: At, code: str, text: str) -> ProblemRef:
    """Where to read what went wrong, and a hash of it for the input of the next attempt."""
    return ProblemRef(str(code), at.offset, at.index, sha256_hex(f"{code}\n{text}".encode()))


def _submitted(run: RunState, node: TaskNode, usage: Usage, at: At) -> None:
    end_attempt(run, node, at)
    run.spent = plus(run.spent, usage)
    node.verifier_errors = 0
    ask_review(run, node)


def _again(run: RunState, task: str, at: At) -> None:
    node, attempt = _present(run, task)
    end_attempt(run, node, at)
    if attempt.kind == "work":
        make_ready(run, node)
    else:
        ask_review(run, node)


def _present(run: RunState, task: str) -> tuple[TaskNode, Attempt]:
    node = run.tasks[task]
    if node.attempt is None:
        raise LookupError(f"task {task} of run {run.run} has no attempt")
    return node, node.attempt
