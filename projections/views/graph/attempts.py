"""Rows of the events about attempts: opened, claimed, handed back, lost, failed, and what they return."""

from __future__ import annotations

from typing import Final

from dagbok.events.run import events as e
from dagbok.events.run.values import ArtifactItem
from dagbok.projections.views.graph.memory import At, RunMemory
from dagbok.projections.views.graph.moves import drop_staged, end, judge
from dagbok.projections.views.graph.patches import Started, Unserved
from dagbok.projections.views.graph.rows import ArtifactRow, AttemptRow, AttemptStatus, TaskRow
from dagbok.projections.views.graph.spending import capped, reserve

SHOWN_CHARS: Final = 500
"""How much of a verdict's diagnostics stands beside a status; the whole report is in `reports`."""


def attempt_opened(run: RunMemory, event: e.AttemptOpened, at: At) -> None:
    """The task's one present attempt; its epoch never comes again."""
    task, epoch, kind = event.task, event.epoch, event.kind
    row = run.task(task)
    row.epoch = epoch
    row.open_kind = kind
    if row.opened_ms is None:
        row.opened_ms = at.now_ms
    if kind == "work":
        row.attempts += 1
    if row.status == "backoff":
        run.set_status(row, "ready" if kind == "work" else "verifying")
    attempt = run.attempts[task, epoch] = AttemptRow(
        at.tenant, at.project, run.run, task, epoch, kind, event.phase, event.pool, event.key, at.now_ms
    )
    if event.reserved is not None:
        reserve(run, row, event.reserved)
        attempt.tokens_reserved, attempt.cost_reserved = row.tokens_reserved, row.cost_reserved


def attempt_started(run: RunMemory, event: e.AttemptStarted, at: At) -> None:
    """The claim is bound to the epoch."""
    row = run.task(event.task)
    if row.started_ms is None:
        row.started_ms = at.now_ms
    attempt = run.attempts.get((event.task, event.epoch))
    if attempt is None:
        run.started.append(Started(run.run, event.task, event.epoch, event.claim.process, at.now_ms))
    else:
        attempt.status = "running"
        attempt.process = event.claim.process
        attempt.started_ms = at.now_ms
    if row.open_kind == "work":
        run.set_status(row, "running")


def attempt_unserved(run: RunMemory, event: e.AttemptUnserved, at: At) -> None:
    """Stays open, visibly."""
    attempt = run.attempts.get((event.task, event.epoch))
    if attempt is None:
        run.unserved.append(Unserved(run.run, event.task, event.epoch))
    else:
        attempt.unserved += 1


def attempt_released(run: RunMemory, event: e.AttemptReleased, at: At) -> None:
    """Handed back."""
    _again(run, event, at, "released")


def attempt_closed(run: RunMemory, event: e.AttemptClosed, at: At) -> None:
    """Cancelled; the task keeps its place."""
    _again(run, event, at, "cancelled", event.cause)


def attempt_lost(run: RunMemory, event: e.AttemptLost, at: At) -> None:
    """Counted apart from failures."""
    run.task(event.task).lost += 1
    _again(run, event, at, "lost", event.code)


def attempt_failed(run: RunMemory, event: e.AttemptFailed, at: At) -> None:
    """What follows for a work attempt are events of their own; a review is asked again."""
    row, failure = run.task(event.task), event.failure
    kind = row.open_kind
    message = f"{failure.type}: {failure.message}" if failure.type else failure.message
    end(run, row, at, event.epoch, "failed", code=failure.code, message=message, usage=event.usage)
    if kind == "verify":
        row.verifier_errors += 1
        run.set_status(row, "verifying")
        return
    row.failures += event.counted
    row.code, row.reason = failure.code, message


def candidate_submitted(run: RunMemory, event: e.CandidateSubmitted, at: At) -> None:
    """The candidate is staged and awaits a verdict."""
    row = run.task(event.task)
    end(run, row, at, event.epoch, "submitted", outcome="candidate", process=event.claim.process, usage=event.usage)
    of = run.bound()
    of.artifact_bytes = capped(of.artifact_bytes + sum([item.size_bytes for item in event.artifacts]))
    row.staged = "candidate"
    _submitted(run, row, event.epoch)
    run.artifacts[event.task, event.epoch] = [
        _artifact(run, row, event.epoch, item, index, at) for index, item in enumerate(event.artifacts)
    ]


def session_suspended(run: RunMemory, event: e.SessionSuspended, at: At) -> None:
    """What sessions take counts like artifacts."""
    of = run.bound()
    of.artifact_bytes = capped(of.artifact_bytes + event.part.size_bytes)


def decomposition_proposed(run: RunMemory, event: e.DecompositionProposed, at: At) -> None:
    """The proposal awaits a verdict."""
    row = run.task(event.task)
    end(run, row, at, event.epoch, "submitted", outcome="decompose", process=event.claim.process, usage=event.usage)
    row.staged = "decomposition"
    _submitted(run, row, event.epoch)


def decomposition_refused(run: RunMemory, event: e.DecompositionRefused, at: At) -> None:
    """Unless an attempt was spent, the task is ready again at once; else it is blocked in the same commit."""
    row = run.task(event.task)
    code, reason = event.code, event.reason
    if row.open_kind is not None:
        said = {"code": code, "message": reason, "process": event.claim.process}
        end(run, row, at, event.epoch, "failed", outcome="decompose", usage=event.usage, **said)
    else:
        judge(run, row, "failed", code, reason)
    drop_staged(row)
    row.code, row.reason = code, reason
    if not event.spent:
        run.set_status(row, "ready")


def verdict_recorded(run: RunMemory, event: e.VerdictRecorded, at: At) -> None:
    """The review is over; what follows from the verdict are events of their own."""
    row, verdict = run.task(event.task), event.report.verdict
    status: AttemptStatus = "failed" if verdict == "error" else "succeeded"
    end(run, row, at, event.epoch, status, outcome=verdict, process=event.claim.process, usage=event.usage)
    if verdict == "pass":
        return
    shown = str(event.report.diagnostics, "utf-8")[:SHOWN_CHARS]
    row.reason = None if shown == "null" else shown
    if verdict == "error":
        row.verifier_errors += 1
        row.code = "verifier_error"
        run.set_status(row, "verifying")
        return
    row.failures += verdict == "fail"
    row.code = "verification_failed" if verdict == "fail" else "inconclusive"
    judge(run, row, "failed", row.code, row.reason)


def _again(
    run: RunMemory,
    event: e.AttemptReleased | e.AttemptClosed | e.AttemptLost,
    at: At,
    status: AttemptStatus,
    code: str | None = None,
) -> None:
    """The task wants another attempt of the same kind."""
    row = run.task(event.task)
    kind = row.open_kind
    end(run, row, at, event.epoch, status, code=code, usage=event.usage)
    run.set_status(row, "ready" if kind == "work" else "verifying")


def _submitted(run: RunMemory, row: TaskRow, epoch: int) -> None:
    row.staged_epoch = epoch
    row.verifier_errors = 0
    run.set_status(row, "verifying")


def _artifact(run: RunMemory, row: TaskRow, epoch: int, item: ArtifactItem, index: int, at: At) -> ArtifactRow:
    inline = item.inline is not None
    return ArtifactRow(
        tenant=at.tenant,
        project=at.project,
        run=run.run,
        task=row.task,
        epoch=epoch,
        item=index,
        name=item.name,
        sha256=item.sha256,
        size_bytes=item.size_bytes,
        media_type=item.media_type,
        staged_ms=at.now_ms,
        log_partition=at.partition if inline else None,
        log_offset=at.offset if inline else None,
        log_event=at.index if inline else None,
    )
