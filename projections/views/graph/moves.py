"""The few moves that the events about attempts are made of: ending one, judging what it had submitted, and dropping
that."""

from __future__ import annotations

from typing import Literal

from dagbok.events.run.amounts import NOTHING
from dagbok.events.run.values import Usage
from dagbok.projections.views.graph.memory import At, RunMemory
from dagbok.projections.views.graph.patches import Charged, Ended, Judged
from dagbok.projections.views.graph.rows import AttemptStatus, Outcome, TaskRow
from dagbok.projections.views.graph.spending import exact, release, spend


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
    usage: Usage = NOTHING,
) -> None:
    """The task's present attempt is over, and has used this."""
    row.open_kind = None
    release(run, row)
    attempt = run.attempts.get((row.task, epoch))
    if attempt is None:
        run.ended.append(Ended(run.run, row.task, epoch, status, process, outcome, code, message, at.now_ms))
    else:
        attempt.status = status
        attempt.outcome = outcome
        attempt.code = code
        attempt.message = message
        attempt.closed_ms = at.now_ms
        if process is not None:
            attempt.process = process
    if usage.tokens or usage.cost != "0":
        spend(run, row, usage)
        _charge(run, row.task, epoch, usage)


def _charge(run: RunMemory, task: str, epoch: int, usage: Usage) -> None:
    attempt, cost = run.attempts.get((task, epoch)), exact(usage.cost)
    if attempt is None:
        run.charged.append(Charged(run.run, task, epoch, usage.tokens, cost))
    else:
        attempt.tokens_used, attempt.cost_used = usage.tokens, cost


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


def drop_task(run: RunMemory, row: TaskRow, status: Literal["cancelled", "superseded"], code: str, at: At) -> None:
    """The task leaves the graph for good: what it had submitted will not be judged."""
    judge(run, row, "cancelled", code)
    drop_staged(row)
    row.closed_ms = at.now_ms
    run.set_status(row, status)
