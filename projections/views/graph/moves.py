"""The few moves that the events about attempts are made of: ending one, judging what it had submitted."""

from __future__ import annotations

from dagbok.projections.views.graph.memory import At, RunMemory
from dagbok.projections.views.graph.patches import Ended, Judged
from dagbok.projections.views.graph.rows import AttemptStatus, Outcome, TaskRow


def end(
    run: RunMemory,
    row: TaskRow,
    at: At,
    epoch: int,
    status: AttemptStatus,
    *,
    outcome: Outcome | None = None,
    code: str | None = None,
    message: str | None = None,
    process: str | None = None,
) -> None:
    """The task's present attempt is over."""
    row.open_kind = None
    attempt = run.attempts.get((row.task, epoch))
    if attempt is None:
        run.ended.append(Ended(run.run, row.task, epoch, status, process, outcome, code, message, at.now_ms))
        return
    attempt.status = status
    attempt.outcome = outcome
    attempt.code = code
    attempt.message = message
    attempt.closed_ms = at.now_ms
    if process is not None:
        attempt.process = process


def judge(
    run: RunMemory, row: TaskRow, status: AttemptStatus, code: str | None = None, message: str | None = None
) -> None:
    """What becomes of the work attempt whose result is staged."""
    epoch = row.staged_epoch
    if epoch is None:
        return
    attempt = run.attempts.get((row.task, epoch))
    if attempt is None:
        run.judged.append(Judged(run.run, row.task, epoch, status, code, message))
        return
    attempt.status = status
    attempt.code = code
    attempt.message = message


def drop_staged(row: TaskRow) -> None:
    """Nothing of the task awaits a verdict any more."""
    row.staged = row.staged_epoch = None
