"""Finished spans from open ones: names, attributes and parents, as `docs/tracing.md` lists them."""

from __future__ import annotations

from dagbok.agents.tracing.ids import attempt_span_id, run_span_id, task_span_id
from dagbok.agents.tracing.open_spans import OpenAttempt, OpenRun, OpenTask
from dagbok.agents.tracing.span import AttributeValue, Note, Span


def finish_run(run: OpenRun, now_ms: int, status: str, *, code: str = "", error: str | None = None) -> Span:
    """The span of a run, or of the part of it that follows a reopening."""
    attributes = _ids(run)
    attributes |= {"dagbok.status": status, "dagbok.tasks": run.task_count}
    attributes |= {"dagbok.usage.tokens": run.tokens, "dagbok.usage.cost": float(run.cost)}
    if run.part:
        attributes["dagbok.part"] = run.part
    if run.unnoted:
        attributes["dagbok.events_left_out"] = run.unnoted
    if code:
        attributes["error.type"] = str(code)
    return Span(
        trace_id=run.trace_id,
        span_id=run_span_id(run.run, run.part),
        parent_id=run_span_id(run.run) if run.part else None,
        name="run",
        start_ms=run.start_ms,
        end_ms=now_ms,
        attributes=attributes,
        notes=run.notes,
        error=error,
        remote=run.callers,
    )


def finish_task(
    run: OpenRun, id: str, task: OpenTask, now_ms: int, status: str, *, code: str = "", error: str | None = None
) -> Span:
    """The span of a task, or of the part of its life that follows a retry or a reopening of its run."""
    attributes = _ids(run)
    attributes |= {
        "dagbok.task_id": id,
        "dagbok.status": status,
        "dagbok.worker": task.worker,
        "dagbok.verifier": task.verifier,
    }
    if task.part:
        attributes["dagbok.part"] = task.part
    if task.unnoted:
        attributes["dagbok.events_left_out"] = task.unnoted
    if code:
        attributes["error.type"] = str(code)
    creator = task.created_by
    return Span(
        trace_id=run.trace_id,
        span_id=task_span_id(run.run, id, task.part),
        parent_id=run_span_id(run.run) if creator is None else task_span_id(run.run, creator),
        name=f"task {task.worker}",
        start_ms=task.start_ms,
        end_ms=now_ms,
        attributes=attributes,
        notes=task.notes,
        error=error,
        links=() if task.supersedes is None else (task.supersedes,),
    )


def finish_attempt(
    run: OpenRun,
    id: str,
    task: OpenTask,
    attempt: OpenAttempt,
    now_ms: int,
    outcome: str,
    *,
    code: str = "",
    error: str | None = None,
    more: dict[str, AttributeValue] | None = None,
    notes: tuple[Note, ...] = (),
) -> Span:
    """The span of one attempt, of either kind."""
    attributes = _ids(run)
    attributes |= {
        "dagbok.task_id": id,
        "dagbok.attempt": attempt.epoch,
        "dagbok.kind": attempt.kind,
        "dagbok.phase": attempt.phase,
        "dagbok.pool": attempt.pool,
        "dagbok.verifier" if attempt.kind == "verify" else "dagbok.worker": attempt.key,
        "dagbok.outcome": outcome,
    }
    if attempt.process:
        attributes["dagbok.process"] = attempt.process
    if attempt.claimed_ms is not None:
        attributes["dagbok.waited_ms"] = attempt.claimed_ms - attempt.opened_ms
    if code:
        attributes["error.type"] = str(code)
    return Span(
        trace_id=run.trace_id,
        span_id=attempt_span_id(run.run, id, attempt.epoch),
        parent_id=task_span_id(run.run, id, task.part),
        name=f"{attempt.kind} {attempt.key}",
        start_ms=attempt.opened_ms,
        end_ms=now_ms,
        attributes=attributes | more if more else attributes,
        notes=(*attempt.notes, *notes),
        error=error,
    )


def _ids(run: OpenRun) -> dict[str, AttributeValue]:
    return {"dagbok.run_id": run.run, "dagbok.tenant": run.tenant, "dagbok.project": run.project}
